package limits

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
	"github.com/reboot-operator/reboot-operator/hack/machine"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// agentPhases maps names of phases to functions that bring an agent into the phase.
var agentPhases = map[string]func(h *host){
	"it waits for an API server that accepts and does not answer": func(h *host) {
		address, connected := mute(h.t, "tcp", "127.0.0.1:0")
		h.startAt("http://"+address, h.Bus.Address())
		<-connected
	},
	"the list of its Node hangs": func(h *host) { h.hangs(watch("nodes"), h.start) },
	"the bus accepts and does not answer": func(h *host) {
		bus := filepath.Join(h.t.TempDir(), "bus")
		_, connected := mute(h.t, "unix", bus)
		h.startAt(h.URL, "unix:path="+bus)
		<-connected
	},
	"nothing needs to be done": func(h *host) {
		h.Engine.SetStatus(hosttest.Idle())
		h.start()
		h.shows(v1alpha1.NodeRebootRequired, "False")
	},
	"the write that asks for a reboot hangs": func(h *host) { h.hangs(request(http.MethodPatch, "/status"), h.start) },
	"it waits for a grant":                   (*host).asks,
	"it reads the policy, which hangs":       func(h *host) { h.hangs(request(http.MethodGet, "/rebootpolicies/"), h.granted) },
	"it looks at the pods, which hangs":      func(h *host) { h.hangs(watch("pods"), h.granted) },
	"the write that cordons hangs": func(h *host) {
		h.asks()
		h.hangs(request(http.MethodPatch, "/nodes/"), h.grant)
	},
	"a budget holds the drain up": (*host).guarded,
	"an eviction hangs": func(h *host) {
		h.pod()
		h.hangs(request(http.MethodPost, "/eviction"), h.granted)
	},
	"the whole API server hangs in a drain": func(h *host) {
		h.guarded()
		h.hangs(everything, nothing)
	},
	"it waits for volumes": func(h *host) {
		h.status(func(s *corev1.NodeStatus) {
			s.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/disk.example.com^a"}
		})
		h.granted()
		h.shows(corev1.NodeDrained, "True VolumesInUse")
	},
	"a block inhibitor holds the reboot up": func(h *host) {
		h.guarded()
		h.Logind.SetInhibitors(hosttest.BlockShutdown("backup", "not now"))
		must(h.t, api.Delete(h.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: h.Name}}))
		h.shows(corev1.NodeDrained, "True")
	},
	"logind does not list its inhibitors": func(h *host) {
		h.t.Cleanup(h.Logind.Hold("ListInhibitors"))
		h.start()
		h.called("ListInhibitors")
	},
	"logind does not answer the call to reboot": func(h *host) {
		h.t.Cleanup(h.Logind.Hold("RebootWithFlags"))
		h.granted()
		h.called("RebootWithFlags")
	},
	"the write of the point of no return hangs": func(h *host) {
		h.guarded()
		h.hangs(request(http.MethodPatch, "/status"), func() {
			must(h.t, api.Delete(h.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: h.Name}}))
		})
	},
	"the host goes down": func(h *host) {
		h.granted()
		h.called("RebootWithFlags")
	},
	"its first report after the boot hangs": func(h *host) {
		h.granted()
		h.called("RebootWithFlags")
		h.agent.Kill()
		h.boot()
		h.hangs(request(http.MethodPatch, "/status"), h.start)
	},
	"its events hang": func(h *host) { h.hangs(request(http.MethodPost, "/events"), h.asks) },
}

func TestAgent_EndsWithinFiveSecondsInEveryPhase_Behaviour58(t *testing.T) {
	t.Parallel()
	for i, phase := range slices.Sorted(maps.Keys(agentPhases)) {
		if capped(i) {
			continue
		}
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, fmt.Sprintf("host-%d", i+1))
			agentPhases[phase](h)
			ends(t, "agent", phase, h.agent)
		})
	}
}

// host is a machine with its Node, and the agent as a process.
type host struct {
	*machine.Host
	*front

	agent *process.Process
}

// newHost returns a machine that is up, with a staged update and a volume timeout of an hour. Its
// agent does not run yet.
func newHost(t *testing.T, name string) *host {
	t.Helper()
	h := &host{Host: machine.NewHost(t, name, "1"), front: newFront(t)}
	create(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	create(t, &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RebootPolicySpec{
		Drain:        &v1alpha1.Drain{VolumeDetachTimeout: &v1alpha1.Duration{Duration: time.Hour}},
		NodeSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"host": name}},
	}})
	h.boot()
	h.Engine.SetStatus(hosttest.NeedReboot("4593.1.0"))
	return h
}

