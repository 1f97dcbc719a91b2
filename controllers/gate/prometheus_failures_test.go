package gate

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/promserver"
)

const (
	isClear, mute = v1alpha1.GateClear, v1alpha1.GateUnreachable

	// none is a query without a result.
	none = "up == 0"
	// untrusted is Go's error for a certificate of an unknown authority.
	untrusted = "x509: certificate signed by unknown authority"
	refused   = "the server refuses: client error: 401"

	password = "correct horse"
	// users is the part of web.config.yml with the user and its hash.
	users = "basic_auth_users: {reboot-operator: '$2b$04$55Gyc7EXroswtX.1UtESde7XI/ax767STqKlwDg//iUdFE2VJFZem'}\n"
)

// files writes files into a temporary folder of the test.
type files struct {
	t   *testing.T
	dir string
}

func (f files) write(name string, data []byte) string {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// serving returns the part of web.config.yml with a certificate.
func (f files) serving(certificate, key []byte) string {
	f.t.Helper()
	return fmt.Sprintf("tls_server_config:\n  cert_file: %s\n  key_file: %s\n", f.write("tls.crt", certificate), f.write("tls.key", key))
}

// anybody returns a client that waits for a server to start and does not verify certificates.
func anybody(certificates ...tls.Certificate) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, Certificates: certificates, MinVersion: tls.VersionTLS12},
	}}
}

// testPassword covers users and TLS in the server's own web.config.yml.
func testPassword(a *asker) {
	t := a.t
	f, ca, other := files{t, t.TempDir()}, newAuthority(t), newAuthority(t)
	address := promserver.StartSecured(t, "", "", promserver.Security{Web: f.serving(ca.server(time.Now())) + users, Client: anybody()}).URL
	a.expect(address, none, "", mute, untrusted)
	a.expect(address, none, "gone", mute, "Secret gone is missing in namespace default")
	a.keep("basic", "ca.crt", string(other.pem), "username", "reboot-operator", "password", password)
	a.expect(address, none, "basic", mute, untrusted)
	a.keep("basic", "ca.crt", string(ca.pem))
	a.expect(address, none, "basic", mute, refused)
	a.keep("basic", "ca.crt", string(ca.pem), "username", "reboot-operator", "password", "wrong")
	a.expect(address, none, "basic", mute, refused)
	a.keep("basic", "ca.crt", string(ca.pem), "username", "reboot-operator", "password", password)
	a.expect(address, none, "basic", isClear, "")
	a.expect(strings.Replace(address, "https", "http", 1), none, "basic", mute, "the response cannot be read: check that url is the API of a Prometheus server, and whether it needs http or https")
	a.keep("basic", "ca.crt", string(ca.pem), "username", "reboot-operator")
	a.expect(address, none, "basic", mute, "Secret basic has only one of the keys username and password: add the other one")
}

// testClientCertificate covers a server that requires a client certificate.
func testClientCertificate(a *asker) {
	t := a.t
	f, ca, other := files{t, t.TempDir()}, newAuthority(t), newAuthority(t)
	mine, key := ca.client("reboot-operator")
	theirs, theirKey := other.client("reboot-operator")
	pair, err := tls.X509KeyPair(mine, key)
	if err != nil {
		t.Fatal(err)
	}
	web := f.serving(ca.server(time.Now())) + "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: " + f.write("ca.crt", ca.pem) + "\n"
	address := promserver.StartSecured(t, "", "", promserver.Security{Web: web, Client: anybody(pair)}).URL
	a.keep("mutual", "ca.crt", string(ca.pem))
	a.expect(address, none, "mutual", mute, "tls: certificate required")
	a.keep("mutual", "ca.crt", string(ca.pem), "tls.crt", string(theirs), "tls.key", string(theirKey))
	a.expect(address, none, "mutual", mute, "tls: ")
	a.keep("mutual", "ca.crt", string(ca.pem), "tls.crt", string(mine), "tls.key", string(key))
	a.expect(address, none, "mutual", isClear, "")

	old := f.serving(ca.server(time.Now().Add(-2 * time.Hour)))
	a.expect(promserver.StartSecured(t, "", "", promserver.Security{Web: old, Client: anybody()}).URL, none, "mutual", mute, "the server's certificate has expired or is not valid yet")
}

// testToken covers a proxy that requires a token, which Prometheus itself does not support.
func testToken(a *asker) {
	t := a.t
	behind, err := url.Parse(promserver.Start(t, "", "").URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if header := r.Header.Get("Authorization"); header != "Bearer hunter2" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprintf(w, `{"status":"error","errorType":"execution","error":"no entry with %s"}`, header)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	a.keep("bearer", "token", "hunter2\n")
	a.expect(front.URL, none, "bearer", isClear, "")
	a.keep("bearer", "token", "hunter3")
	a.expect(front.URL, none, "bearer", mute, "the server refuses: no entry with Bearer …")
	a.expect(front.URL, none, "", mute, "the server refuses: no entry with")

	away := httptest.NewServer(http.RedirectHandler(front.URL, http.StatusTemporaryRedirect))
	t.Cleanup(away.Close)
	a.keep("bearer", "token", "hunter2")
	a.expect(away.URL, none, "bearer", mute, "the server redirects, which is not followed")
}

// testFailures covers a server that is slow, gone, or not Prometheus.
func testFailures(a *asker) {
	t := a.t
	s := promserver.Start(t, "", "")
	address := s.URL
	a.expect(address, none, "", isClear, "")
	s.Freeze()
	const limit = 200 * time.Millisecond
	started := time.Now()
	if got := a.askWithin(limit, address, none, ""); got.Message != "no answer within 10s" {
		t.Errorf("a slow server: %+v", got)
	}
	if took := time.Since(started); took < limit || took > limit+time.Minute {
		t.Errorf("waited %s", took)
	}
	s.Resume()
	a.expect(address, none, "", isClear, "")
	s.Stop(t.Context())
	a.expect(address, none, "", mute, strings.TrimPrefix(address, "http://")+" cannot be reached: connect: connection refused")
	a.expect("http://prometheus.invalid", none, "", mute, "no such host")

	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"string","result":[0,"%s"]}}`, strings.Repeat("x", largest))
	}))
	t.Cleanup(endless.Close)
	a.expect(endless.URL, none, "", mute, "the answer is longer than 4 MiB: let the query aggregate")
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	t.Cleanup(page.Close)
	a.expect(page.URL, none, "", mute, "the response cannot be read: ")
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no route", http.StatusUnprocessableEntity)
	}))
	t.Cleanup(proxy.Close)
	a.expect(proxy.URL, none, "", mute, "the response cannot be read: ")
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"success","data":null}`) }))
	t.Cleanup(odd.Close)
	a.expect(odd.URL, none, "", mute, "the response cannot be read: ")
}
