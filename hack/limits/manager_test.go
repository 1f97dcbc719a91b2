package limits

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

// managerPhase brings a manager into a phase.
type managerPhase struct {
	name  string
	reach func(s *site)
	// keeps is the holder of the Lease afterwards. It is empty if the Lease was released or never
	// taken.
	keeps string
}

var managerPhases = []managerPhase{
	{name: "it waits for an API server that accepts and does not answer", reach: func(s *site) {
		address, connected := mute(s.t, "tcp", "127.0.0.1:0")
		s.startAt("http://" + address)
		<-connected
	}},
	{name: "the first list of Nodes hangs", reach: func(s *site) {
		s.hangs(watch("nodes"), s.start)
		s.elected() // a manager that is stopped during the election cannot know whether it has won
	}},
	{name: "the election hangs", reach: func(s *site) { s.hangs(request(http.MethodGet, "/leases/"), s.start) }},
	{name: "another one leads", keeps: "another", reach: func(s *site) {
		s.another()
		s.start()
		until(s.t, "it to stand for election", func() bool { return strings.Contains(s.manager.Tail(100), "ttempting to acquire leader lease") })
	}},
	{name: "nothing needs to be done", reach: (*site).leads},
	{name: "the list of Nodes with which a leader begins hangs", reach: func(s *site) {
		s.leads()
		s.hangs(watch("nodes"), func() { s.policy() })
	}},
	{name: "the write of the ledger hangs", reach: func(s *site) {
		s.needy()
		s.policy()
		s.hangs(request(http.MethodPut, "/status"), s.start)
	}},
	{name: "the write of a grant to its Node hangs", reach: func(s *site) {
		s.needy()
		s.policy()
		s.hangs(request(http.MethodPatch, "/nodes/"), s.start)
	}},
	{name: "hooks run", reach: func(s *site) {
		s.needy()
		s.start()
		s.policy(func(spec *v1alpha1.RebootPolicySpec) {
			spec.Hooks = &v1alpha1.Hooks{Before: []v1alpha1.AnnotationKey{"example.com/backup"}}
		})
		until(s.t, "the label that starts hooks", func() bool {
			node := &corev1.Node{}
			must(s.t, api.Get(s.t.Context(), client.ObjectKey{Name: s.name}, node))
			return node.Labels[v1alpha1.LabelBeforeReboot] != ""
		})
	}},
	{name: "a gate's Prometheus accepts and does not answer", reach: func(s *site) {
		address, connected := mute(s.t, "tcp", "127.0.0.1:0")
		s.needy()
		s.start()
		s.policy(func(spec *v1alpha1.RebootPolicySpec) {
			spec.Gates = &v1alpha1.Gates{Prometheus: []v1alpha1.PrometheusGate{{Name: "mute", URL: "http://" + address, Query: "up"}}}
		})
		<-connected
	}},
	{name: "a service that is to be notified accepts and answers nothing", reach: func(s *site) {
		address, connected := mute(s.t, "tcp", "127.0.0.1:0")
		create(s.t, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "mute"}, StringData: map[string]string{"url": "generic://" + address + "/?disabletls=yes"},
		})
		s.needy()
		s.start()
		s.policy(func(spec *v1alpha1.RebootPolicySpec) {
			spec.Notify = []v1alpha1.Notification{{SecretRef: v1alpha1.SecretReference{Name: "mute"}}}
		})
		<-connected
	}},
	{name: "the renewal of the Lease hangs", keeps: "its own", reach: func(s *site) {
		s.leads()
		s.hangs(request(http.MethodPut, "/leases/"), nothing)
	}},
	{name: "the whole API server hangs", keeps: "its own", reach: func(s *site) {
		s.needy()
		s.policy()
		s.leads()
		s.hangs(everything, nothing)
	}},
}

func TestManager_EndsWithinFiveSecondsInEveryPhase_Behaviour58(t *testing.T) {
	for i, phase := range managerPhases {
		if capped(i) {
			continue
		}
		// They run one after the other, because each would decide about all nodes.
		t.Run(phase.name, func(t *testing.T) {
			s := newSite(t, fmt.Sprintf("site-%d", i+1))
			phase.reach(s)
			led := s.holder()
			ends(t, "manager", phase.name, s.manager)
			want := phase.keeps
			if want == "its own" {
				want = led
			}
			if got := s.holder(); got != want {
				t.Errorf("the Lease is held by %q, want %q", got, want)
			}
			if how := s.manager.ExitError().Error(); led != "" && want == "" && !strings.Contains(how, " ended: exit status 0\n") {
				t.Errorf("it gave its Lease back, and %s", how)
			}
		})
	}
}

// leaseName is the name of the managers' Lease.
const leaseName = "reboot-operator-manager"

// site is a namespace with a Node that needs a reboot and a manager as a process.
type site struct {
	*front

	name    string
	manager *process.Process
}

func newSite(t *testing.T, name string) *site {
	t.Helper()
	s := &site{front: newFront(t), name: name}
	create(s.t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return s
}

// needy creates a Node that waits for its reboot.
func (s *site) needy() {
	s.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: map[string]string{"site": s.name}}}
	create(s.t, node)
	node.Status.NodeInfo.BootID = "boot"
	for kind, reason := range map[corev1.NodeConditionType]string{corev1.NodeReady: "KubeletReady", v1alpha1.NodeRebootRequired: "UpdateStaged"} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Now(),
		})
	}
	must(s.t, api.Status().Update(s.t.Context(), node))
}

// policy creates a policy that governs the Node.
func (s *site) policy(edits ...func(*v1alpha1.RebootPolicySpec)) {
	s.t.Helper()
	policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Spec: v1alpha1.RebootPolicySpec{
		NodeSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"site": s.name}}, Reboot: &v1alpha1.Reboot{Settle: &v1alpha1.Duration{}},
	}}
	for _, edit := range edits {
		edit(&policy.Spec)
	}
	create(s.t, policy)
}

func (s *site) start() {
	s.t.Helper()
	s.startAt(s.URL)
}

func (s *site) startAt(server string) {
	s.t.Helper()
	var err error
	s.manager, err = env.Processes.Start(process.Program{
		Name: s.name, Path: manager,
		Args: []string{
			"--kubeconfig=" + kubeconfig(s.t, server), "--namespace=" + s.name, "--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:0",
		},
	})
	must(s.t, err)
	s.t.Cleanup(s.manager.Kill)
}

// holder returns the holder of the Lease, or "".
func (s *site) holder() string {
	s.t.Helper()
	lease := &coordinationv1.Lease{}
	if err := api.Get(s.t.Context(), client.ObjectKey{Namespace: s.name, Name: leaseName}, lease); err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// elected waits until the manager knows that it leads.
func (s *site) elected() {
	s.t.Helper()
	until(s.t, "the manager to be elected", func() bool { return strings.Contains(s.manager.Tail(100), "uccessfully acquired lease") })
}

// leads runs the manager, and waits until it acts as leader.
func (s *site) leads() {
	s.t.Helper()
	s.start()
	s.elected()
	until(s.t, "its workers to start", func() bool { return strings.Contains(s.manager.Tail(100), "Starting workers") })
}

// another makes another manager the leader for an hour.
func (s *site) another() {
	s.t.Helper()
	now := metav1.NewMicroTime(time.Now())
	create(s.t, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: leaseName}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("another"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now, RenewTime: &now,
	}})
}
