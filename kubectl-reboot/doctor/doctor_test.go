package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	. "github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/hack/terminaltest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/doctor"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

const namespace = "reboot-operator-system"

// installed is a cluster that a test case may change before it becomes a fleet.
type installed struct {
	doctor.Cluster

	policies []v1alpha1.RebootPolicy
	nodes    []corev1.Node
}

func labels(part string) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "reboot-operator", "app.kubernetes.io/component": part}
}

func template(part, image string, args ...string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels(part)}, Spec: corev1.PodSpec{
		ServiceAccountName: "reboot-operator-" + part, Containers: []corev1.Container{{Name: part, Image: image, Args: args}},
	}}
}

// healthy returns a cluster of two nodes without problems.
func healthy() *installed {
	c := &installed{policies: []v1alpha1.RebootPolicy{Policy("workers", Weeknights)}, nodes: []corev1.Node{Node("n1", "workers"), Node("n2", "workers")}}
	c.Major, c.Minor, c.ServerTime = 1, 36, Now
	c.DaemonSets = []appsv1.DaemonSet{{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reboot-operator-agent"}, Spec: appsv1.DaemonSetSpec{Template: template("agent", "registry.example.com/agent:v1")},
		Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2},
	}}
	c.Deployments = []appsv1.Deployment{{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reboot-operator-manager"}, Spec: appsv1.DeploymentSpec{Template: template("manager", "registry.example.com/manager:v1")},
		Status: appsv1.DeploymentStatus{ReadyReplicas: 2, Replicas: 2},
	}}
	for _, name := range []string{"n1", "n2"} {
		c.AgentPods = append(c.AgentPods, corev1.Pod{
			Spec:   corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: "agent", Image: "registry.example.com/agent:v1"}}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		})
		c.Leases = append(c.Leases, lease(name, -8*time.Second))
	}
	c.Budgets = []policyv1.PodDisruptionBudget{budget(2, 3)}
	c.Schema = stored()
	return c
}

// stored returns the schema of config/crd.
func stored() map[string]any {
	text, err := os.ReadFile("../../config/crd/bases/reboot-operator.io_rebootpolicies.yaml")
	if err != nil {
		panic(err)
	}
	var definition map[string]any
	if err := yaml.Unmarshal(text, &definition); err != nil {
		panic(err)
	}
	versions, _, err := unstructured.NestedSlice(definition, "spec", "versions")
	if err != nil {
		panic(err)
	}
	return versions[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
}

func lease(node string, renewed time.Duration) coordinationv1.Lease {
	t := metav1.NewMicroTime(Now.Add(renewed))
	return coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: coordinationv1.LeaseSpec{RenewTime: &t}}
}

func budget(healthy, expected int32) policyv1.PodDisruptionBudget {
	return policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Status: policyv1.PodDisruptionBudgetStatus{DesiredHealthy: healthy, ExpectedPods: expected},
	}
}

func (c *installed) examine() doctor.Diagnosis {
	manager := c.Fleet.Manager
	c.Fleet = fleet.New(c.policies, c.nodes, Now)
	c.Fleet.Manager = manager
	return doctor.Examine(c.Cluster)
}

// other adds a workload of another program.
func (c *installed) other(name, image string, command ...string) {
	spec := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image, Command: command}}}}
	c.DaemonSets = append(c.DaemonSets, appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}, Spec: appsv1.DaemonSetSpec{Template: spec}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2},
	})
}

func unreported(status corev1.ConditionStatus, message string) func(*corev1.Node) {
	return Condition(v1alpha1.NodeRebootRequired, status, "any", time.Hour, message)
}