// boot boots the machine with nothing staged, and plays its kubelet.
func (h *host) boot() {
	h.t.Helper()
	must(h.t, h.Boot())
	must(h.t, h.Post(h.t.Context(), api, h.Name))
}

func (h *host) node() *corev1.Node {
	h.t.Helper()
	node := &corev1.Node{}
	must(h.t, api.Get(h.t.Context(), client.ObjectKey{Name: h.Name}, node))
	return node
}

func (h *host) status(change func(*corev1.NodeStatus)) {
	h.t.Helper()
	node := h.node()
	before := node.DeepCopy()
	change(&node.Status)
	must(h.t, api.Status().Patch(h.t.Context(), node, client.MergeFrom(before)))
}

// start runs the agent against its front.
func (h *host) start() {
	h.t.Helper()
	h.startAt(h.URL, h.Bus.Address())
}

func (h *host) startAt(server, bus string) {
	h.t.Helper()
	var err error
	h.agent, err = env.Processes.Start(process.Program{
		Name: h.Name, Path: agent,
		Args: append(h.Flags(), "--kubeconfig="+kubeconfig(h.t, server), "--identity=serviceaccount", "--dbus-address="+bus, "--health-probe-bind-address=127.0.0.1:0"),
	})
	must(h.t, err)
	h.t.Cleanup(h.agent.Kill)
}

// asks runs the agent, and waits until the Node reports the need.
func (h *host) asks() {
	h.t.Helper()
	h.start()
	h.shows(v1alpha1.NodeRebootRequired, "True")
}

func (h *host) shows(kind corev1.NodeConditionType, want string) {
	h.t.Helper()
	h.showsWithin(30*time.Second, kind, want)
}

func (h *host) showsWithin(limit time.Duration, kind corev1.NodeConditionType, want string) {
	h.t.Helper()
	untilWithin(h.t, limit, fmt.Sprintf("%s of %s to be %s", kind, h.Name, want), func() bool {
		c := v1alpha1.NodeCondition(h.node().Status.Conditions, kind)
		return strings.HasPrefix(string(c.Status)+" "+c.Reason, want)
	})
}

// grant grants the reboot like the manager.
func (h *host) grant() {
	h.t.Helper()
	must(h.t, testenv.Grant(h.t.Context(), api, h.Name, h.node(), protocol.Grant{Seq: 1, State: protocol.GrantActive}))
}

// granted runs the agent, and grants the reboot.
func (h *host) granted() {
	h.t.Helper()
	h.asks()
	h.grant()
}

// guarded is like granted, with a pod that a budget protects, and waits until the drain waits for
// the pod.
func (h *host) guarded() {
	h.t.Helper()
	h.pod()
	h.budget()
	h.granted()
	h.shows(corev1.NodeDrainInProgress, "True")
}

// called waits for a call to logind.
func (h *host) called(method string) {
	h.t.Helper()
	until(h.t, method+" of logind", func() bool { return strings.Contains(strings.Join(h.Logind.Calls(), " "), method) })
}

// pod creates a pod on the machine.
func (h *host) pod() {
	h.t.Helper()
	h.podOf(h.Name, func(*corev1.Pod) {})
}

// podOf creates a named and modified pod on the machine.
func (h *host) podOf(name string, change func(*corev1.Pod)) {
	h.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"host": h.Name}, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "owner", UID: types.UID("u-" + h.Name), Controller: new(true)},
		}},
		Spec: corev1.PodSpec{
			NodeName: h.Name, Containers: []corev1.Container{{Name: "c", Image: "registry.example/c"}}, TerminationGracePeriodSeconds: new(int64),
		},
	}
	change(pod)
	must(h.t, api.Create(h.t.Context(), pod))
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	must(h.t, api.Status().Update(h.t.Context(), pod))
}

// budget creates a PodDisruptionBudget that allows no eviction of the pod.
func (h *host) budget() {
	h.t.Helper()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: h.Name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"host": h.Name}},
		},
	}
	must(h.t, api.Create(h.t.Context(), budget))
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, CurrentHealthy: 1, ExpectedPods: 2, DesiredHealthy: 1}
	must(h.t, api.Status().Update(h.t.Context(), budget))
}
