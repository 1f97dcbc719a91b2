// Package testenv is what the project's tests have around them: its folders and programs, clients, and what other operators leave
// behind. Package embedded starts the API server that they run against.
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

// SeveralManagers lets a process run several managers, whose controllers have the same names.
func SeveralManagers(o *manager.Options) { o.Controller.SkipNameValidation = new(true) }

// NewManager makes a manager with the options of its program, one of several in this process.
func NewManager(config *rest.Config, made func() (manager.Options, error)) (manager.Manager, error) {
	options, err := made()
	if err != nil {
		return nil, err
	}
	SeveralManagers(&options)
	return manager.New(config, options)
}

// Root is the root folder of the repository that the working directory is in.
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

// Assets is the folder with the control plane's programs: KUBEBUILDER_ASSETS where it is set, else bin/k8s.
func Assets() string {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir
	}
	return filepath.Join(Root(), "bin", "k8s")
}

// Number is what an environment variable sets, or else a number.
func Number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

// registered is how the registration went. It happens before anything runs: the scheme is everybody's, and has no lock.
var registered = v1alpha1.AddToScheme(scheme.Scheme)

// NewClient is a client of the project's kinds and of all of Kubernetes, which can watch.
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

// WriteKubeconfig writes a kubeconfig that leads to the same API server as a config does, as the same user.
func WriteKubeconfig(path string, config *rest.Config) error {
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"it": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"it": {
			TokenFile: config.BearerTokenFile, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
			Impersonate: config.Impersonate.UserName,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"it": {Cluster: "it", AuthInfo: "it"}},
		CurrentContext: "it",
	}, path)
	if err != nil {
		return fmt.Errorf("writing kubeconfig %s: %w", path, err)
	}
	return nil
}

// Kustomization writes into dir what `make deploy CONFIG=… COMPONENTS=…` applies: a folder of the repository, such as
// config/default, with folders of config/components.
func Kustomization(dir, folder string, components ...string) error {
	root, err := filepath.Rel(dir, Root()) // kustomize takes no absolute path
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

// NotShown skips a test that this machine cannot run, and names it in the file of the variable NOT_SHOWN, if it is set. hack/step.sh
// prints that file at the end of a run. It names a test once, whatever number of its cases is skipped.
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
			_ = file.Close() // An error would have been one of the write.
		}
		if err != nil {
			t.Fatal(fmt.Errorf("noting what is not shown: %w", err))
		}
	}
	t.Skip(why)
}