// TestExamine tests that each problem gives exactly its own finding.
func TestExamine(t *testing.T) {
	const conflict = "locksmithd is active on this host and may reboot it at any time: systemctl mask --now locksmithd.service on the host, " + v1alpha1.CoordinatorAdvice + "."
	cases := map[string]struct {
		edit func(*installed)
		// want holds the check, the level, the nodes and a part of the message of each finding.
		want []string
	}{
		"nothing": {func(*installed) {}, nil},
		"a definition without some fields": {func(c *installed) {
			unstructured.RemoveNestedField(c.Schema, "properties", "spec", "properties", "rings", "items", "properties", "soak")
			unstructured.RemoveNestedField(c.Schema, "properties", "status", "properties", "gates")
		}, []string{"Version Problem [] the CustomResourceDefinition of RebootPolicy is older than this plugin: the API server drops spec.rings.soak, status.gates from policies"}},
		"a node that needs a reboot and that no policy selects": {func(c *installed) {
			c.nodes = append(c.nodes, Node("n3", "other", Needs(time.Hour)))
			c.AgentPods = append(c.AgentPods, *c.AgentPods[0].DeepCopy())
			c.AgentPods[2].Spec.NodeName = "n3"
		}, []string{"Policies Problem [n3] no policy selects n3, but a reboot is needed there"}},
		"a hook that does not answer": {func(c *installed) {
			c.policies = []v1alpha1.RebootPolicy{Policy("workers", Holds("n1", 1, 20*time.Minute), Spec(func(s *v1alpha1.RebootPolicySpec) {
				s.Hooks = &v1alpha1.Hooks{Before: []v1alpha1.AnnotationKey{"example.com/backup"}}
			}))}
			c.nodes[0] = Node("n1", "workers", Needs(time.Hour), func(n *corev1.Node) {
				n.Annotations[v1alpha1.AnnotationHooks] = protocol.BeginHooks(v1alpha1.LedgerEntry{Node: n.Name, Seq: 1}, "workers", n.Status.NodeInfo.BootID,
					v1alpha1.HooksBefore, []v1alpha1.AnnotationKey{"example.com/backup"}, Ago(15*time.Minute).Time).String()
			})
		}, []string{"Policies Problem [n1] hooks have not answered since "}},
		"a policy that only tries, and a node waits": {func(c *installed) {
			c.policies[0].Spec.Mode = v1alpha1.ModeDryRun
			c.nodes[0] = Node("n1", "workers", Needs(time.Hour))
		}, []string{"Policies Warning [] policy workers is in mode DryRun, so it grants nothing; 1 node waits"}},
		"a service that was not notified": {func(c *installed) {
			c.Unsent = []corev1.Event{{InvolvedObject: corev1.ObjectReference{Name: "workers"}, Message: "Secret slack not found"}, {InvolvedObject: corev1.ObjectReference{Name: "workers"}}}
		}, []string{"Policies Warning [] a service of spec.notify of policy workers was not notified: Secret slack not found"}},
		"an old cluster":                    {func(c *installed) { c.Minor = 30 }, []string{"Version Problem [] the operator needs 1.31"}},
		"no impersonation":                  {func(c *installed) { c.Minor = 35 }, []string{"Version Problem [] deploy again to let them act as a ServiceAccount"}},
		"needless rights":                   {func(c *installed) { plain(c) }, []string{"Version Warning [] deploy again to limit each to its node"}},
		"the fallback for an older cluster": {func(c *installed) { c.Minor = 31; plain(c) }, nil},
		"no manager":                        {func(c *installed) { c.Deployments = nil }, []string{"Manager Problem [] the Deployment of the manager is missing"}},
		"a manager that has stopped": {
			func(c *installed) {
				c.Fleet.Manager = fleet.ManagerOf([]coordinationv1.Lease{lease("m", -time.Hour)}, nil)
			},
			[]string{"Manager Problem [] no manager has run since Mon 2026-11-23 14:48:00 UTC"},
		},
		"a manager of whom nothing is known": {
			func(c *installed) { c.Fleet.Manager = fleet.ManagerOf(nil, forbidden) }, []string{"Manager Unchecked [] it is unknown whether a manager runs: "},
		},
		"two installations": {
			func(c *installed) {
				c.Deployments, c.DaemonSets = append(c.Deployments, c.Deployments[0]), append(c.DaemonSets, c.DaemonSets[0])
				c.Deployments[1].Namespace, c.DaemonSets[1].Namespace = "old", "old"
			}, []string{
				"Manager Problem [] the manager is installed 2 times (reboot-operator-system/reboot-operator-manager, old/reboot-operator-manager): remove all but one",
				"Agents Problem [] the agent is installed 2 times (reboot-operator-system/reboot-operator-agent, old/reboot-operator-agent)",
			},
		},
		"no manager is Ready": {func(c *installed) { c.Deployments[0].Status.ReadyReplicas = 0 }, []string{"Manager Problem [] no replica of the manager is Ready"}},
		"the manager lags":    {func(c *installed) { c.policies[0].Generation = 2 }, []string{"Manager Problem [] has not acted on the last change of policy workers"}},
		"the manager does not grant": {
			func(c *installed) { Needs(time.Hour)(&c.nodes[0]); c.policies[0] = Policy("workers") }, []string{"Policies Warning [n1] nothing blocks n1, so the manager should grant now"},
		},
		"no agents":        {func(c *installed) { c.DaemonSets, c.AgentPods = nil, nil }, []string{"Agents Problem [] the DaemonSet of the agents is missing"}},
		"an agent missing": {func(c *installed) { c.AgentPods = c.AgentPods[1:] }, []string{"Agents Problem [n1] no agent is Ready on n1"}},
		"an agent not Ready": {
			func(c *installed) { c.AgentPods[1].Status.Conditions[0].Status = corev1.ConditionFalse }, []string{"Agents Problem [n2] no agent is Ready on n2"},
		},
		"a node that is down": {func(c *installed) { c.AgentPods = c.AgentPods[1:]; NotReady(&c.nodes[0]) }, nil},
		"a node that is new": {
			func(c *installed) {
				c.AgentPods = c.AgentPods[1:]
				Condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", 20*time.Second)(&c.nodes[0])
			}, nil,
		},
		"a node outside the agents' nodeSelector": {
			func(c *installed) { another(c, "freebsd"); c.DaemonSets[0].Spec.Template.Spec.NodeSelector = linux }, []string{"Policies Warning [n3] no policy selects n3"},
		},
		"a Windows node": {
			func(c *installed) { another(c, "windows"); c.DaemonSets[0].Spec.Template.Spec.NodeSelector = linux }, nil,
		},
		"a Windows node, and no agents": {
			func(c *installed) { another(c, "windows"); c.DaemonSets, c.AgentPods = nil, nil }, []string{"Agents Problem [] the DaemonSet of the agents is missing"},
		},
		"a node on which the manager creates no agent": {
			func(c *installed) {
				another(c, "freebsd")
				c.DaemonSets[0].Spec.Template.Spec.Affinity = &corev1.Affinity{}
			}, []string{"Policies Warning [n3] no policy selects n3"},
		},
		"a policy for nodes outside the agents' nodeSelector": {
			func(c *installed) {
				another(c, "freebsd")
				c.DaemonSets[0].Spec.Template.Spec.NodeSelector = linux
				c.policies = append(c.policies, Policy("freebsd"))
			}, []string{"Agents Problem [n3] no agent is Ready on n3", "Engines Problem [n3] no agent has ever reported"},
		},
		"an old agent": {
			func(c *installed) { c.AgentPods[0].Spec.Containers[0].Image = "registry.example.com/agent:v0" }, []string{"Agents Warning [n1] the agents of n1 do not run image registry.example.com/agent:v1"},
		},
		"other versions": {
			func(c *installed) {
				c.Deployments[0].Spec.Template.Spec.Containers[0].Image = "localhost:5000/manager:v2"
			}, []string{"Agents Warning [] the agents have version v1, but the manager has v2"},
		},
		"digests name no version": {
			func(c *installed) {
				c.Deployments[0].Spec.Template.Spec.Containers[0].Image = "localhost:5000/manager@sha256:12"
			}, nil,
		},
		"rights missing": {
			func(c *installed) { c.Missing = c.NeededRights()[1:3] }, []string{"Rights Problem [] ServiceAccount reboot-operator-system/reboot-operator-manager may not: patch nodes, patch nodes/status"},
		},
		"kured":                  {func(c *installed) { c.other("kured", "ghcr.io/kubereboot/kured:1.17.0") }, []string{"Operators Problem [] kured runs as daemonset kube-system/kured"}},
		"poseidon/fleetlock":     {func(c *installed) { c.other("fleetlock", "quay.io/poseidon/fleetlock:v0.4.0") }, []string{"Operators Problem [] poseidon/fleetlock runs as daemonset kube-system/fleetlock"}},
		"kured, rebuilt":         {func(c *installed) { c.other("reboots", "registry.example.com/tools:1", "/usr/bin/kured") }, []string{"Operators Problem [] kured runs as daemonset kube-system/reboots"}},
		"kured without a node":   {func(c *installed) { c.other("kured", "kured"); c.DaemonSets[1].Status = appsv1.DaemonSetStatus{} }, nil},
		"FLUO":                   {func(c *installed) { c.other("update-agent", "ghcr.io/flatcar/flatcar-linux-update-operator:v0.9.0") }, []string{"Operators Problem [] FLUO runs"}},
		"CLUO":                   {func(c *installed) { c.other("update-agent", "quay.io/coreos/container-linux-update-operator") }, []string{"Operators Problem [] CLUO runs"}},
		"upgrade controller":     {func(c *installed) { c.other("suc", "rancher/system-upgrade-controller:v0.14@sha256:aa") }, []string{"Operators Warning [] system-upgrade-controller runs"}},
		"FLUO as a Deployment":   {func(c *installed) { deployed(c, 1) }, []string{"Operators Problem [] FLUO runs as deployment kube-system/operator"}},
		"FLUO without a replica": {func(c *installed) { deployed(c, 0) }, nil},
		"like kured":             {func(c *installed) { c.other("kured-exporter", "example.com/kured-exporter:1") }, nil},
		"locksmithd, and no need for a reboot": {
			func(c *installed) {
				unreported(corev1.ConditionFalse, "No update. "+conflict+" Reported by update-engine.")(&c.nodes[0])
				unreported(corev1.ConditionFalse, "No update. "+conflict+" Reported by update-engine.")(&c.nodes[1])
			}, []string{"Coordinators Problem [n1 n2] locksmithd is active"},
		},
		"locksmithd, and a need for a reboot": {
			func(c *installed) {
				Annotated(v1alpha1.AnnotationReport, protocol.AgentReport{BlockedBy: []protocol.Blocker{
					{Reason: v1alpha1.ReasonInhibited, Message: "busy"}, {Reason: v1alpha1.ReasonCoordinatorConflict, Message: conflict},
				}}.String())(&c.nodes[1])
			}, []string{"Coordinators Problem [n2] locksmithd is active"},
		},
		"no engine": {
			func(c *installed) {
				unreported(corev1.ConditionUnknown, "No update engine is found on this host.")(&c.nodes[0])
			}, []string{"Engines Problem [n1] No update engine is found"},
		},
		"never reported": {
			func(c *installed) { c.nodes[1].Status.Conditions = c.nodes[1].Status.Conditions[:1] }, []string{"Engines Problem [n2] no agent has ever reported"},
		},
		"no policy":         {func(c *installed) { c.policies = nil }, []string{"Policies Problem [] the cluster has no RebootPolicy"}},
		"no policy selects": {func(c *installed) { c.nodes[0].Labels = nil }, []string{"Policies Warning [n1] no policy selects n1"}},
		"two policies":      {func(c *installed) { c.policies = append(c.policies, everybody()) }, []string{"Policies Problem [n1 n2] policies rival, workers select the same nodes with the same priority, which are not rebooted; raise spec.priority of one"}},
		"an empty policy":   {func(c *installed) { c.policies = append(c.policies, Policy("gpu")) }, []string{"Policies Warning [] policy gpu governs no node"}},
		"a ring without nodes": {
			func(c *installed) {
				c.policies[0].Spec.Rings = []v1alpha1.Ring{{Name: "canary", NodeSelector: v1alpha1.LabelSelector{MatchLabels: map[string]string{"stage": "canary"}}}, {Name: "rest"}}
			}, []string{"Policies Warning [] ring canary of policy workers has no node"},
		},
		"a policy in DryRun": {func(c *installed) { c.policies[0].Spec.Mode = v1alpha1.ModeDryRun }, []string{"Policies Warning [] policy workers is in mode DryRun"}},
		"a pause":            {func(c *installed) { c.policies[0].Spec.Pause = &v1alpha1.Pause{} }, []string{"Policies Warning [] policy workers is paused"}},
		"an urgent policy": {
			func(c *installed) {
				c.policies[0].Spec.Urgent = &v1alpha1.Urgent{All: &v1alpha1.UrgentPeriod{Until: metav1.NewTime(Now.Add(time.Hour)), Reason: "CVE-2026-12345", Ignore: []v1alpha1.UrgentIgnore{v1alpha1.UrgentIgnoresWindows}}}
			}, []string{"Policies Warning [] policy workers is urgent until"},
		},
		"a halt": {func(c *installed) { Halted("2 nodes failed")(&c.policies[0]) }, []string{"Policies Problem [] policy workers has halted"}},
		"never open": {
			func(c *installed) {
				c.policies[0].Spec.Windows = []v1alpha1.Window{{Name: "never", Days: []v1alpha1.Day{"Mon"}, Start: "22:00", Duration: v1alpha1.Duration{Duration: time.Hour}}}
				c.policies[0].Spec.Blackouts = []v1alpha1.Blackout{{Name: "long", From: "2026-01-01", To: "2029-01-01"}}
			}, []string{"Windows Problem [] no window of policy workers opens within 400 days"},
		},
		"too short": {
			func(c *installed) { c.policies[0].Spec.Windows[0].Duration.Duration = 4 * time.Minute },
			[]string{"Windows Warning [] the longest window of policy workers lasts 4m0s, and the drain and reboot of a node take 5m0s"},
		},
		"windows that cannot be read": {
			func(c *installed) { c.policies[0].Spec.Windows[0].TimeZone = "Mars/Olympus" }, []string{"Policies Problem [] policy workers is not in force"},
		},
		"a policy is being deleted": {func(c *installed) {
			c.policies = append(c.policies, Policy("old"))
			c.policies[1].DeletionTimestamp = new(Ago(time.Minute))
		}, []string{"Policies Warning [] policy old is being deleted"}},
		"a limit of 0": {func(c *installed) { AtMost("0%")(&c.policies[0]) }, []string{"Budgets Problem [] policy workers grants nothing: maxUnavailable is 0%"}},
		"a limit of 0 shared by another policy": {
			func(c *installed) {
				AtMost("0")(&c.policies[0])
				c.policies[0].Spec.NodeSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/hostname": "n1"}}
				c.policies = append(c.policies, everybody())
				c.policies[1].Spec.Concurrency = &v1alpha1.Concurrency{Shared: "workers"}
			}, []string{"Policies Warning [] policy workers governs no node", "Budgets Problem [] policy rival grants nothing: maxUnavailable of policy workers, whose limit it shares, is 0"},
		},
		"a flag with the value kured": {func(c *installed) { c.other("exporter", "example.com/exporter", "/exporter", "--namespace", "kured") }, nil},
		"a limit shared with a policy that does not exist": {
			func(c *installed) { c.policies[0].Spec.Concurrency = &v1alpha1.Concurrency{Shared: "nobody"} },
			[]string{"Policies Problem [] policy workers is not in force: spec.concurrency.shared: policy nobody does not exist"},
		},
		"a strict budget":  {func(c *installed) { c.Budgets[0] = budget(3, 3) }, []string{"Budgets Warning [] PodDisruptionBudget shop/db requires all of its 3 pods to run at all times: their nodes are drained last and retried repeatedly"}},
		"an unused budget": {func(c *installed) { c.Budgets[0] = budget(0, 0) }, nil},
		"a gate that cannot be queried": {
			func(c *installed) {
				c.policies[0].Status.Gates = []v1alpha1.GateStatus{{Name: "slo", State: v1alpha1.GateUnreachable, Message: "connection refused"}, {Name: "ok", State: v1alpha1.GateFiring}}
			}, []string{"Gates Problem [] gate slo of policy workers cannot be queried: connection refused"},
		},
		"a node's clock ahead":        {func(c *installed) { c.Leases[0] = lease("n1", 12*time.Second) }, []string{"Clocks Problem [n1] the clock of n1 is 12s ahead of"}},
		"a node's clock behind":       {func(c *installed) { c.Leases[1] = lease("n2", -5*time.Minute) }, []string{"Clocks Problem [n2] the clock of n2 is 5m0s behind"}},
		"a silent kubelet":            {func(c *installed) { c.Leases[1] = lease("n2", -5*time.Minute); NotReady(&c.nodes[1]) }, nil},
		"this machine's clock behind": {func(c *installed) { c.ServerTime = Now.Add(30 * time.Second) }, []string{"Clocks Warning [] the clock of this machine is 30s behind"}},
		"nothing else could be read": {
			func(c *installed) {
				c.DaemonSets, c.Deployments, c.AgentPods, c.Leases, c.Budgets, c.Major, c.ServerTime = nil, nil, nil, nil, nil, 0, time.Time{}
				c.Unread = map[doctor.Check]error{doctor.Agents: fmt.Errorf("listing DaemonSets: %w", forbidden), doctor.Manager: fmt.Errorf("listing Deployments: %w", forbidden)}
			}, []string{"Manager Unchecked [] listing Deployments: ", "Agents Unchecked [] listing DaemonSets: "},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := healthy()
			tc.edit(c)
			found := c.examine().Findings
			for i, f := range found {
				got := string(f.Check) + " " + string(f.Level) + " [" + strings.Join(f.Nodes, " ") + "] " + f.Message
				if i >= len(tc.want) {
					t.Errorf("found, too: %s", got)
					continue
				}
				head, part, _ := strings.Cut(tc.want[i], "] ")
				if !strings.HasPrefix(got, head+"] ") || !strings.Contains(f.Message, part) {
					t.Errorf("got %s, want %s", got, tc.want[i])
				}
				if f.Command == "" && f.Check != doctor.Clocks && f.Check != doctor.Coordinators && !strings.Contains(f.Message, "upgrade the cluster") {
					t.Errorf("no command follows %s", got)
				}
			}
			if len(found) < len(tc.want) {
				t.Errorf("not found: %s", tc.want[len(found):])
			}
		})
	}
}

