package scale

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/bench/rules"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

const (
	// managerUser is who the manager is, so that its requests can be distinguished from everybody else's.
	managerUser = "reboot-operator-manager"
	// startLimit is how long a program may take to read all nodes, and a reboot from the need to its confirmation.
	startLimit, rebootLimit = 2 * time.Minute, 10 * time.Second
	settle                  = 10 * time.Second
)

// program is what was measured of one program that holds all nodes.
type program struct {
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
	atStart, atRest, loaded []embedded.Request
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
	if m.kubeconfig, err = m.lab.cluster.UserKubeconfig(managerUser, "system:masters"); err != nil {
		return err
	}
	return m.lab.createPolicy(ctx, m.options.slots)
}

// measure measures with so many nodes, which is not fewer than before.
func (m *managed) measure(ctx context.Context, nodes int, step stepper) (s size, err error) {
	s = size{nodes: nodes, ruled: m.ruled, reboots: min(m.options.reboots, nodes/2), rest: m.options.rest}
	var bare, manager *process.Process
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	beats := &kubelets{fail: fail}
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{fmt.Sprintf("%d nodes", nodes), func() error { return m.lab.populate(ctx, nodes, s.reboots) }},
		{"a cache of whole nodes, the yardstick", func() error {
			go beats.run(ctx, m.lab)
			bare, err = m.startBare(ctx, &s)
			return err
		}},
		{"the manager", func() error { manager, err = m.startManager(ctx, &s); return err }},
		{fmt.Sprintf("at rest for %s", s.rest), func() error { return m.rest(ctx, &s, manager, bare, beats) }},
		{fmt.Sprintf("%d reboots, %d at once", s.reboots, m.options.slots), func() error { return m.load(ctx, &s, manager) }},
	} {
		if err = step(part.name, part.run); err != nil {
			break
		}
	}
	for _, p := range []*process.Process{bare, manager} {
		if p != nil {
			p.Stop(ctx)
		}
	}
	return s, cmp.Or(context.Cause(ctx), err)
}

// startBare starts the yardstick, and returns when it has all nodes.
func (m *managed) startBare(ctx context.Context, s *size) (*process.Process, error) {
	return m.start(ctx, &s.bare, process.Program{
		Name: fmt.Sprintf("barecache-%d-%t", s.nodes, s.ruled), Path: m.barecache, Env: []string{"KUBECONFIG=" + m.kubeconfig},
	}, func(p *process.Process) bool { return strings.Contains(p.Tail(5), "synced") })
}

// startManager starts the manager as its Deployment does, and returns when the policy's status has all nodes.
func (m *managed) startManager(ctx context.Context, s *size) (*process.Process, error) {
	from := m.lab.clock.Now()
	p, err := m.start(ctx, &s.manager, process.Program{
		Name: fmt.Sprintf("manager-%d-%t", s.nodes, s.ruled), Path: m.manager,
		Args: []string{
			"--kubeconfig=" + m.kubeconfig, "--namespace=" + namespace, "--leader-elect",
			"--metrics-bind-address=127.0.0.1:0", "--metrics-secure=false", "--health-probe-bind-address=127.0.0.1:0",
		},
	}, func(*process.Process) bool {
		var policy v1alpha1.RebootPolicy
		err := m.lab.policies.Get(ctx, client.ObjectKey{Name: policyName}, &policy)
		return err == nil && policy.Status.ObservedGeneration == policy.Generation && int(policy.Status.Nodes.Reporting) == s.nodes && len(policy.Status.Grants) == 0
	})
	if err == nil {
		s.atStart, err = m.asked(from)
	}
	return p, err
}

func (m *managed) start(ctx context.Context, into *program, what process.Program, synced func(*process.Process) bool) (*process.Process, error) {
	from := m.lab.clock.Now()
	p, err := m.lab.cluster.Processes.Start(what)
	if err != nil {
		return nil, err
	}
	if err := m.lab.await(ctx, what.Name+" to know all nodes", startLimit, p, func() bool { return synced(p) }); err != nil {
		return p, err
	}
	into.synced = m.lab.clock.Since(from)
	into.started, err = p.Memory()
	return p, err
}

// rest looks at both programs while nobody needs a reboot, and ends the yardstick.
func (m *managed) rest(ctx context.Context, s *size, manager, bare *process.Process, beats *kubelets) error {
	if err := m.lab.pause(ctx, m.options.settle); err != nil {
		return err
	}
	from, beaten := m.lab.clock.Now(), beats.written.Load()
	both := map[*process.Process]*program{manager: &s.manager, bare: &s.bare}
	for p, into := range both {
		used, err := p.CPU()
		if err != nil {
			return err
		}
		into.cpu = -used
	}
	if err := m.lab.pause(ctx, s.rest); err != nil {
		return err
	}
	minutes := m.lab.clock.Since(from).Minutes()
	for p, into := range both {
		used, err := p.CPU()
		if err != nil {
			return err
		}
		into.cpu = time.Duration(float64(into.cpu+used) / minutes)
		if into.rested, err = p.Memory(); err != nil {
			return err
		}
	}
	s.beats = float64(beats.written.Load()-beaten) / (minutes * 60)
	bare.Stop(ctx)
	var err error
	s.atRest, err = m.asked(from)
	return err
}

// load reboots nodes, and measures how slots go from one to the next, and the API server by itself.
func (m *managed) load(ctx context.Context, s *size, manager *process.Process) error {
	limit := startLimit + time.Duration(s.reboots/m.options.slots)*(m.options.down+rebootLimit)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	from := m.lab.clock.Now()
	before, err := manager.CPU()
	if err != nil {
		return err
	}
	r := &reboots{lab: m.lab, down: m.options.down}
	var writes []time.Duration
	probing, stop := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { writes, err = m.lab.probe(probing); return err })
	group.Go(func() error { defer stop(); return r.run(ctx) })
	group.Go(func() error { return rules.Approve(probing, m.lab.cluster.Config(), &v1alpha1.RebootPolicyList{}) })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("%w\n%s", err, manager.Tail(5))
	}
	s.handover, s.afterFinish = handovers(r.freed, r.granted, m.options.slots), handovers(r.finished, r.granted, m.options.slots)
	s.write, s.took = writes, m.lab.clock.Since(from)
	after, err := manager.CPU()
	if err != nil {
		return err
	}
	s.cpu = after - before
	if s.end, err = manager.Memory(); err != nil {
		return err
	}
	s.loaded, err = m.asked(from)
	return err
}

// asked is what the manager has asked of the API server since.
func (m *managed) asked(from time.Time) ([]embedded.Request, error) {
	all, err := m.lab.cluster.Requests(from, m.lab.clock.Now())
	if err != nil {
		return nil, err
	}
	var asked []embedded.Request
	for _, r := range all {
		if r.User == managerUser && r.Verb != "" {
			asked = append(asked, r)
		}
	}
	return asked, nil
}
