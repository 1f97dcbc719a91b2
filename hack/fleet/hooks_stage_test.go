package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

const (
	hookNamespace = "reboot-hooks"
	// before and after are the annotations in docs/hooks and in config/samples/hooks.yaml.
	before = "example.com/backup-done"
	after  = "example.com/health-ok"
)

// hooked is a fleet of two machines with the hooks of docs/hooks.
type hooked struct {
	*trial
	// dir is the folder in which the hooks work.
	dir string
}

func newHooked(t *testing.T) *hooked {
	t.Helper()
	s := &hooked{trial: &trial{T: t}, dir: t.TempDir()}
	text, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "samples", "hooks.yaml"))
	s.must(err)
	var sample v1alpha1.RebootPolicy
	s.must(yaml.UnmarshalStrict(text, &sample))
	workload := s.manifests("before.yaml", "after.yaml")
	s.trial = newTrial(t, Options{Nodes: 2, Workload: workload, Run: []string{hookNamespace}}, func(spec *v1alpha1.RebootPolicySpec) {
		spec.Hooks = sample.Spec.Hooks
		spec.Hooks.Before = append(spec.Hooks.Before, consent)
		spec.Reboot = &v1alpha1.Reboot{Settle: &v1alpha1.Duration{}}
		spec.MaxFailures = new(int32(10))
	})
	return s
}

// in returns a copy for a subtest.
func (h *hooked) in(t *testing.T) *hooked {
	t.Helper()
	part := *h.trial
	part.T = t
	return &hooked{&part, h.dir}
}

// manifests returns files of docs/hooks, edited as their users should: with the work of this test.
func (h *hooked) manifests(names ...string) []byte {
	h.Helper()
	var all []string
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "hooks", name))
		h.must(err)
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			if strings.Contains(document, "\nkind: DaemonSet\n") {
				document = h.changed(document)
			}
			all = append(all, document)
		}
	}
	return []byte(strings.Join(all, "\n---\n"))
}

func (h *hooked) changed(document string) string {
	h.Helper()
	var set appsv1.DaemonSet
	h.must(yaml.UnmarshalStrict([]byte(document), &set))
	env := set.Spec.Template.Spec.Containers[0].Env
	for name, value := range map[string]string{
		"WORK":     fmt.Sprintf(`cd %q && sh "./$NODE_NAME"`, h.dir),
		"CHECK":    fmt.Sprintf(`cd %q && if ! test -e well; then echo one is not well; exit 1; fi`, h.dir),
		"PATIENCE": "0",
		"PERIOD":   "0.1",
	} {
		if i := slices.IndexFunc(env, func(v corev1.EnvVar) bool { return v.Name == name }); i >= 0 {
			env[i].Value = value
		}
	}
	text, err := yaml.Marshal(set)
	h.must(err)
	return string(text)
}

func (h *hooked) write(name, text string) {
	h.Helper()
	h.must(os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600))
}

func (h *hooked) read(name string) string {
	h.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, name))
	h.must(err)
	return string(text)
}

// stage stages an update on a machine. The before-hook runs work there.
func (h *hooked) stage(host *Host, work string) {
	h.Helper()
	h.write(host.Name, work+"\n")
	h.must(host.Stage())
}

// where lists the hooks' pods and their nodes.
func (h *hooked) where() string {
	h.Helper()
	var found []string
	for _, pod := range h.pods(hookNamespace, "") {
		found = append(found, pod.Spec.ServiceAccountName+" on "+pod.Spec.NodeName)
	}
	return strings.Join(found, ", ")
}

// kill kills the process of a hook's pod, like a crash of its container, and returns the time.
func (h *hooked) kill(hook string) time.Time {
	h.Helper()
	for _, pod := range h.pods(hookNamespace, "") {
		if pod.Spec.ServiceAccountName == hook {
			k := h.fleet.kubelet
			k.mu.Lock()
			p := k.processes[pod.UID]
			k.mu.Unlock()
			p.Kill()
		}
	}
	return time.Now()
}

// looks returns how often a hook has read a Node since a time.
func (h *hooked) looks(hook string, since time.Time) int {
	h.Helper()
	requests, err := h.fleet.Cluster.Requests(since, time.Now())
	h.must(err)
	looks := 0
	for _, r := range requests {
		if r.User == "system:serviceaccount:"+hookNamespace+":"+hook && r.Verb == "get" && r.Resource == "nodes" {
			looks++
		}
	}
	return looks
}