// forbidden is the API server's error for a user without permission.
var forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", errors.New("no rights"))

// deployed adds a Deployment of FLUO.
func deployed(c *installed, replicas int32) {
	c.Deployments = append(c.Deployments, appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "operator"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "ghcr.io/flatcar/flatcar-linux-update-operator:v0.9.0"}},
		}}},
	})
}

// linux is the node selector of config/agent.
var linux = map[string]string{corev1.LabelOSStable: "linux"}

// another adds a node of another operating system, which has no agent. The other nodes run Linux.
func another(c *installed, system string) {
	c.nodes = append(c.nodes, Node("n3", system))
	for i, system := range []string{"linux", "linux", system} {
		c.nodes[i].Labels[corev1.LabelOSStable] = system
	}
	c.nodes[2].Status.Conditions = c.nodes[2].Status.Conditions[:1]
}

// plain gives the agents their own permissions.
func plain(c *installed) {
	c.DaemonSets[0].Spec.Template.Spec.Containers[0].Args = []string{"--host-root=/host", "--identity=serviceaccount"}
}

// everybody returns a policy that selects every node.
func everybody() v1alpha1.RebootPolicy {
	p := Policy("rival")
	p.Spec.NodeSelector = nil
	return p
}

// TestAbout tests that About returns findings of the node and of the whole cluster, and that Bad
// does not count warnings.
func TestAbout(t *testing.T) {
	c := healthy()
	c.AgentPods[0].Spec.Containers[0].Image = "old"
	c.Leases[1] = lease("n2", time.Hour)
	c.other("kured", "kured")
	report := c.examine()
	counts := []int{len(report.Findings), report.Bad()}
	for _, name := range []string{"n1", "n2"} {
		about := report.About(name)
		counts = append(counts, len(about.Findings), about.Bad())
	}
	if diff := cmp.Diff([]int{3, 2, 2, 1, 2, 2}, counts); diff != "" {
		t.Error(diff)
	}
	c = healthy()
	c.nodes[0].Spec.Unschedulable = true
	c.nodes[0].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: new(Ago(2 * time.Hour))}}
	c.nodes = append(c.nodes, Node("n3", "workers"))
	c.policies[0] = Policy("workers")
	Needs(2 * time.Hour)(&c.nodes[1])
	if found := c.examine().About("n2").Findings; len(found) != 1 || !strings.HasPrefix(found[0].Message, "n1 is cordoned since ") {
		t.Errorf("n2 waits for n1: %v", found)
	}
	if found := c.examine().About("n3").Findings; len(found) != 1 || !strings.HasPrefix(found[0].Message, "no agent is Ready on n3") {
		t.Errorf("n3 waits for nothing: %v", found)
	}
}

