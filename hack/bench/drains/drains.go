// Package drains is the part of the benchmark that measures how the operator empties a node, beside `kubectl drain` of the
// same pods in the same run.
package drains

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// New is the part. Its flags are added to those of the program.
func New(flags *flag.FlagSet) figures.Part {
	pods := []int{30, 110, 250}
	flags.Func("drains-pods", "How many pods there are on the node, once for each measurement, the fewest first. (default 30,110,250)", func(text string) (err error) {
		pods, err = figures.Sizes(text, 1, room/2)
		return err
	})
	enough := flags.Int("drains-enough", 5, "kubectl is ended once it has taken so many times as long as the operator. 0: it is not.")
	return figures.Part{
		Name: "drains", About: "a node emptied by the operator and by kubectl: wall time, API requests",
		Run: func(ctx context.Context, screen *terminal.Terminal) (figures.Result, error) {
			rig, err := newRig(ctx, screen)
			if err != nil {
				return figures.Result{}, err
			}
			defer rig.Stop()
			pairs, err := rig.measure(ctx, pods, *enough)
			return report(pairs), err
		},
	}
}

// measure drains a node of each size, first without budgets and then with them. The operator moves the pods over to the
// other node, and kubectl moves the same pods back.
func (r *rig) measure(ctx context.Context, pods []int, enough int) (pairs []pair, err error) {
	for _, n := range pods {
		if err := r.screen.Step(fmt.Sprintf("%d pods", n), func() error { return r.fill(ctx, n) }); err != nil {
			return pairs, err
		}
		for _, tight := range []bool{false, true} {
			p, err := r.pair(ctx, n, tight, enough)
			if err != nil {
				return pairs, err
			}
			pairs = append(pairs, p)
		}
		if err := r.kubectl(ctx, "delete", "poddisruptionbudgets", "--all"); err != nil {
			return pairs, err
		}
	}
	return pairs, nil
}

func (r *rig) pair(ctx context.Context, pods int, tight bool, enough int) (p pair, err error) {
	p = pair{pods: pods, tight: tight}
	if tight {
		if err := r.guard(ctx, pods); err != nil {
			return p, err
		}
	}
	name := fmt.Sprintf("%d pods, %s budgets, drained by ", pods, p.budgets())
	err = r.screen.Step(name+"the operator", func() (err error) {
		p.operator, err = r.byOperator(ctx, pods)
		return err
	})
	if err != nil {
		return p, err
	}
	return p, r.screen.Step(name+"kubectl", func() (err error) {
		p.kubectl, err = r.byKubectl(ctx, pods, time.Duration(enough)*p.operator.took)
		return err
	})
}

// byOperator has the node reboot, and returns when it is back and the pods are on the other node.
func (r *rig) byOperator(ctx context.Context, pods int) (measured, error) {
	before := len(r.runs())
	if err := r.Hosts[0].Stage(); err != nil {
		return measured{}, err
	}
	if err := r.Await(ctx, "the reboot of "+r.ours, func() bool { return len(r.runs()) > before }); err != nil {
		return measured{}, err
	}
	run := r.runs()[before]
	requests, err := r.Cluster.Requests(run.Granted, run.Reboot)
	if err != nil {
		return measured{}, err
	}
	return measured{took: run.Phases().Drain, asked: count(requests, byAgentOf(r.ours))}, r.awaitPods(ctx, r.theirs, pods)
}

// runs are the reboots so far. The first one has been granted first.
func (r *rig) runs() (runs []timeline.Run) {
	r.Recorder.Read(func(line *timeline.Timeline) { runs = line.Runs() })
	return runs
}

// byKubectl drains the node, and returns when the pods are back on the other one. Where kubectl takes longer than is enough
// it is ended; 0: it is not.
func (r *rig) byKubectl(ctx context.Context, pods int, enough time.Duration) (m measured, err error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if enough > 0 {
		limited, cancel = context.WithTimeout(ctx, enough)
	}
	defer cancel()
	from := time.Now()
	_, err = r.Cluster.Kubectl(limited, nil, "--kubeconfig="+r.kubeconfig, "drain", r.theirs, "--ignore-daemonsets", "--delete-emptydir-data")
	m.ended = ctx.Err() == nil && limited.Err() != nil
	if err != nil && !m.ended {
		return m, err
	}
	to := time.Now()
	requests, err := r.Cluster.Requests(from, to)
	if err != nil {
		return m, err
	}
	m.asked = count(requests, func(r embedded.Request) bool { return r.User == drainer })
	m.took = to.Sub(cordoned(requests, drainer))
	if m.ended {
		err := r.kubectl(ctx, "delete", "pods", "--field-selector=spec.nodeName="+r.theirs, "--grace-period=0", "--force", "--wait=false")
		if err != nil {
			return m, err
		}
	}
	if err := r.awaitPods(ctx, r.ours, pods); err != nil {
		return m, err
	}
	return m, r.kubectl(ctx, "uncordon", r.theirs)
}
