package controllers_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/limits/footprint"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// reconciles returns the number of passes of policies in this process.
func reconciles() int { return int(sumOf("controller_runtime_reconcile_total", "rebootpolicy")) }

// depth returns the length of the queues of all managers of this process. The queues of stopped
// managers keep their length.
func depth() int { return int(sumOf("workqueue_depth", "rebootpolicy")) }

// atRest waits until nothing is decided or requested any more, including late Events, and returns
// the remaining length of the queues.
func atRest() int {
	GinkgoHelper()
	var last [3]int
	quiet := 0
	Eventually(func() int { // It counts polls instead of time, because a busy machine also delays what it waits for.
		state := [3]int{reconciles(), depth(), requests.Len()}
		if quiet++; state != last || sumOf("controller_runtime_active_workers", "rebootpolicy") > 0 {
			last, quiet = state, 0
		}
		return quiet
	}).Should(BeNumerically(">=", 25), "for half a second")
	return depth()
}

// heartbeat writes what a kubelet writes every few minutes without a change.
func (f *fleet) heartbeat(node string, t time.Time) {
	f.reports(node, map[string]any{
		"type": corev1.NodeReady, "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": t.UTC().Format(time.RFC3339),
	})
}

var _ = Describe("A flood", func() {
	// putOff is the number of passes for postponed writes, which are those of a status with changed
	// counts.
	const putOff = 2

	// flooded checks that a flood leaves nothing behind, and returns the number of passes that it
	// caused.
	flooded := func(description string, one func(i int)) (decided int) {
		GinkgoHelper()
		measures()
		remaining := -1
		rest := func() int {
			if queued := atRest(); remaining < 0 {
				remaining = queued
			} else {
				Expect(queued).To(Equal(remaining), "all that was in the queue has been looked at")
			}
			return reconciles()
		}
		decided, asked := footprint.Flood(GinkgoT(), "manager", description, one, rest, requests.Len)
		Expect(asked).To(BeNumerically("<=", putOff), "not counting watches, which end by themselves and are opened again")
		return decided
	}

	// waiting returns a fleet of waiting nodes with a policy whose windows stay closed during the
	// flood.
	waiting := func(nodes int) *fleet {
		f := makeFleet(nodes)
		f.policy("workers", func(s *v1alpha1.RebootPolicySpec) { s.Mode = v1alpha1.ModeDryRun })
		f.need(f.nodes...)
		for _, name := range f.nodes {
			Eventually(f.reason).WithArguments(name).ShouldNot(BeEmpty())
		}
		return f
	}

	It("of heartbeats on many nodes is ignored (behaviour 56)", func() {
		f := waiting(20)
		decided := flooded("heartbeats on 20 nodes", func(i int) {
			f.heartbeat(f.nodes[i%len(f.nodes)], time.Unix(int64(i), 0))
		})
		Expect(decided).To(BeNumerically("<=", putOff))
	})

	It("of changes on one node causes fewer passes than there are changes, and no write", func() {
		f := waiting(1)
		decided := flooded("changes of one node's labels", func(i int) {
			f.patch(f.nodes[0], map[string]any{"metadata": map[string]any{"labels": map[string]any{"example.com/flood": strconv.Itoa(i)}}})
		})
		Expect(decided).To(BeNumerically("<=", testenv.Number("FLOOD", 100)))
	})

	It("of Events causes no pass", func() {
		f := waiting(1)
		decided := flooded("Events about a node", func(i int) {
			Expect(api.Create(context.Background(), &eventsv1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d", f.pool, i)},
				EventTime:  metav1.NowMicro(), ReportingController: "example.com/flood", ReportingInstance: "x", Action: "Flood", Reason: "Flooded",
				Type: corev1.EventTypeNormal, Regarding: *referenceTo(f.get(f.nodes[0])), Note: "one of many",
			})).To(Succeed())
		})
		Expect(decided).To(BeNumerically("<=", putOff))
		Expect(requests.Matching(http.MethodGet, "/events")).To(BeEmpty())
	})
})

var _ = Describe("A node that needs and does not need a reboot in turn", func() {
	It("is granted and released in turn, and causes at most one Event for each reason (behaviour 3)", func() {
		f := makeFleet(1)
		p := f.policy("workers")
		name := f.nodes[0]
		created := func() int { return len(requests.Matching(http.MethodPost, "/events")) }
		atRest() // because Events of other specs may still arrive
		before := created()
		const turns = 10
		for range turns {
			f.need(name)
			Eventually(f.granted).Should(HaveLen(1))
			f.reports(name, testenv.Condition(v1alpha1.NodeRebootRequired, "False", "UpToDate"))
			Eventually(func() protocol.GrantState { return f.grant(name).State }).Should(Equal(protocol.GrantCancelled))
			Eventually(grantsOf).WithArguments(p).Should(BeEmpty())
			Eventually(f.reason).WithArguments(name).Should(BeEmpty())
		}
		footprint.AddRow(GinkgoT(), "events", fmt.Sprintf("manager, %d grants that are cancelled", turns), "", created()-before)
		Expect(created()-before).To(BeNumerically("<=", 8), "granted and taken back, on the node and on the policy, and what is reported once")
	})
})

// referenceTo returns the reference to a Node for an Event.
func referenceTo(node *corev1.Node) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
}
