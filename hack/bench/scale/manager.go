package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/bench/rules"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

const (
	// managerUser is who the manager is in clusters, so that its requests can be distinguished from all others.
	managerUser = "system:serviceaccount:" + namespace + ":reboot-operator-manager"
	// lookEvery is how often a program is looked at that is to read all nodes, startLimit how long that may take, and rebootLimit how
	// long a reboot may take from the need to its confirmation.
	lookEvery, startLimit, rebootLimit = 100 * time.Millisecond, 2 * time.Minute, 10 * time.Second
	// settle is how long programs are left alone after their start before they count as being at rest.
	settle = 10 * time.Second
)

// program is what was measured of one program that holds all nodes.
type program struct {
	*process.Process
	// synced is how long it took from the start until it had them all.
	synced time.Duration
	// started is its memory then, and rested that at the end of the time at rest.
	started, rested process.Memory
	// cpu is what it used in a minute at rest.
	cpu time.Duration
}

// size is what was measured with one number of nodes.
type size struct {
	nodes int
	// ruled reports that the policy has every rule.
	ruled         bool
	manager, bare program
	// beats is how many heartbeats there were each second at rest.
	beats float64
	// atStart, atRest and loaded are what the manager asked of the API server while it started, in so long at rest, and while
	// nodes were rebooted.
	atStart, atRest, loaded fleet.Asked
	rest                    time.Duration
	// handover is from the last report of one node's agent to the grant of the next one, afterFinish from the manager's
	// confirmation to that grant, and write from any write to its watch in the meantime.
	handover, afterFinish, write []time.Duration
	reboots                      int
	// took and cpu are the time and the manager's CPU time for all reboots, and end its memory after them.
	took, cpu time.Duration
	end       process.Memory
}

// managed measures the manager on one lab, size after size.
type managed struct {
	options *options
	lab     *lab
	ruled   bool
	// paths of the programs, and the kubeconfig of both.
	manager, barecache, kubeconfig string
}

func (m *managed) prepare(ctx context.Context) (err error) {
	if m.manager, err = testenv.Build(ctx, "manager"); err != nil {
		return err
	}
	if m.barecache, err = testenv.Build(ctx, "hack/bench/scale/barecache"); err != nil {
		return err
	}
	m.kubeconfig, err = m.lab.cluster.UserKubeconfig(managerUser, "system:masters")
	return err
}

// measure measures with so many nodes, which is not fewer than before.
func (m *managed) measure(ctx context.Context, nodes int, step stepper) (s size, err error) {
	s = size{nodes: nodes, ruled: m.ruled, reboots: min(m.options.reboots, nodes/2), rest: m.options.rest}
	stopping := ctx
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{fmt.Sprintf("%d nodes", nodes), func() error { return m.lab.populate(ctx, nodes, s.reboots) }},
		{"a cache of whole nodes, the yardstick", func() error {
			go func() { fail(m.lab.heartbeats(ctx)) }()
			return m.startBare(ctx, &s)
		}},
		{"the manager", func() error { return m.startManager(ctx, &s) }},
		{fmt.Sprintf("at rest for %s", s.rest), func() error { return m.rest(ctx, &s) }},
		{fmt.Sprintf("%d reboots, %d at once", s.reboots, m.options.slots), func() error { return m.load(ctx, &s) }},
	} {
		if err = step(part.name, part.run); err != nil {
			break
		}
	}
	for _, p := range []program{s.bare, s.manager} {
		if p.Process != nil {
			p.Stop(stopping)
		}
	}
	return s, cmp.Or(context.Cause(ctx), err)
}

// startBare starts the yardstick, and returns when it has all nodes.
func (m *managed) startBare(ctx context.Context, s *size) error {
	return m.start(ctx, &s.bare, process.Program{
		Name: fmt.Sprintf("barecache-%d-%t", s.nodes, s.ruled), Path: m.barecache, Env: []string{"KUBECONFIG=" + m.kubeconfig},
	}, func() bool { return strings.Contains(s.bare.Tail(5), "synced") })
}

// startManager starts the manager as its Deployment does, and returns when the policy's status has all nodes.
func (m *managed) startManager(ctx context.Context, s *size) error {
	from := time.Now()
	err := m.start(ctx, &s.manager, process.Program{
		Name: fmt.Sprintf("manager-%d-%t", s.nodes, s.ruled), Path: m.manager,
		Args: []string{
			"--kubeconfig=" + m.kubeconfig, "--namespace=" + namespace, "--leader-elect",
			"--metrics-bind-address=127.0.0.1:0", "--metrics-secure=false", "--health-probe-bind-address=127.0.0.1:0",
		},
	}, func() bool {
		var policy v1alpha1.RebootPolicy
		err := m.lab.client.Get(ctx, client.ObjectKey{Name: policyName}, &policy)
		return err == nil && policy.Status.ObservedGeneration == policy.Generation && int(policy.Status.Nodes.Reporting) == s.nodes && len(policy.Status.Grants) == 0
	})
	if err == nil {
		s.atStart, err = m.asked(from)
	}
	return err
}

func (m *managed) start(ctx context.Context, p *program, what process.Program, synced func() bool) (err error) {
	from := time.Now()
	if p.Process, err = m.lab.cluster.Processes.Start(what); err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, lookEvery, startLimit, true, func(context.Context) (bool, error) {
		return synced(), errors.Join(p.ExitError(), m.lab.cluster.Err())
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to know all nodes: %w", what.Name, err)
	}
	p.synced = time.Since(from)
	p.started, err = p.Memory()
	return err
}

// rest looks at both programs while no node needs a reboot, and ends the yardstick.
func (m *managed) rest(ctx context.Context, s *size) error {
	if err := pause(ctx, m.options.settle); err != nil {
		return err
	}
	from, beaten := time.Now(), m.lab.beats.Load()
	var err error
	s.manager.cpu, err = spent(s.manager.Process, func() error {
		s.bare.cpu, err = spent(s.bare.Process, func() error { return pause(ctx, s.rest) })
		return err
	})
	if err != nil {
		return err
	}
	minutes := time.Since(from).Minutes()
	s.beats = float64(m.lab.beats.Load()-beaten) / (minutes * 60)
	for _, p := range []*program{&s.manager, &s.bare} {
		p.cpu = time.Duration(float64(p.cpu) / minutes)
		if p.rested, err = p.Memory(); err != nil {
			return err
		}
	}
	s.bare.Stop(ctx)
	s.atRest, err = m.asked(from)
	return err
}

// load reboots nodes, and measures how slots go from one to the next, and the API server by itself.
func (m *managed) load(ctx context.Context, s *size) error {
	limit := startLimit + time.Duration(s.reboots/m.options.slots)*(m.options.down+rebootLimit)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	from, r := time.Now(), &reboots{lab: m.lab, down: m.options.down}
	var err error
	s.cpu, err = spent(s.manager.Process, func() error {
		probing, stop := context.WithCancel(ctx)
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() (err error) { s.write, err = m.lab.probe(probing); return err })
		group.Go(func() error { defer stop(); return r.run(ctx) })
		group.Go(func() error { return rules.Approve(probing, m.lab.client, &v1alpha1.RebootPolicyList{}) })
		return group.Wait()
	})
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

// asked is what the manager has asked of the API server since.
func (m *managed) asked(from time.Time) (fleet.Asked, error) {
	all, err := m.lab.cluster.Requests(from, time.Now())
	return fleet.Account(all), err
}
