package main

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/reboot-operator/reboot-operator/agent/reboot"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
	played "github.com/reboot-operator/reboot-operator/hack/machine"
)

// crashedHost is a host with its Node and its own bus, update_engine and logind.
type crashedHost struct {
	*played.Host

	s     *scenario
	agent *process
	// steady reports whether the FleetLock client of the host has reported its steady state after the reboot.
	steady atomic.Bool
}

// reboots returns the number of reboots of the host.
func (h *crashedHost) reboots() int { return h.Boots() - 1 }

func (s *scenario) createHost(ctx context.Context, suffix string) *crashedHost {
	m := &crashedHost{Host: played.NewHost(s.t, s.name+"-"+suffix, "4000.0.0"), s: s}
	m.Logind.OnReboot(func() { s.wg.Go(func() { m.reboot(ctx) }) })
	m.agent = s.process("agent", m.newAgent)
	must(s.t, s.api.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name, Labels: map[string]string{"scenario": s.name}}}))
	m.comesUp(ctx, !s.fleetLock)
	s.createPod(ctx, m.Name)
	return m
}

// createPod creates a pod on the node that the API server deletes at once, because the node has no
// kubelet.
func (s *scenario) createPod(ctx context.Context, node string) {
	zero := int64(0)
	must(s.t, s.api.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: node, Namespace: crashNamespace},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: &zero, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		},
	}))
}

func (h *crashedHost) newAgent(ctx context.Context, config *rest.Config) (manager.Manager, error) {
	return agentOf(ctx, h.Host, config, newReadiness(clock.RealClock{}, renewAfter), func(*reboot.Assembly) {})
}

// reboot reboots the host for logind: everything on it ends, and a new boot begins.
func (h *crashedHost) reboot(ctx context.Context) {
	h.agent.kill()
	h.comesUp(ctx, h.s.rollsBack)
	h.agent.start(ctx)
}

// comesUp starts a new boot with its kubelet. An update is staged or not.
func (h *crashedHost) comesUp(ctx context.Context, staged bool) {
	if err := h.Boot(); err != nil {
		h.s.t.Errorf("booting: %v", err)
	}
	if staged {
		h.Engine.SetStatus(hosttest.NeedReboot("4001.0.0"))
	}
	if err := h.Post(ctx, h.s.api, h.Name); err != nil && ctx.Err() == nil {
		h.s.t.Errorf("bringing %s up: %v", h.Name, err)
	}
}
