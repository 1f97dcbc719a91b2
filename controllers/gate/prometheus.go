package gate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/reading"
)

const (
	// largest is the size limit of a response, in bytes.
	largest = 4 << 20
	// idle is the time that a connection is kept for the next query.
	idle = 2 * Interval
	// most is the number of servers that are remembered.
	most = 64
)

// Prometheus queries servers over HTTP, with one connection pool for each.
type Prometheus struct {
	Secrets reading.Secrets

	mu      sync.Mutex
	servers map[serverKey]*server
}

type serverKey struct{ url, secret string }

// server is a server with the credentials of one version of a Secret.
type server struct {
	version     string
	credentials credentials
	connections *http.Transport
	api         promv1.API
}

// Ask runs the gate's query. Every failure becomes an answer.
func (p *Prometheus) Ask(ctx context.Context, gate v1alpha1.PrometheusGate) Answer {
	s, err := p.server(ctx, gate)
	if err != nil {
		return unreachable(err.Error())
	}
	result, warnings, _, err := s.api.Query(ctx, gate.Query, time.Time{}, promv1.WithTimeout(timeout))
	if err != nil {
		return unreachable(s.credentials.redact(why(err)))
	}
	for _, w := range warnings {
		ctrl.LoggerFrom(ctx).Info("A gate's query has a warning", "gate", gate.Name, "warning", s.credentials.redact(w))
	}
	a := answerOf(result)
	if missing := ofStores(warnings); a.State == v1alpha1.GateClear && len(missing) > 0 {
		return unreachable(s.credentials.redact("the answer may be incomplete: " + slices.Min(missing)))
	}
	return a
}

// ofStores returns the warnings that are not about the query. Thanos, and Prometheus with remote
// storage, leave out the data of a store that is down, and report that only as a warning. See
// marked for VictoriaMetrics. Several warnings are in random order.
func ofStores(warnings []string) []string {
	return slices.DeleteFunc(slices.Clone(warnings), func(w string) bool { return strings.HasPrefix(w, "PromQL ") })
}

// server returns the client of a server. It reads the Secret each time, and keeps the connections
// until the Secret changes.
func (p *Prometheus) server(ctx context.Context, gate v1alpha1.PrometheusGate) (*server, error) {
	key, version := serverKey{url: gate.URL}, ""
	var c credentials
	if gate.SecretRef != nil {
		secret, err := p.Secrets.Secret(ctx, gate.SecretRef.Name)
		if err != nil {
			return nil, err
		}
		if c, err = credentialsOf(secret); err != nil {
			return nil, err
		}
		key.secret, version = secret.Name, string(secret.UID)+"/"+secret.ResourceVersion
	} else {
		c, _ = credentialsOf(nil)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.servers[key]; s != nil && s.version == version {
		return s, nil
	} else if s != nil {
		s.connections.CloseIdleConnections()
	}
	s, err := open(gate.URL, version, c)
	if err != nil {
		return nil, err
	}
	p.makeRoom()
	p.servers[key] = s
	return s, nil
}

// makeRoom forgets all servers once there are many, because some of their addresses and Secrets are
// not used any more. Queries under way still finish, and the next ones open new connections.
func (p *Prometheus) makeRoom() {
	if p.servers != nil && len(p.servers) < most {
		return
	}
	for _, s := range p.servers {
		s.connections.CloseIdleConnections()
	}
	p.servers = map[serverKey]*server{}
}

func open(address, version string, c credentials) (*server, error) {
	connections := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: c.tls, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 1, IdleConnTimeout: idle, TLSHandshakeTimeout: timeout,
	}
	client, err := api.NewClient(api.Config{Address: address, Client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirected },
		Transport:     c.authorize(limitedTransport{connections, errTooLong}),
	}})
	if err != nil {
		return nil, fmt.Errorf("the address cannot be used: %w", err)
	}
	return &server{version: version, credentials: c, connections: connections, api: promv1.NewAPI(marked{client})}, nil
}

// marked reads a field that the library ignores: VictoriaMetrics reports in it that some of its
// storage did not answer. It is turned into a warning, as other servers send it.
type marked struct{ api.Client }

