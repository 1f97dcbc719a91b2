// Package testenv is what the project's tests have around them: its folders and programs, clients, and what other operators leave
// behind. Package embedded starts the API server that they run against.
package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// SeveralManagers lets a process run several managers, whose controllers have the same names.
func SeveralManagers(o *manager.Options) { o.Controller.SkipNameValidation = new(true) }

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

// register happens once: the scheme is everybody's, and managers that have just been stopped may still read it.
var register = sync.OnceValue(func() error { return v1alpha1.AddToScheme(scheme.Scheme) })

// NewClient is a client of the project's kinds and of all of Kubernetes, which can watch.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	if err := register(); err != nil {
		return nil, fmt.Errorf("registering the API: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	return c, nil
}
