// Package testenv provides what the project's tests share: paths, programs, clients, and traces of
// other operators. Package embedded starts the API server for them.
package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// SeveralManagers allows several managers, whose controllers have the same names, in one process.
func SeveralManagers(o *manager.Options) { o.Controller.SkipNameValidation = new(true) }

// NewManager returns a manager with the options of its program. Several may run in this process.
func NewManager(config *rest.Config, made func() (manager.Options, error)) (manager.Manager, error) {
	options, err := made()
	if err != nil {
		return nil, err
	}
	SeveralManagers(&options)
	return manager.New(config, options)
}

// Root returns the root folder of the repository that contains the working directory.
var Root = sync.OnceValue(func() string {
	working, err := os.Getwd()
	if err != nil {
		return "."
	}
	for dir := working; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "PROJECT")); err == nil {
			return dir
		}
	}
	return working
})

// Assets returns the folder with the programs of the control plane: KUBEBUILDER_ASSETS, or else
// bin/k8s.
func Assets() string {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir
	}
	return filepath.Join(Root(), "bin", "k8s")
}

// Number returns the number in an environment variable, or a default.
func Number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

// registered is the result of the registration, which happens before anything runs because the
// scheme is shared and not locked.
var registered = v1alpha1.AddToScheme(scheme.Scheme)

// NewClient returns a client with watches for the project's kinds and all of Kubernetes.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	if registered != nil {
		return nil, fmt.Errorf("registering the API: %w", registered)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	return c, nil
}

// WriteKubeconfig writes a kubeconfig with the API server and the user of a config.
func WriteKubeconfig(path string, config *rest.Config) error {
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"local": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"local": {
			TokenFile: config.BearerTokenFile, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
			Impersonate: config.Impersonate.UserName,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"local": {Cluster: "local", AuthInfo: "local"}},
		CurrentContext: "local",
	}, path)
	if err != nil {
		return fmt.Errorf("writing kubeconfig %s: %w", path, err)
	}
	return nil
}

// Kustomization writes a kustomization to dir like `make deploy CONFIG=… COMPONENTS=…`: a folder of
// the repository, such as config/default, with folders of config/components.
func Kustomization(dir, folder string, components ...string) error {
	root, err := filepath.Rel(dir, Root()) // kustomize does not accept absolute paths
	if err != nil {
		return fmt.Errorf("writing a kustomization: %w", err)
	}
	text := strings.Builder{}
	fmt.Fprintf(&text, "resources:\n- %s\ncomponents:\n", filepath.Join(root, folder))
	for _, component := range components {
		fmt.Fprintf(&text, "- %s\n", filepath.Join(root, "config", "components", component))
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("writing a kustomization: %w", err)
	}
	return nil
}

// NotShown skips a test that cannot run on this machine. It adds the test's name to the file in
// NOT_SHOWN, if set, once for all its cases. hack/step.sh prints that file at the end of a run.
func NotShown(t interface {
	Helper()
	Name() string
	Skip(why ...any)
	Fatal(args ...any)
}, why string,
) {
	t.Helper()
	if path := os.Getenv("NOT_SHOWN"); path != "" {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			test, _, _ := strings.Cut(t.Name(), "/")
			_, err = fmt.Fprintf(file, "%s: %s\n", test, why)
			_ = file.Close() // an error would have been one of the write
		}
		if err != nil {
			t.Fatal(fmt.Errorf("noting what is not shown: %w", err))
		}
	}
	t.Skip(why)
}
