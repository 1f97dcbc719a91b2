package embedded

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// credentials issues the users by which the API server knows its clients.
type credentials struct {
	// folder is the folder for kubeconfigs.
	folder    string
	server    string
	authority *authority
}

// KubeconfigFor writes a kubeconfig NAME.kubeconfig whose user is the token in a file, and returns
// its path. Clients read the file again when it changes.
func (c *credentials) KubeconfigFor(name, tokenFile string) (string, error) {
	return c.writeKubeconfig(name, &rest.Config{BearerTokenFile: tokenFile})
}

// UserKubeconfig writes a kubeconfig whose user is a client certificate, and returns its path.
func (c *credentials) UserKubeconfig(user string, groups ...string) (string, error) {
	p, err := c.authority.client(user, groups...)
	if err != nil {
		return "", err
	}
	return c.writeKubeconfig(strings.ReplaceAll(user, ":", "-"), &rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: p.certificate, KeyData: p.key}})
}

func (c *credentials) writeKubeconfig(name string, user *rest.Config) (string, error) {
	path := filepath.Join(c.folder, name+".kubeconfig")
	user.Host, user.CAData = c.server, c.authority.pem
	return path, testenv.WriteKubeconfig(path, user)
}

// authority issues the certificates of one cluster. It may be used from any goroutine.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
	serial      atomic.Int64
}

// pair is a certificate and its key, both PEM.
type pair struct{ certificate, key []byte }

func newAuthority() (*authority, error) {
	key, _, err := newKey()
	if err != nil {
		return nil, err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "embedded-ca"}, key)
	if err != nil {
		return nil, fmt.Errorf("signing the authority's certificate: %w", err)
	}
	text, err := cert.EncodeCertificates(certificate)
	return &authority{certificate: certificate, key: key, pem: text}, err
}

// server issues the certificate of a server on 127.0.0.1, which pods know by the address of its
// service.
func (a *authority) server(name string) (pair, error) {
	return a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(ServiceAddress)},
	})
}

// client issues the certificate of a user. The API server takes the common name as the user and the
// organizations as groups.
func (a *authority) client(user string, groups ...string) (pair, error) {
	return a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: user, Organization: groups}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) issue(template *x509.Certificate) (pair, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return pair{}, err
	}
	template.SerialNumber, template.KeyUsage = big.NewInt(a.serial.Add(1)), x509.KeyUsageDigitalSignature
	template.NotBefore, template.NotAfter = a.certificate.NotBefore, a.certificate.NotAfter
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("signing the certificate of %s: %w", template.Subject.CommonName, err)
	}
	return pair{pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), keyPEM}, nil
}

// newKey creates a key and its PEM.
func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating a key: %w", err)
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	return key, text, err
}
