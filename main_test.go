package main_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// buildManager builds the program the way people run it.
func buildManager(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "manager")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the manager: %v\n%s", err, out)
	}
	return program
}

func TestBadFlagIsOneClearLine(t *testing.T) {
	program := buildManager(t)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"unknown flag":            {[]string{"--reboot-everything"}, "flag provided but not defined: -reboot-everything"},
		"bad value":               {[]string{"--leader-elect=perhaps"}, `invalid boolean value "perhaps" for -leader-elect`},
		"argument":                {[]string{"--leader-elect=false", "now"}, `manager: unexpected argument "now"`},
		"no namespace for Leases": {nil, "manager: --namespace is needed outside a pod"},
		"agents without an image": {
			[]string{"--manage-agents", "--namespace=x"}, "manager: --agent-image is needed with --manage-agents",
		},
		"agents without a place": {
			[]string{"--manage-agents", "--agent-image=x", "--leader-elect=false"}, "manager: --namespace is needed outside a pod",
		},
		"an image for nobody": {
			[]string{"--namespace=x", "--agent-image=x"}, "manager: --agent-image says nothing without --manage-agents",
		},
		"arguments for nobody": {
			[]string{"--namespace=x", "--agent-arg=--engines=kernel"}, "manager: --agent-arg says nothing without --manage-agents",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			command := exec.CommandContext(t.Context(), program, tc.args...)
			command.Stderr = &stderr
			command.Env = []string{"PATH=" + os.Getenv("PATH")}
			var exit *exec.ExitError
			if err := command.Run(); !errors.As(err, &exit) || exit.ExitCode() == 0 {
				t.Fatalf("want a non-zero exit, got %v", err)
			}
			if got := strings.TrimSpace(stderr.String()); !strings.HasPrefix(got, tc.want) || strings.Contains(got, "\n") {
				t.Errorf("stderr = %q, want one line beginning %q", got, tc.want)
			}
		})
	}
}

// Behaviour 58: the leader goes within seconds of SIGTERM, and leaves a Lease that the standby can take at once.
func TestSIGTERMReleasesTheLease_Behaviour58(t *testing.T) {
	env, err := testenv.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	api, err := client.New(env.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), buildManager(t), "--namespace=default", "--metrics-bind-address=0",
		"--health-probe-bind-address=0", "--kubeconfig="+kubeconfig(t, env.Config))
	command.Stderr = &stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	holder := func() string {
		var lease coordinationv1.Lease
		key := client.ObjectKey{Namespace: "default", Name: "reboot-operator-manager"}
		if api.Get(t.Context(), key, &lease) != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	eventually(t, "a leader", func() bool { return holder() != "" })
	asked := time.Now()
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("exit after SIGTERM: %v\n%s", err, stderr.String())
	}
	if took := time.Since(asked); took > 5*time.Second {
		t.Errorf("stopping took %s", took)
	}
	if h := holder(); h != "" {
		t.Errorf("the Lease is still held by %q", h)
	}
}

func eventually(t *testing.T, what string, met func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return met(), nil })
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
