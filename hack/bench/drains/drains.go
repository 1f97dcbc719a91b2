// Package drains is the part of the benchmark that measures how the operator empties a node, beside `kubectl drain` of the
// same pods in the same run.
package drains

import (
	"context"
	"fmt"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// enough is how many times as long as the operator kubectl may take before it is ended.
const enough = 5

// sizes are how many pods there are on the node, once for each measurement: what is there is only ever added to.
var sizes = []int{30, 110, 250}

// Part is the part.
var Part = figures.Part{
	Name: "drains", About: "a node emptied by the operator and by kubectl: wall time, API requests",
	Run: func(ctx context.Context, screen *terminal.Terminal) (figures.Result, error) {
		rig, err := newRig(ctx, screen)
		if err != nil {
			return figures.Result{}, err
		}
		defer rig.Stop()
		pairs, err := rig.measure(ctx)
		return report(pairs), err
	},
}

// measure drains a node of each size, first without budgets and then with them. The operator moves the pods over to the
// other node, and kubectl moves the same pods back.
func (r *rig) measure(ctx context.Context) (pairs []pair, err error) {
	for _, n := range sizes {
		if err := r.screen.Step(fmt.Sprintf("%d pods", n), func() error { return r.fill(ctx, n) }); err != nil {
			return pairs, err
		}
		for _, tight := range []bool{false, true} {
			p, err := r.pair(ctx, n, tight)
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

func (r *rig) pair(ctx context.Context, pods int, tight bool) (p pair, err error) {
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
		p.kubectl, err = r.byKubectl(ctx, pods, enough*p.operator.took)
		return err
	})
}

// byOperator has the node reboot, and returns when it is back and the pods are on the other node.
func (r *rig) byOperator(ctx context.Context, pods int) (measured, error) {
	before := len(r.Recorder.Read().Runs)
	if err := r.Hosts[0].Stage(); err != nil {
		return measured{}, err
	}
	if err := r.Await(ctx, "the reboot of "+r.ours, func() bool { return len(r.Recorder.Read().Runs) > before }); err != nil {
		return measured{}, err
	}
	run := r.Recorder.Read().Runs[before] // the first one has been granted first
	requests, err := r.Cluster.Requests(run.Granted, run.Reboot)
	if err != nil {
		return measured{}, err
	}
	return measured{took: run.Phases().Drain, asked: count(requests, byAgentOf(r.ours))}, r.awaitPods(ctx, r.theirs, pods)
}

// byKubectl drains the node, and returns when the pods are back on the other one. Where kubectl takes longer than the limit it is ended.
func (r *rig) byKubectl(ctx context.Context, pods int, limit time.Duration) (m measured, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
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
