package command

import (
	"context"
	"time"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
)

const (
	// mostLooks is the number of nodes whose pods one command looks at. Each costs a LIST of its pods
	// and of the PodDisruptionBudgets of their namespaces.
	mostLooks = 20
	// lookTimeout limits the time for one node.
	lookTimeout = 10 * time.Second
)

// lookAtPods returns the fleet with the pods that are in the way on the nodes that need a reboot,
// at most mostLooks of them. It looks as their agents will later, with the rights of the user. Agents
// that look already are not repeated. If it cannot look, it also returns the error.
func lookAtPods(ctx context.Context, s *Session, f fleet.Fleet, nodes ...*record.Node) (fleet.Fleet, error) {
	config, err := s.restConfig()
	if err != nil {
		return f, err
	}
	c, err := drain.NewClient(config)
	if err != nil {
		return f, err
	}
	drainer := &drain.Drainer{Pods: c, Policy: c, Clock: s.Clock}
	found := map[string]protocol.PreflightReport{}
	var failed error
	for _, n := range nodes {
		policy := f.Policy(f.Governor.Govern(n).Policy)
		if policy == nil || !n.NeedsReboot() || n.Outstanding() || gates.PodsOf(policy).Asked(n) || len(found) == mostLooks {
			continue
		}
		asked, err := protocol.ParsePreflight(map[string]string{v1alpha1.AnnotationPreflight: gates.PodsOf(policy).Preflight()})
		if err != nil {
			return f, err
		}
		looking, cancel := context.WithTimeout(ctx, lookTimeout)
		pods, err := drainer.Look(looking, n.Name, drain.PodRules{Drain: policy.Spec.DrainOrDefault(), Blocking: policy.Spec.BlockingPods()})
		cancel()
		if err != nil {
			failed = err // it fails for the others, too
			break
		}
		found[n.Name] = protocol.PreflightReport{
			Policy: asked.Policy, Revision: asked.Revision, BootID: n.BootID, Blocking: drain.Named(pods.Blocking),
			Kept: drain.Named(pods.Kept), Guarded: drain.Named(pods.Guarded), Closed: drain.Named(pods.Closed),
		}
	}
	return f.Looked(found), failed
}
