package embedded

import (
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// credentials are by which users the cluster's API server knows its clients.
type credentials struct {
	// folder is where kubeconfigs are written.
	folder    string
	server    string
	authority *authority
}

// KubeconfigFor writes a kubeconfig NAME.kubeconfig whose user is the token in a file, and returns its path. Clients
// read the file again as it changes.
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
