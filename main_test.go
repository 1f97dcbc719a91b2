package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

func buildManager(t *testing.T) string {
	t.Helper()
	program, err := testenv.Build(t.Context(), "manager")
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func TestBadFlagIsOneClearLine(t *testing.T) {
	program := buildManager(t)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"unknown flag":               {[]string{"--reboot-everything"}, "flag provided but not defined: -reboot-everything"},
		"bad value":                  {[]string{"--leader-elect=perhaps"}, `invalid boolean value "perhaps" for -leader-elect`},
		"argument":                   {[]string{"--leader-elect=false", "now"}, `manager: unexpected argument "now"`},
		"no namespace for the Lease": {nil, "manager: --namespace is needed outside a pod"},
		"agents without an image": {
			[]string{"--manage-agents", "--namespace=x"}, "manager: --agent-image is needed with --manage-agents",
		},
		"agents without a namespace": {
			[]string{"--manage-agents", "--agent-image=x", "--leader-elect=false"}, "manager: --namespace is needed outside a pod",
		},
		"an image without --manage-agents": {
			[]string{"--namespace=x", "--agent-image=x"}, "manager: --agent-image has no effect without --manage-agents",
		},
		"arguments without --manage-agents": {
			[]string{"--namespace=x", "--agent-arg=--engines=kernel"}, "manager: --agent-arg has no effect without --manage-agents",
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

// The image has no other file than the program.
func TestBringsZonesAndAuthorities(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").CombinedOutput()
	for _, want := range []string{"time/tzdata", "golang.org/x/crypto/x509roots/fallback"} {
		if err != nil || !strings.Contains(string(out), "\n"+want+"\n") {
			t.Errorf("%s is not in the program (%v)", want, err)
		}
	}
}

// Neither a namespace nor a cluster is needed.
func TestVersion(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), buildManager(t), "--version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "manager dev (go") || strings.Count(string(out), "\n") != 1 {
		t.Errorf("%v: %s", err, out)
	}
}

// A manager is not ready before it has read what it decides about. A rollout of managers that may not read it leaves the old ones.
func TestReadyOnceListed(t *testing.T) {
	env := embedded.StartServerFor(t)
	api, err := testenv.NewClient(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("without any rights", func(t *testing.T) {
		m := startManager(t, env, "manager")
		m.expectNotListed()
		m.readyWith(api, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	})
	t.Run("with --manage-agents, and all rights except those for the DaemonSet", func(t *testing.T) {
		const user = "bringer"
		may(t, api, user, "others", rbacv1.PolicyRule{APIGroups: []string{"", "events.k8s.io", v1alpha1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}})
		m := startManager(t, env, user, "--manage-agents", "--agent-image=agent:1")
		ready := func(context.Context) (bool, error) { return m.probe("/readyz") == "200 ok", nil }
		if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Second, true, ready); !wait.Interrupted(err) {
			t.Fatalf("ready before it may read the DaemonSet (%v)", err)
		}
		m.expectNotListed()
		m.readyWith(api, rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, Verbs: []string{"*"}})
	})
}

// manager is the program that ships. It runs as a separate user until the test ends.
type manager struct {
	*testing.T

	user, address string
}

func startManager(t *testing.T, env *embedded.Cluster, user string, flags ...string) *manager {
	t.Helper()
	port, err := embedded.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := &manager{T: t, user: user, address: fmt.Sprintf("127.0.0.1:%d", port)}
	config := env.Config()
	config.Impersonate.UserName = user
	command := exec.CommandContext(t.Context(), buildManager(t), append([]string{
		"--leader-elect=false", "--namespace=default", "--metrics-bind-address=0", "--health-probe-bind-address=" + m.address, "--kubeconfig=" + kubeconfig(t, config),
	}, flags...)...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // The test's context has ended, and with it the program.
		if err := command.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	m.eventually("life", func() bool { return m.probe("/healthz") == "200 ok" })
	return m
}

func (m *manager) probe(path string) string {
	return testenv.Probe(m.Context(), m.address, path)
}

func (m *manager) expectNotListed() {
	m.Helper()
	if got, want := m.probe("/readyz/listed"), "see the manager's log"; !strings.HasPrefix(got, "500 ") || !strings.Contains(got, want) {
		m.Errorf("/readyz/listed: %s, want %q", got, want)
	}
	if got := m.probe("/readyz"); !strings.HasPrefix(got, "500 ") {
		m.Errorf("/readyz: %s", got)
	}
}

// may gives a user rights.
func may(t *testing.T, api client.Client, user, action string, rule rbacv1.PolicyRule) {
	t.Helper()
	name := metav1.ObjectMeta{Name: user + "-" + action}
	if err := errors.Join(
		api.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{rule}}),
		api.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}),
	); err != nil {
		t.Fatal(err)
	}
}

// readyWith expects that the manager is ready once it has the rights that it lacked.
func (m *manager) readyWith(api client.Client, lacked rbacv1.PolicyRule) {
	m.Helper()
	may(m.T, api, m.user, "lacked", lacked)
	m.eventually("readiness", func() bool { return m.probe("/readyz") == "200 ok" })
}

func (m *manager) eventually(action string, met func() bool) {
	m.Helper()
	err := wait.PollUntilContextTimeout(m.Context(), 50*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return met(), nil })
	if err != nil {
		m.Fatalf("waiting for %s: %v", action, err)
	}
}

func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := testenv.WriteKubeconfig(path, config); err != nil {
		t.Fatal(err)
	}
	return path
}
