// Package testenv starts the API server that suites run against: etcd and kube-apiserver of bin/k8s (or of
// KUBEBUILDER_ASSETS), with the Node authorizer and NodeRestriction on and the project's CRD installed.
package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// SeveralManagers lets a process run several managers, whose controllers have the same names.
func SeveralManagers(o *manager.Options) { o.Controller.SkipNameValidation = new(true) }

// Environment is a running API server.
type Environment struct {
	// Config is a cluster administrator's.
	Config *rest.Config
	env    *envtest.Environment
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

// patience is how long etcd and the API server may take to start, and to stop: it takes seconds on an idle machine. envtest's
// own 20 seconds are too short for one on which several suites start at once.
const patience = 3 * time.Minute

// Start starts an API server and registers the project's kinds in the client-go scheme. The caller stops it.
func Start() (*Environment, error) {
	if err := register(); err != nil {
		return nil, fmt.Errorf("registering the API: %w", err)
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory: Assets(),
		CRDDirectoryPaths:     []string{filepath.Join(Root(), "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,

		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: patience},
		ControlPlaneStartTimeout: patience,
		ControlPlaneStopTimeout:  patience,
	}
	args := env.ControlPlane.GetAPIServer().Configure()
	args.Set("authorization-mode", "Node", "RBAC")
	args.Append("enable-admission-plugins", "NodeRestriction")
	config, err := env.Start()
	if err != nil {
		err = errors.Join(err, env.Stop()) // it may have come half-way
		return nil, fmt.Errorf("starting the API server of %s (make controlplane builds it): %w", Assets(), err)
	}
	config.QPS = -1
	return &Environment{Config: config, env: env}, nil
}

// test is a [testing.T]: programs use this package, too, and have no business with package testing.
type test interface {
	Helper()
	Cleanup(stop func())
	Error(args ...any)
	Fatal(args ...any)
}

// StartFor is Start for a test, which ends where it fails, and the API server with it.
func StartFor(t test) *Environment {
	t.Helper()
	env, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	return env
}

// Stop ends the API server and etcd.
func (e *Environment) Stop() error { return e.env.Stop() }
