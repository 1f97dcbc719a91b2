package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Parts of a Node, each as one string for matchers.

// shows polls the Node until text matches.
func (m *machine) shows(ctx context.Context, text func(*corev1.Node) string, matcher types.GomegaMatcher) {
	GinkgoHelper()
	Eventually(func() string { return text(m.node(ctx)) }).Should(matcher)
}

// passes advances the agent's clock once, and makes the agent reconcile.
func (m *machine) passes(ctx context.Context, by time.Duration) {
	GinkgoHelper()
	m.Clock.Jump(by)
	looks(ctx, m)
}

// showsMeanwhile is like shows, but advances the agent's clock for each poll. It may advance once
// more than needed.
func (m *machine) showsMeanwhile(ctx context.Context, each time.Duration, text func(*corev1.Node) string, matcher types.GomegaMatcher) {
	GinkgoHelper()
	Eventually(func() string {
		m.passes(ctx, each)
		return text(m.node(ctx))
	}).WithPolling(250 * time.Millisecond).Should(matcher)
}

// looksAgain returns once the agent has seen its current Node.
func (m *machine) looksAgain(ctx context.Context) {
	GinkgoHelper()
	m.looks++
	request := fmt.Sprintf("request %d.", m.looks)
	m.annotate(ctx, v1alpha1.AnnotationRebootRequested, request)
	m.shows(ctx, messageOf(v1alpha1.NodeRebootRequired), ContainSubstring(request))
}

func needOf(node *corev1.Node) string { return conditionOf(v1alpha1.NodeRebootRequired)(node) }

// conditionOf returns the status and reason of a condition, or an empty string if it is absent.
func conditionOf(kind corev1.NodeConditionType) func(*corev1.Node) string {
	return func(node *corev1.Node) string {
		c := conditionIn(node, kind)
		return strings.TrimSpace(fmt.Sprintf("%s %s", c.Status, c.Reason))
	}
}

func messageOf(kind corev1.NodeConditionType) func(*corev1.Node) string {
	return func(node *corev1.Node) string { return conditionIn(node, kind).Message }
}

// conditionIn returns a condition of the Node, or the zero condition if it is absent.
func conditionIn(node *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	return v1alpha1.NodeCondition(node.Status.Conditions, kind)
}

func progressOf(node *corev1.Node) *protocol.Progress {
	GinkgoHelper()
	p, err := protocol.ParseProgress(node.Annotations)
	Expect(err).NotTo(HaveOccurred())
	return p
}

// phaseOf returns seq, phase, reason, owner of the cordon and failures of the progress, or an empty
// string if it is absent.
func phaseOf(node *corev1.Node) string {
	p, err := protocol.ParseProgress(node.Annotations)
	if err != nil {
		return err.Error()
	}
	if p == nil {
		return ""
	}
	text := fmt.Sprintf("%d %s", p.Seq, p.Phase)
	if p.Reason != "" {
		text += " " + string(p.Reason)
	}
	if p.Cordoned {
		text += " cordoned"
	}
	if p.Failures > 0 {
		text += fmt.Sprintf(" failures=%d", p.Failures)
	}
	return text
}

// blockerOf returns the first reason in the agent's report on the Node.
func blockerOf(node *corev1.Node) string {
	r, err := protocol.ParseAgentReport(node.Annotations)
	switch {
	case err != nil:
		return err.Error()
	case r.BlockedBy == nil:
		return ""
	}
	return fmt.Sprintf("%s: %s", r.BlockedBy[0].Reason, r.BlockedBy[0].Message)
}

func cordonOf(node *corev1.Node) string {
	if node.Spec.Unschedulable {
		return "cordoned"
	}
	return "schedulable"
}

func annotationOf(key string) func(*corev1.Node) string {
	return func(node *corev1.Node) string { return node.Annotations[key] }
}

// eventsOf counts the events on the Node by reason.
func (m *machine) eventsOf(ctx context.Context) map[string]int {
	GinkgoHelper()
	reasons := map[string]int{}
	m.forEvents(ctx, func(e eventsv1.Event) { reasons[e.Reason]++ })
	return reasons
}

func (m *machine) forEvents(ctx context.Context, visit func(eventsv1.Event)) {
	GinkgoHelper()
	list := &eventsv1.EventList{}
	Expect(api.List(ctx, list)).To(Succeed())
	for _, e := range list.Items {
		if e.Regarding.Kind == "Node" && e.Regarding.Name == m.Name {
			visit(e)
		}
	}
}

// notesOf returns the notes of the events on the Node with a reason.
func (m *machine) notesOf(ctx context.Context, reason string) []string {
	GinkgoHelper()
	var notes []string
	m.forEvents(ctx, func(e eventsv1.Event) {
		if e.Reason == reason {
			notes = append(notes, e.Note)
		}
	})
	return notes
}

// up returns metric agent_engine_up by engine.
func (m *machine) up() map[string]float64 {
	GinkgoHelper()
	families, err := m.registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	up := map[string]float64{}
	for _, family := range families {
		if family.GetName() == "reboot_operator_agent_engine_up" {
			for _, metric := range family.GetMetric() {
				up[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue()
			}
		}
	}
	return up
}

func (m *machine) emits(ctx context.Context, reason string) {
	GinkgoHelper()
	Eventually(func() map[string]int { return m.eventsOf(ctx) }).Should(HaveKey(reason))
}
