package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
	"github.com/reboot-operator/reboot-operator/agent/reboot"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// crashedHost is a host with its own bus, update_engine and logind, and its Node.
type crashedHost struct {
	*hosttest.Machine

	s       *scenario
	name    string
	agent   *process
	reboots atomic.Int32
}

func (s *scenario) createHost(ctx context.Context, suffix string) *crashedHost {
	m := &crashedHost{Machine: hosttest.NewMachine(s.t, "4000.0.0"), s: s, name: s.name + "-" + suffix}
	m.Engine.SetStatus(hosttest.NeedReboot("4001.0.0"))
	m.Logind.OnReboot(func() { s.wg.Go(func() { m.reboot(ctx) }) })
	m.agent = s.process("agent", m.newAgent)
	must(s.t, s.api.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: map[string]string{"scenario": s.name}}}))
	m.comesUp(ctx)
	s.createPod(ctx, m.name)
	return m
}

// createPod puts one pod on the node that nothing keeps there: no kubelet, so the API server deletes it at once.
func (s *scenario) createPod(ctx context.Context, node string) {
	zero := int64(0)
	must(s.t, s.api.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: node, Namespace: crashNamespace},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: &zero, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		},
	}))
}

func (m *crashedHost) newAgent(ctx context.Context, config *rest.Config) (manager.Manager, error) {
	return agentOf(ctx, m.Machine, config, newReadiness(clock.RealClock{}, renewAfter, patience), func(*reboot.Assembly) {}, "--node-name="+m.name)
}

// reboot is what the crashedHost does when logind is asked: everything on it dies, and a new boot begins.
func (m *crashedHost) reboot(ctx context.Context) {
	m.agent.kill()
	m.reboots.Add(1)
	if !m.s.rollsBack {
		m.Engine.SetStatus(hosttest.Idle())
	}
	if err := m.Logind.Start(); err != nil {
		m.s.t.Errorf("starting logind: %v", err)
	}
	m.comesUp(ctx)
	m.agent.start(ctx)
}

func (m *crashedHost) comesUp(ctx context.Context) {
	id := fmt.Sprintf("%08x-0000-4000-8000-%012x", m.reboots.Load(), time.Now().UnixNano()&0xffffffffffff)
	if err := m.SetBootID(id); err != nil {
		m.s.t.Errorf("writing the boot ID: %v", err)
	}
	ready := testenv.Ready(corev1.ConditionTrue, "KubeletReady", "", time.Now())
	if err := testenv.ReportReady(ctx, m.s.api, m.name, id, ready); err != nil && ctx.Err() == nil {
		m.s.t.Errorf("bringing %s up: %v", m.name, err)
	}
}
