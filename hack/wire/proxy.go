package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// Serve starts a plain HTTP server on 127.0.0.1 that forwards requests over the wire to an API
// server until ctx ends. It returns its URL.
func (w *Wire) Serve(ctx context.Context, server string, next http.RoundTripper) (string, error) {
	target, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("parsing the API server's address: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listening for a client: %w", err)
	}
	quiet := log.New(io.Discard, "", 0)
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     w.Wrap(next),
		FlushInterval: -1,
		ErrorLog:      quiet,
		// Break the connection instead of answering like a proxy.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	srv := &http.Server{Handler: proxy, ErrorLog: quiet, ReadHeaderTimeout: time.Minute}
	go func() {
		if err := srv.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			return // its clients see the error
		}
	}()
	context.AfterFunc(ctx, func() { srv.Close() })
	return "http://" + listener.Addr().String(), nil
}
