package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// older is the previous version: a commit, until there are tags. If you change the protocol between
// managers, agents and policies, set it to the commit before your change, and adapt olderPolicy and
// renamed.
const older = "c8fc2862262af0b8bacb04026438f76564aec4f7"

// olderPolicy is a policy for the previous definition.
const olderPolicy = `
apiVersion: reboot-operator.io/v1alpha1
kind: RebootPolicy
metadata: {name: default}
spec:
  concurrency: {maxUnavailable: 2}
  settle: 0s
  drain: {onTimeout: Reboot}
`

// renamed maps parts of a spec for the previous definition to the reasons why this definition
// refuses them.
var renamed = map[string]string{
	"order: []":                  `unknown field "spec.order"`,
	"failures: {max: 1}":         `unknown field "spec.failures"`,
	"requests: {maxUptime: 24h}": `unknown field "spec.requests"`,
	"deadline: {after: 336h}":    `unknown field "spec.deadline.after"`,
	"urgent: {until: '2099-01-01T00:00:00Z', reason: CVE, ignore: [Windows]}":              `unknown field "spec.urgent.until"`,
	"gates: {blockingPods: [{podSelector: {matchLabels: {a: b}}, meanwhile: NoSchedule}]}": `unknown field "spec.gates.blockingPods[0].meanwhile"`,
}

// tagOlder is the tag of the previous version's images.
const tagOlder = "older"

// During an upgrade, managers and agents of two versions take over from each other in the middle of
// drains. Whether managers or agents are older, no slot may be released, no drain may start over,
// and the reboots must succeed.
func TestVersionSkew_NewAndOldFinishEachOthersReboots(t *testing.T) {
	checkout, err := testenv.Checkout(t.Context(), older)
	must(t, err)
	for _, program := range []string{managerProgram, agentProgram} {
		_, err := testenv.BuildIn(t.Context(), checkout, program)
		must(t, err)
	}
	t.Run("new definition and managers, older agents", func(t *testing.T) {
		r := newSkew(t, checkout)
		draining := r.drain()
		begun := r.begun(draining)
		r.upgrade("DaemonSet")
		r.await("new managers", func() bool { return r.run(r.fleet.Managers(), testenv.Root(), managers) })
		for part, why := range renamed {
			policy := strings.Replace(olderPolicy, "spec:\n", "spec:\n  "+part+"\n", 1)
			_, err := r.fleet.Cluster.Kubectl(t.Context(), []byte(policy), "create", "--dry-run=server", "-f", "-")
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("a policy with %s: %v, want an error with %q", part, err, why)
			}
		}
		r.translate()
		r.stillDraining(draining, begun)
		r.finish()
		if !r.run(r.fleet.Agents(), checkout, 3) {
			t.Error("the agents were replaced")
		}
	})
	t.Run("new agents, older definition and managers", func(t *testing.T) {
		r := newSkew(t, checkout)
		draining := r.drain()
		begun, before := r.begun(draining), r.agents()
		r.upgrade("Deployment", "CustomResourceDefinition")
		r.await("new agents on all nodes", func() bool {
			return r.replaced(before, "ghcr.io/reboot-operator/agent:unreleased") && r.run(r.fleet.Agents(), testenv.Root(), 3)
		})
		r.stillDraining(draining, begun)
		r.finish()
		if !r.run(r.fleet.Managers(), checkout, managers) {
			t.Error("the managers were replaced")
		}
	})
}

// newSkew starts a fleet of three machines with the previous version and its policy.
func newSkew(t *testing.T, checkout string) *rollout {
	t.Helper()
	shop, _, _ := strings.Cut(rolledWorkload, "---\napiVersion: reboot-operator.io")
	r := &rollout{startTrial(t, Options{
		Nodes: 3, Workload: []byte(shop + "---" + olderPolicy),
		Manifests: manifests(t, checkout, tagOlder), Checkouts: map[string]string{tagOlder: checkout},
	})}
	t.Cleanup(r.story)
	r.policy = &Policy{Name: "default", fleet: r.fleet}
	r.await("the managers to act on the policy", func() bool { return r.status().Nodes.Reporting == 3 })
	return r
}

// upgrade applies the manifests of this version, except some kinds.
func (r *rollout) upgrade(except ...string) {
	r.Helper()
	r.must(r.fleet.Cluster.Apply(r.Context(), manifests(r.T, testenv.Root(), "unreleased", except...)))
}

// translate rewrites the policy for this version, as an administrator does after the upgrade.
func (r *rollout) translate() {
	r.Helper()
	var policy v1alpha1.RebootPolicy
	r.must(r.fleet.Client.Get(r.Context(), types.NamespacedName{Name: r.policy.Name}, &policy))
	two := intstr.FromInt32(2)
	policy.Spec = v1alpha1.RebootPolicySpec{
		Concurrency: &v1alpha1.Concurrency{MaxUnavailable: &two},
		Reboot:      &v1alpha1.Reboot{Settle: &v1alpha1.Duration{}},
		Drain:       &v1alpha1.Drain{OnTimeout: v1alpha1.DrainTimeoutReboot},
	}
	r.must(r.fleet.Client.Update(r.Context(), &policy))
}

// run reports whether there is the expected number of processes, all with the programs of a
// checkout.
func (r *rollout) run(processes []*process.Process, checkout string, count int) bool {
	return len(processes) == count && !slices.ContainsFunc(processes, func(p *process.Process) bool {
		return filepath.Dir(p.Path) != filepath.Dir(testenv.ShippedIn(checkout, managerProgram))
	})
}

// manifests writes a kustomization of a checkout's config/default with an image tag, without some
// kinds.
func manifests(t *testing.T, checkout, tag string, except ...string) string {
	t.Helper()
	dir := t.TempDir()
	resources, err := filepath.Rel(dir, filepath.Join(checkout, "config", "default"))
	must(t, err)
	text := &strings.Builder{}
	fmt.Fprintf(text, "resources: [%s]\nimages:\n", resources)
	for _, program := range []string{managerProgram, agentProgram} {
		fmt.Fprintf(text, "- {name: ghcr.io/reboot-operator/%s, newTag: %s}\n", program, tag)
	}
	text.WriteString("patches:\n")
	for _, kind := range except {
		fmt.Fprintf(text, "- {target: {kind: %s}, patch: '{$patch: delete, kind: %s, metadata: {name: x}}'}\n", kind, kind)
	}
	must(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text.String()), 0o600))
	return dir
}
