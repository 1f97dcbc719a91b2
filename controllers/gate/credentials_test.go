package gate

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func secret(keysAndValues ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "prom", Namespace: "reboot-operator-system", UID: "u", ResourceVersion: "1"}, Data: map[string][]byte{}}
	for i := 0; i < len(keysAndValues); i += 2 {
		s.Data[keysAndValues[i]] = []byte(keysAndValues[i+1])
	}
	return s
}

// TestCredentialsOf: what a Secret may hold, and which sentence names the key that is wrong. None reveals a value.
func TestCredentialsOf(t *testing.T) {
	ca := newAuthority(t)
	certificate, key := ca.client("reboot-operator")
	_, other := ca.client("somebody-else")
	cert, priv := string(certificate), string(key)
	for name, tc := range map[string]struct {
		secret *corev1.Secret
		// header is what the server sees, and wrong what the user does.
		header, wrong string
	}{
		"no Secret":                         {},
		"a token":                           {secret: secret("token", "hunter2"), header: "Bearer hunter2"},
		"a token of a file":                 {secret: secret("token", "hunter2\n"), header: "Bearer hunter2"},
		"name and password":                 {secret: secret("username", "me", "password", "hunter2"), header: "Basic bWU6aHVudGVyMg=="},
		"an authority":                      {secret: secret("ca.crt", string(ca.pem))},
		"a client's certificate":            {secret: secret("tls.crt", cert, "tls.key", priv)},
		"all of TLS and a token":            {secret: secret("ca.crt", string(ca.pem), "tls.crt", cert, "tls.key", priv, "token", "hunter2"), header: "Bearer hunter2"},
		"nothing":                           {secret: secret(), wrong: "Secret prom has none of the keys token, username and password, ca.crt, tls.crt and tls.key"},
		"other keys":                        {secret: secret("Token", "hunter2"), wrong: "Secret prom has none of the keys token, username and password, ca.crt, tls.crt and tls.key"},
		"an empty token":                    {secret: secret("token", ""), wrong: "Secret prom has none of the keys token, username and password, ca.crt, tls.crt and tls.key"},
		"two ways":                          {secret: secret("token", "hunter2", "username", "me", "password", "hunter2"), wrong: "Secret prom has both token and username: keep one"},
		"a name alone":                      {secret: secret("username", "hunter2"), wrong: "Secret prom has one of the keys username and password: both belong together"},
		"a password alone":                  {secret: secret("password", "hunter2"), wrong: "Secret prom has one of the keys username and password: both belong together"},
		"a certificate alone":               {secret: secret("tls.crt", cert), wrong: "Secret prom has one of the keys tls.crt and tls.key: both belong together"},
		"a key of another certificate":      {secret: secret("tls.crt", cert, "tls.key", string(other)), wrong: "Secret prom has no pair of certificate and key in PEM in keys tls.crt and tls.key"},
		"a certificate that is none":        {secret: secret("tls.crt", "hunter2", "tls.key", "hunter2"), wrong: "Secret prom has no pair of certificate and key in PEM in keys tls.crt and tls.key"},
		"an authority that is none":         {secret: secret("ca.crt", "hunter2"), wrong: "Secret prom has no certificate in PEM in key ca.crt"},
		"an authority that is a key, twice": {secret: secret("ca.crt", priv+priv), wrong: "Secret prom has no certificate in PEM in key ca.crt"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := credentialsOf(tc.secret)
			if tc.wrong != "" {
				if err == nil || err.Error() != tc.wrong {
					t.Errorf("got %v, want %s", err, tc.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			c.authorize(r)
			if got := r.Header.Get("Authorization"); got != tc.header {
				t.Errorf("got %q, want %q", got, tc.header)
			}
			if shown := c.redact("hunter2 is refused"); tc.header != "" && strings.Contains(shown, "hunter2") {
				t.Error(shown)
			}
		})
	}
}
