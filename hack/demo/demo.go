package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

const (
	// settle is how long a rebooted node must stay Ready: short, but to be seen.
	settle = time.Second
	// frame is how often the table is drawn, and lines are printed.
	frame = 100 * time.Millisecond
)

//go:embed workload.yaml
var workload []byte

var errTimeout = errors.New("timed out")

// demo is one run.
type demo struct {
	options options
	screen  *terminal.Terminal

	clock  clock.RealClock
	fleet  *fleet.Fleet
	policy *fleet.Policy
	limit  int
	// began and ended are when the reboots were asked for, and done.
	began, ended time.Time
	// printed is how many changes have been printed.
	printed int
	film    film
}

// run is the whole of it. Everything it started has ended when it returns.
func (d *demo) run(ctx context.Context) (err error) {
	if err := fleet.BuildControlPlane(ctx); err != nil {
		return err
	}
	if err := d.screen.Step("dbus-daemon", func() error { return fleet.InstallBus(ctx) }); err != nil {
		return err
	}
	d.fleet, err = fleet.Start(ctx, fleet.Options{
		Nodes: d.options.nodes, Engines: d.options.engines, Workload: workload, RebootDuration: d.options.rebootDuration,
		Step: d.screen.Step,
	})
	if err != nil {
		return err
	}
	defer d.fleet.Stop()
	if err := d.screen.Step(d.policyStep(), func() error { return d.applyPolicy(ctx) }); err != nil {
		return d.failed(err)
	}
	result := d.reboot(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d.screen.Print(result.summary(d.screen.Theme)...)
	if d.options.picture != "" {
		if err := d.film.write(d.options.picture); err != nil {
			return err
		}
	}
	if d.options.keep {
		d.keep(ctx)
	}
	if !result.kept() {
		return d.failed(errors.New("a promise was not kept"))
	}
	return nil
}

func (d *demo) policyStep() string {
	return fmt.Sprintf("a RebootPolicy: maxUnavailable %s, settle %s", d.options.maxUnavailable.String(), settle)
}

func (d *demo) applyPolicy(ctx context.Context) (err error) {
	d.policy, err = d.fleet.ApplyPolicy(ctx, func(spec *v1alpha1.RebootPolicySpec) {
		spec.Concurrency = &v1alpha1.Concurrency{MaxUnavailable: &d.options.maxUnavailable}
		spec.Settle = &metav1.Duration{Duration: settle}
	})
	if err != nil {
		return err
	}
	d.limit, err = d.options.limit()
	return err
}

// reboot asks for the reboots and shows them until all nodes are back.
func (d *demo) reboot(ctx context.Context) result {
	ctx, cancel := context.WithTimeoutCause(ctx, d.options.timeout, fmt.Errorf("%w after %s", errTimeout, d.options.timeout))
	defer cancel()
	engines := enginesOf(d.fleet.Hosts)
	d.screen.Print(append([]string{""}, acts(engines)...)...)
	d.skipStory()
	d.began = d.clock.Now()
	err := d.fleet.Stage()
	if err == nil {
		err = d.show(ctx, func() bool { return d.policy.Finished(ctx) })
	}
	d.ended = d.clock.Now()
	r := result{began: d.began, ended: d.ended, limit: d.limit, engines: engines, err: err}
	d.fleet.Recorder.Read(func(line *timeline.Timeline) { r.views, r.runs, r.peak = line.Views(), line.Runs(), line.Peak() })
	requests, err := d.fleet.Cluster.Requests(r.began, r.ended)
	r.asked, r.err = fleet.Account(requests), errors.Join(r.err, err)
	return r
}

// show draws the table, or prints changes, until done or until something fails.
func (d *demo) show(ctx context.Context, done func() bool) error {
	for {
		finished := done()
		d.draw()
		switch err := d.fleet.Err(); {
		case finished:
			d.screen.Close()
			return nil
		case err != nil:
			return err
		}
		select {
		case <-d.clock.After(frame):
		case <-ctx.Done():
			d.draw()
			d.screen.Close()
			return context.Cause(ctx)
		}
	}
}

func (d *demo) draw() {
	s := snapshot{
		now: d.clock.Now(), began: d.began, ended: d.ended, engines: enginesOf(d.fleet.Hosts), limit: d.limit, pods: d.fleet.Workload(),
	}
	var changes []timeline.Change
	d.fleet.Recorder.Read(func(line *timeline.Timeline) {
		s.views, s.unavailable, s.peak = line.Views(), len(line.Unavailable()), len(line.Peak().Nodes)
		changes = line.Changes(d.printed)
	})
	d.printed += len(changes)
	d.film.add(s.elapsed(), s.table(terminal.Theme{Color: true}, filmWidth, filmHeight))
	if d.screen.Live {
		width, height := d.screen.Size()
		d.screen.Draw(s.table(d.screen.Theme, width, height))
		return
	}
	for _, c := range changes {
		d.screen.Print(line(d.screen.Theme, d.began, s.nameWidth(), c))
	}
}

// skipStory leaves out what happened before the reboots were asked for.
func (d *demo) skipStory() {
	d.fleet.Recorder.Read(func(line *timeline.Timeline) { d.printed = len(line.Changes(0)) })
}

// keep leaves everything running until the user has seen enough.
func (d *demo) keep(ctx context.Context) {
	kubectl := d.fleet.Cluster.KubectlPath()
	if relative, err := filepath.Rel(workingDirectory(), kubectl); err == nil && len(relative) < len(kubectl) {
		kubectl = relative
	}
	d.screen.Print(
		"  Everything is still running. In another terminal:", "",
		"    export KUBECONFIG="+d.fleet.Cluster.Kubeconfig(),
		"    "+kubectl+" get rbp,nodes",
		"    "+kubectl+" annotate node "+d.fleet.Hosts[0].Name+" reboot-operator.io/reboot-requested=again", "",
		"  Logs are in "+d.fleet.Cluster.Dir+". Ctrl-C ends it all.")
	// The only way out is the interrupt: a fleet that fails is part of what is looked at.
	_ = d.show(ctx, func() bool { return false })
}

// workingDirectory is empty where nobody knows it.
func workingDirectory() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}

// failed keeps the logs and reports where they are.
func (d *demo) failed(err error) error {
	d.fleet.Cluster.KeepFiles = true
	return fmt.Errorf("%w\nlogs are in %s", err, d.fleet.Cluster.Dir)
}
