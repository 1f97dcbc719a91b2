package gate

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The keys of a gate's Secret.
const (
	keyToken    = "token"
	keyUsername = "username"
	keyPassword = "password"
	keyCA       = "ca.crt"
	keyCert     = corev1.TLSCertKey
	keyKey      = corev1.TLSPrivateKeyKey
)

// credentials are what one Secret reports; the zero value reports nothing.
type credentials struct {
	token, username, password string
	basic                     bool
	tls                       *tls.Config
}

// credentialsOf reads a Secret, or states which key of it cannot be used. No error has any of its content.
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
		return wrong("has one of the keys username and password: both belong together")
	case has(keyCert) != has(keyKey):
		return wrong("has one of the keys tls.crt and tls.key: both belong together")
	}
	c.token, c.basic = trimmed(secret.Data[keyToken]), has(keyUsername)
	c.username, c.password = trimmed(secret.Data[keyUsername]), trimmed(secret.Data[keyPassword])
	if has(keyCA) {
		c.tls.RootCAs = x509.NewCertPool()
		if !c.tls.RootCAs.AppendCertsFromPEM(secret.Data[keyCA]) {
			return wrong("has no certificate in PEM in key %s", keyCA)
		}
	}
	if has(keyCert) {
		pair, err := tls.X509KeyPair(secret.Data[keyCert], secret.Data[keyKey])
		if err != nil {
			return wrong("has no pair of certificate and key in PEM in keys %s and %s", keyCert, keyKey)
		}
		c.tls.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// trimmed takes the line break off that files end with.
func trimmed(value []byte) string { return strings.TrimRight(string(value), "\r\n") }

// authorize puts the credentials on a request.
func (c credentials) authorize(r *http.Request) {
	switch {
	case c.token != "":
		r.Header.Set("Authorization", "Bearer "+c.token)
	case c.basic:
		r.SetBasicAuth(c.username, c.password)
	}
}

// redact removes secrets from a text, into which the server may have put them.
func (c credentials) redact(text string) string {
	for _, secret := range []string{c.token, c.password} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return text
}

// errRedirected: credentials are for the address that was written down, and for no other.
var errRedirected = errors.New("the server redirects, which is not followed: give the address it redirects to")