// Do implements api.Client.
func (m marked) Do(ctx context.Context, r *http.Request) (*http.Response, []byte, error) {
	response, body, err := m.Client.Do(ctx, r)
	var answer map[string]json.RawMessage
	if err != nil || json.Unmarshal(body, &answer) != nil || string(answer["isPartial"]) != "true" {
		return response, body, err
	}
	answer["warnings"] = json.RawMessage(`["isPartial is true: some of the storage did not answer"]`)
	body, err = json.Marshal(answer)
	return response, body, err
}

// errRedirected means that the server redirects. Redirects are not followed, because credentials
// are only for the configured address.
var errRedirected = errors.New("the server redirects, which is not followed: give the address it redirects to")

var errTooLong = errors.New("the answer is longer than 4 MiB: let the query aggregate")

// limitedTransport limits the size of each response.
type limitedTransport struct {
	next    http.RoundTripper
	tooLong error
}

// RoundTrip implements http.RoundTripper.
func (l limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = &bounded{ReadCloser: response.Body, remaining: largest, tooLong: l.tooLong}
	return response, nil
}

// bounded is a body with a size limit.
type bounded struct {
	io.ReadCloser

	remaining int
	tooLong   error
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.remaining <= 0 {
		return 0, b.tooLong
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.remaining)])
	b.remaining -= n
	return n, err
}

// The keys of a gate's Secret.
const (
	keyToken    = "token"
	keyUsername = "username"
	keyPassword = "password"
	keyCA       = "ca.crt"
	keyCert     = corev1.TLSCertKey
	keyKey      = corev1.TLSPrivateKeyKey
)

// credentials are the content of one Secret. The zero value has none.
type credentials struct {
	token, username, password string
	basic                     bool
	tls                       *tls.Config
}

// credentialsOf reads a Secret, or says which of its keys cannot be used. Errors never contain the
// values.
func credentialsOf(secret *corev1.Secret) (credentials, error) {
	c := credentials{tls: &tls.Config{MinVersion: tls.VersionTLS12}}
	if secret == nil {
		return c, nil
	}
	has := func(key string) bool { return len(secret.Data[key]) > 0 }
	wrong := func(format string, args ...any) (credentials, error) {
		return credentials{}, fmt.Errorf("Secret %s %s", secret.Name, fmt.Sprintf(format, args...)) //nolint:staticcheck // Secret is a kind
	}
	known := []string{keyToken, keyUsername, keyPassword, keyCA, keyCert, keyKey}
	switch {
	case !slices.ContainsFunc(known, has):
		return wrong("has none of the keys token, username and password, ca.crt, tls.crt and tls.key")
	case has(keyToken) && has(keyUsername):
		return wrong("has both token and username: keep one")
	case has(keyUsername) != has(keyPassword):
		return wrong("has only one of the keys username and password: add the other one")
	case has(keyCert) != has(keyKey):
		return wrong("has only one of the keys tls.crt and tls.key: add the other one")
	}
	c.token, c.basic = trimmed(secret.Data[keyToken]), has(keyUsername)
	c.username, c.password = trimmed(secret.Data[keyUsername]), trimmed(secret.Data[keyPassword])
	if has(keyCA) {
		c.tls.RootCAs = x509.NewCertPool()
		if !c.tls.RootCAs.AppendCertsFromPEM(secret.Data[keyCA]) {
			return wrong("has no PEM certificate in key %s", keyCA)
		}
	}
	if has(keyCert) {
		pair, err := tls.X509KeyPair(secret.Data[keyCert], secret.Data[keyKey])
		if err != nil {
			return wrong("has no matching PEM certificate and key in keys %s and %s", keyCert, keyKey)
		}
		c.tls.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// trimmed removes the line break at the end of a file.
func trimmed(value []byte) string { return strings.TrimRight(string(value), "\r\n") }

// authorize returns a transport that adds the credentials to each request.
func (c credentials) authorize(next http.RoundTripper) http.RoundTripper {
	switch {
	case c.token != "":
		return transport.NewBearerAuthRoundTripper(c.token, next)
	case c.basic:
		return transport.NewBasicAuthRoundTripper(c.username, c.password, next)
	}
	return next
}

// redact removes secrets from a text, because the server may have repeated them.
func (c credentials) redact(text string) string {
	for _, secret := range []string{c.token, c.password} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return text
}