// TestExamine_AnotherNamespace tests that commands use the namespace in which the operator runs.
func TestExamine_AnotherNamespace(t *testing.T) {
	c := healthy()
	c.DaemonSets[0].Namespace, c.Deployments[0].Namespace = "node-ops", "node-ops"
	c.Deployments[0].Status.ReadyReplicas = 0
	c.policies[0].Generation = 2
	c.nodes[1].Status.Conditions = c.nodes[1].Status.Conditions[:1]
	c.AgentPods = c.AgentPods[1:]
	found := c.examine().Findings
	if len(found) != 4 {
		t.Errorf("found %v", found)
	}
	for _, f := range found {
		if !strings.Contains(f.Command, " -n node-ops ") && !strings.Contains(f.Command, " -A ") {
			t.Errorf("%s: %s", f.Message, f.Command)
		}
	}
}

// TestExamine_Helm tests that an installation by Helm gets commands for Helm.
func TestExamine_Helm(t *testing.T) {
	const again = "helm upgrade reboots config/chart --namespace reboot-operator-system --reset-then-reuse-values"
	byHelm := map[string]string{"meta.helm.sh/release-name": "reboots"}
	for name, c := range map[string]struct {
		edit       func(*installed)
		make, helm string
	}{
		"another identity":     {plain, "make deploy", again + " --set identity=auto"},
		"no manager":           {func(c *installed) { c.Deployments = nil }, "make deploy", again},
		"no agents":            {func(c *installed) { c.DaemonSets, c.AgentPods = nil, nil }, "make deploy", again},
		"nothing is installed": {func(c *installed) { c.Deployments, c.DaemonSets, c.AgentPods = nil, nil, nil }, "make deploy", "make deploy"},
		"missing permissions":  {func(c *installed) { c.Missing = c.NeededRights()[:1] }, "make deploy", again},
	} {
		byMake, withHelm := healthy(), healthy()
		withHelm.DaemonSets[0].Annotations, withHelm.Deployments[0].Annotations = byHelm, byHelm
		for cluster, want := range map[*installed]string{byMake: c.make, withHelm: c.helm} {
			c.edit(cluster)
			for _, f := range cluster.examine().Findings {
				if f.Command != want {
					t.Errorf("%s: %s: %s, want %s", name, f.Message, f.Command, want)
				}
			}
		}
	}
}

