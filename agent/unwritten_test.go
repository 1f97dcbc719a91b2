package main

import (
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

// maxAnnotations is the limit of the API server for the size of all annotations of an object.
const maxAnnotations = 256 << 10

// fills adds annotations to the Node so that only room bytes are left.
func (m *machine) fills(ctx SpecContext, room int) {
	GinkgoHelper()
	m.change(ctx, func(node *corev1.Node) {
		const key = "example.com/inventory"
		size := len(key)
		for key, value := range node.Annotations {
			size += len(key) + len(value)
		}
		node.Annotations[key] = strings.Repeat("x", maxAnnotations-size-room)
	})
}

// locks makes an admission policy refuse all writes of the Node by its agent, or none.
func (m *machine) locks(refuses bool) {
	m.requests.Meddle(func(r *http.Request) bool {
		return refuses && wire.IsWrite(r) && strings.HasPrefix(r.URL.Path, "/api/v1/nodes/")
	}, wire.Forbid)
}

var _ = Describe("What the agent may not write", func() {
	refused := string(v1alpha1.ReasonNodeWriteRefused)

	It("is reported by an event if the annotations are full, and the need is shown anyway", func(ctx SpecContext) {
		m := needing(ctx, patient)
		m.fills(ctx, 0)
		m.start(ctx)
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		m.emits(ctx, refused)
		Expect(m.notesOf(ctx, refused)).To(ContainElement(And(
			ContainSubstring("what the agent reports on the Node is not up to date"), ContainSubstring("annotations"))))
		Expect(m.node(ctx).Annotations).NotTo(HaveKey(v1alpha1.AnnotationEngines))
	})

	It("leaves room to end a drain if the annotations are full", func(ctx SpecContext) {
		m := draining(ctx, patient)
		looks(ctx, m) // The agent's annotation exists before the Node is full, and later changes by a few bytes.
		m.fills(ctx, 64)
		m.showsMeanwhile(ctx, v1alpha1.DefaultDrainTimeout, phaseOf, Equal("1 Aborted DrainTimedOut failures=1"))
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))
		Expect(m.notesOf(ctx, v1alpha1.EventDrainAborted)).To(ContainElement(ContainSubstring("The drain took longer than")))
	})

	It("is reported by an event with its cause at the end of a drain, and the write is retried", func(ctx SpecContext) {
		m := draining(ctx, patient)
		m.locks(true)
		m.passes(ctx, v1alpha1.DefaultDrainTimeout+time.Second)
		Eventually(func() []string { return m.notesOf(ctx, refused) }).Should(ContainElement(And(
			ContainSubstring("DrainTimedOut"), ContainSubstring("the node stays cordoned"), ContainSubstring("forbidden"))))
		m.locks(false)
		m.showsMeanwhile(ctx, time.Minute, phaseOf, Equal("1 Aborted DrainTimedOut failures=1"))
		Expect(cordonOf(m.node(ctx))).To(Equal("schedulable"))
	})
})
