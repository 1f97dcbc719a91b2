package embedded

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
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
	return c.writeKubeconfig(name, &clientcmdapi.AuthInfo{TokenFile: tokenFile})
}

// UserKubeconfig writes a kubeconfig whose user is a client certificate, and returns its path.
func (c *credentials) UserKubeconfig(user string, groups ...string) (string, error) {
	p, err := c.authority.client(user, groups...)
	if err != nil {
		return "", err
	}
	return c.writeKubeconfig(fileName(user), &clientcmdapi.AuthInfo{ClientCertificateData: p.certificate, ClientKeyData: p.key})
}

func (c *credentials) writeKubeconfig(name string, user *clientcmdapi.AuthInfo) (string, error) {
	path := filepath.Join(c.folder, name+".kubeconfig")
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"embedded": {Server: c.server, CertificateAuthorityData: c.authority.pem}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: user},
		Contexts:       map[string]*clientcmdapi.Context{"embedded": {Cluster: "embedded", AuthInfo: name}},
		CurrentContext: "embedded",
	}
	text, err := clientcmd.Write(config)
	if err != nil {
		return "", fmt.Errorf("encoding kubeconfig %s: %w", name, err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("writing kubeconfig %s: %w", name, err)
	}
	return path, nil
}