// TestExamine_GitOps tests that an installation by Flux or Argo CD gets commands for these.
func TestExamine_GitOps(t *testing.T) {
	for want, of := range map[string]metav1.ObjectMeta{
		"kubectl edit helmrelease --namespace flux-system reboots":  {Labels: map[string]string{"helm.toolkit.fluxcd.io/name": "reboots", "helm.toolkit.fluxcd.io/namespace": "flux-system"}},
		"flux reconcile kustomization --namespace flux-system apps": {Labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}},
		"argocd app sync reboots":                                   {Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "reboots:apps/Deployment:ns/manager"}},
	} {
		c := healthy()
		c.Deployments[0].Labels, c.Deployments[0].Annotations = of.Labels, of.Annotations
		c.Missing = c.NeededRights()[:1]
		if got := c.examine().Findings[0].Command; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestNeededRights tests that an agent needs the permissions of one of its two identities.
func TestNeededRights(t *testing.T) {
	verbs := func(c *installed) string {
		var all []string
		for _, r := range c.NeededRights() {
			if r.Account == "reboot-operator-agent" {
				all = append(all, r.Verb+" "+r.Resource)
			}
		}
		return strings.Join(all, ", ")
	}
	c := healthy()
	if got := verbs(c); !strings.Contains(got, "impersonate:associated-node nodes") || strings.Contains(got, ", patch nodes") {
		t.Errorf("as the node: %s", got)
	}
	plain(c)
	if got := verbs(c); strings.Contains(got, "impersonate") || !strings.Contains(got, ", patch nodes") {
		t.Errorf("by its own rights: %s", got)
	}
	c.DaemonSets, c.Deployments = nil, nil
	if len(c.NeededRights()) > 0 {
		t.Error("rights of no ServiceAccount")
	}
}

// TestExamine_RightsAreForThoseWhoLackThem tests that more permissions are not suggested if the API
// server does not answer.
func TestExamine_RightsAreForThoseWhoLackThem(t *testing.T) {
	for why, helps := range map[error]bool{forbidden: true, context.DeadlineExceeded: false, errors.New("forbidden.example.com does not answer"): false} {
		c := healthy()
		c.Unread = map[doctor.Check]error{doctor.Clocks: fmt.Errorf("listing Leases: %w", why)}
		if got := c.examine().Findings[0].Command; strings.Contains(got, "clusterrolebinding") != helps {
			t.Errorf("%s: %q", why, got)
		}
	}
}

// TestExamine_AFirstPolicy tests that the advice needs no files, because a release has none to
// apply.
func TestExamine_AFirstPolicy(t *testing.T) {
	c := healthy()
	c.policies = nil
	if got := c.examine().Findings[0].Command; got != "kubectl reboot status" {
		t.Errorf("got %q, want the command that proposes a policy", got)
	}
}

func TestLines(t *testing.T) {
	sick := healthy()
	sick.Minor = 34
	sick.other("kured", "ghcr.io/kubereboot/kured:1.17.0")
	sick.nodes = append(sick.nodes, Node("n3", "none"))
	sick.policies[0].Spec.Urgent = &v1alpha1.Urgent{All: &v1alpha1.UrgentPeriod{Until: metav1.NewTime(Now.Add(time.Hour)), Reason: "CVE-2026-12345"}}
	sick.Unread = map[doctor.Check]error{doctor.Rights: fmt.Errorf("checking the permissions of the ServiceAccounts: %w", forbidden)}
	for name, tc := range map[string]struct {
		c    *installed
		look terminal.Look
	}{"well": {healthy(), terminal.Look{}}, "sick": {sick, terminal.Look{}}, "80-columns": {sick, terminal.Look{Width: 80}}} {
		t.Run(name, func(t *testing.T) {
			tc.look.Zone = Berlin
			terminaltest.Golden(t, name, tc.c.examine().Lines(tc.look))
		})
	}
}

// TestCheckPolicies_Unchecked tests that a check without the data that it needs is named, and that
// a limit of zero is found all the same.
func TestCheckPolicies_Unchecked(t *testing.T) {
	never := Policy("w", Spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Concurrency = &v1alpha1.Concurrency{MaxUnavailable: new(intstr.FromInt32(0))}
	}))
	candidate := []doctor.Candidate{{Name: "w"}}
	for name, tc := range map[string]struct {
		policies []v1alpha1.RebootPolicy
		checked  []doctor.Candidate
		unread   error
		want     []string
	}{
		"no nodes": {[]v1alpha1.RebootPolicy{Policy("w")}, candidate, nil, []string{"selectors, rings and conflicts were not checked, because the cluster has no nodes"}},
		"no nodes and a limit of zero": {[]v1alpha1.RebootPolicy{never}, candidate, nil, []string{
			"policy w grants nothing: maxUnavailable is 0", "selectors, rings and conflicts were not checked, because the cluster has no nodes",
		}},
		"no cluster": {[]v1alpha1.RebootPolicy{Policy("w")}, candidate, errors.New("refused"), []string{
			"selectors, rings, conflicts, shared limits and the API server's own validation were not checked: refused",
		}},
		"no policies": {nil, nil, nil, []string{"the cluster has no RebootPolicy, so nothing was checked"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range doctor.CheckPolicies(fleet.New(tc.policies, nil, Now), tc.checked, tc.unread).Findings {
				got = append(got, f.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
