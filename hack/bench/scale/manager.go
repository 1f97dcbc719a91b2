package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

const (
	// managerUser is the manager's user in real clusters, which tells its requests apart from all
	// others.
	managerUser = "system:serviceaccount:" + namespace + ":reboot-operator-manager"
	// startLimit is the time within which the manager must read all nodes. rebootLimit is the time
	// for a reboot, from the need to its confirmation.
	startLimit, rebootLimit = 2 * time.Minute, 10 * time.Second
)

// size holds what was measured with one number of nodes.
type size struct {
	nodes int
	// manager is the process of the manager. synced is the time from its start until its status
	// counted all nodes.
	manager *process.Process
	synced  time.Duration
	// started is its memory at that time, and rested its memory after the period at rest. resting
	// is its CPU time in a minute at rest.
	started, rested process.Memory
	resting         time.Duration
	// beats is the number of heartbeats per second at rest.
	beats float64
	// atStart, atRest and loaded count the manager's requests: during its start, during the period
	// rest, and during reboots.
	atStart, atRest, loaded fleet.Asked
	rest                    time.Duration
	// handover holds the times from the last report of a node's agent to the next node's grant, and
	// afterFinish those from the manager's confirmation to that grant.
	handover, afterFinish []time.Duration
	reboots               int
	// took and cpu are the time and the manager's CPU time for all reboots. end is its memory after
	// them.
	took, cpu time.Duration
	end       process.Memory
}

// managed measures the manager on one lab, size after size.
type managed struct {
	options *options
	lab     *lab
	// manager is the path of the program.
	manager, kubeconfig string
}

func (m *managed) prepare(ctx context.Context) (err error) {
	if m.manager, err = testenv.Build(ctx, "manager"); err != nil {
		return err
	}
	m.kubeconfig, err = m.lab.cluster.UserKubeconfig(managerUser, "system:masters")
	return err
}

// measure measures with the given number of nodes, which must not be lower than before.
func (m *managed) measure(ctx context.Context, nodes int, step stepper) (s size, err error) {
	s = size{nodes: nodes, reboots: min(m.options.reboots, nodes/2), rest: m.options.rest}
	stopping := ctx
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{fmt.Sprintf("%d nodes", nodes), func() error { return m.lab.populate(ctx, nodes, s.reboots) }},
		{"the manager", func() error {
			go func() { fail(m.lab.heartbeats(ctx)) }()
			return m.start(ctx, &s)
		}},
		{fmt.Sprintf("at rest for %s", s.rest), func() error { return m.rest(ctx, &s) }},
		{fmt.Sprintf("%d reboots, %d at once", s.reboots, m.options.slots), func() error { return m.load(ctx, &s) }},
	} {
		if err = step(part.name, part.run); err != nil {
			break
		}
	}
	if s.manager != nil {
		s.manager.Stop(stopping)
	}
	return s, cmp.Or(context.Cause(ctx), err)
}

// start starts the manager as its Deployment does, and waits until the policy's status counts all
// nodes.
func (m *managed) start(ctx context.Context, s *size) (err error) {
	from := time.Now()
	s.manager, err = m.lab.cluster.Processes.Start(process.Program{
		Name: fmt.Sprintf("manager-%d", s.nodes), Path: m.manager,
		Args: []string{
			"--kubeconfig=" + m.kubeconfig, "--namespace=" + namespace, "--leader-elect",
			"--metrics-bind-address=127.0.0.1:0", "--metrics-secure=false", "--health-probe-bind-address=127.0.0.1:0",
		},
	})
	if err != nil {
		return err
	}
	failed := func() error { return errors.Join(s.manager.ExitError(), m.lab.cluster.Err()) }
	err = embedded.Await(ctx, "the manager to know all nodes", startLimit, failed, func(ctx context.Context) bool {
		var policy v1alpha1.RebootPolicy
		err := m.lab.client.Get(ctx, client.ObjectKey{Name: policyName}, &policy)
		return err == nil && policy.Status.ObservedGeneration == policy.Generation && int(policy.Status.Nodes.Reporting) == s.nodes && len(policy.Status.Grants) == 0
	})
	if err != nil {
		return err
	}
	s.synced = time.Since(from)
	if s.started, err = s.manager.Memory(); err != nil {
		return err
	}
	s.atStart, err = m.asked(from)
	return err
}

// rest measures the manager while no node needs a reboot.
func (m *managed) rest(ctx context.Context, s *size) error {
	if !lifecycle.Pause(ctx, clock.RealClock{}, m.options.settle) {
		return ctx.Err()
	}
	from, beaten := time.Now(), m.lab.beats.Load()
	cpu, err := spent(s.manager, func() error {
		lifecycle.Pause(ctx, clock.RealClock{}, s.rest)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	minutes := time.Since(from).Minutes()
	s.beats, s.resting = float64(m.lab.beats.Load()-beaten)/(minutes*60), time.Duration(float64(cpu)/minutes)
	if s.rested, err = s.manager.Memory(); err != nil {
		return err
	}
	s.atRest, err = m.asked(from)
	return err
}

// load reboots nodes, and measures how fast slots go from one node to the next.
func (m *managed) load(ctx context.Context, s *size) error {
	limit := startLimit + time.Duration(s.reboots/m.options.slots)*(m.options.down+rebootLimit)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	from, r := time.Now(), &reboots{lab: m.lab, down: m.options.down}
	var err error
	s.cpu, err = spent(s.manager, func() error { return r.run(ctx) })
	if err != nil {
		return fmt.Errorf("%w\n%s", err, s.manager.Tail(5))
	}
	s.took = time.Since(from)
	s.handover, s.afterFinish = handovers(r.freed, r.granted, m.options.slots), handovers(r.finished, r.granted, m.options.slots)
	if s.end, err = s.manager.Memory(); err != nil {
		return err
	}
	s.loaded, err = m.asked(from)
	return err
}

// asked returns the manager's requests since a time.
func (m *managed) asked(from time.Time) (fleet.Asked, error) {
	all, err := m.lab.cluster.Requests(from, time.Now())
	return fleet.Account(all), err
}
