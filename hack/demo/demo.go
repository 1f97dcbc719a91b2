package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/command"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

const (
	// rebootDuration is the time that a machine is down.
	rebootDuration = 2 * time.Second
	// timeout limits the time for all reboots.
	timeout = 5 * time.Minute
	// settle is the time for which a rebooted node must stay Ready, short but visible.
	settle = time.Second
	// poll is the interval at which the demo checks whether it is done.
	poll = 100 * time.Millisecond
	// last is the time for which the final status is shown. It is redrawn once a second.
	last = time.Second
)

//go:embed workload.yaml
var workload []byte

var errTimeout = errors.New("timed out")

// demo is one run.
type demo struct {
	options options
	screen  *terminal.Terminal

	fleet  *fleet.Fleet
	policy *fleet.Policy
	film   film
}

// run runs the whole demo. Everything it started has ended when it returns.
func (d *demo) run(ctx context.Context) (err error) {
	d.fleet, err = fleet.Start(ctx, fleet.Options{
		Nodes: d.options.nodes, Engines: d.options.engines, Workload: workload, RebootDuration: rebootDuration,
		Step: d.screen.Step,
	})
	if err != nil {
		return err
	}
	defer d.fleet.Stop()
	policy := fmt.Sprintf("a RebootPolicy: maxUnavailable %d, settle %s", d.options.limit, settle)
	if err := d.screen.Step(policy, func() error { return d.applyPolicy(ctx) }); err != nil {
		return d.failed(err)
	}
	result := d.reboot(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d.screen.Print("")
	result.err = errors.Join(result.err, d.fleet.Judge(ctx), d.plugin(ctx, os.Stdout, d.screen, "history"))
	d.screen.Print(result.summary(d.screen.Theme)...)
	if d.options.picture != "" {
		if err := os.WriteFile(d.options.picture, []byte(d.film.svg()), 0o644); err != nil {
			return err // the error names the file
		}
	}
	if d.options.keep {
		d.keep(ctx)
	}
	if !result.kept() {
		return d.failed(errors.New("a check of the demo failed"))
	}
	return nil
}

func (d *demo) applyPolicy(ctx context.Context) (err error) {
	d.policy, err = d.fleet.ApplyPolicy(ctx, func(spec *v1alpha1.RebootPolicySpec) {
		spec.Concurrency = &v1alpha1.Concurrency{MaxUnavailable: new(intstr.FromInt(d.options.limit))}
		spec.Reboot = &v1alpha1.Reboot{Settle: &v1alpha1.Duration{Duration: settle}}
	})
	return err
}

// reboot requests the reboots and shows them until all nodes are back.
func (d *demo) reboot(ctx context.Context) result {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w after %s", errTimeout, timeout))
	defer cancel()
	engines := enginesOf(d.fleet.Hosts)
	d.screen.Print(append(append([]string{""}, acts(engines)...), "")...)
	r := result{limit: d.options.limit, engines: engines}
	began := time.Now()
	if r.err = d.fleet.Stage(); r.err == nil {
		r.err = d.show(ctx, func() bool {
			r.took = time.Since(began)
			return d.policy.Finished(ctx)
		})
	}
	changes := d.fleet.Recorder.Read()
	r.views, r.peak = changes.Views, changes.Peak
	return r
}

// show shows the output of `kubectl reboot status --watch` until done returns true or something
// fails.
func (d *demo) show(ctx context.Context, done func() bool) error {
	group, ctx := errgroup.WithContext(ctx)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	group.Go(func() error { return d.status(watching) })
	group.Go(func() error {
		defer stop()
		err := wait.PollUntilContextCancel(ctx, poll, true, func(context.Context) (bool, error) { return done(), d.fleet.Err() })
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		<-time.After(last)
		return err
	})
	return group.Wait()
}

// status runs `kubectl reboot status --watch` until ctx ends, or records `kubectl reboot status`
// for a picture.
func (d *demo) status(ctx context.Context) (err error) {
	if d.options.picture == "" {
		err = d.plugin(ctx, os.Stdout, d.screen, "status", "--watch")
	} else {
		err = wait.PollUntilContextCancel(ctx, shown, true, func(ctx context.Context) (bool, error) {
			var frame strings.Builder
			screen := terminal.Live(&frame, terminal.Theme{Color: true}, func() (width, height int) { return filmWidth, 0 })
			err := d.plugin(ctx, &frame, screen, "status")
			d.film = append(d.film, frame.String())
			return false, err
		})
	}
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// plugin runs `kubectl reboot`.
func (d *demo) plugin(ctx context.Context, out io.Writer, screen *terminal.Terminal, args ...string) error {
	kubeconfig := d.fleet.Cluster.Kubeconfig()
	plugin := command.Session{
		IOStreams: genericiooptions.IOStreams{Out: out, ErrOut: io.Discard}, // its error is returned, too
		Config:    genericclioptions.NewConfigFlags(false), Clock: clock.RealClock{}, Zone: time.Local, Screen: screen,
	}
	plugin.Config.KubeConfig = &kubeconfig
	return plugin.Run(ctx, append([]string{"kubectl-reboot"}, args...))
}

// keep leaves everything running until the user has seen enough.
func (d *demo) keep(ctx context.Context) {
	kubectl := d.fleet.Cluster.KubectlPath()
	d.screen.Print(
		"  Everything is still running. In another terminal:", "",
		"    export KUBECONFIG="+d.fleet.Cluster.Kubeconfig(),
		"    "+kubectl+" get rbp,nodes",
		"    "+kubectl+" annotate node "+d.fleet.Hosts[0].Name+" reboot-operator.io/reboot-requested=again   # reboot it once more",
		"    go run ./kubectl-reboot explain "+d.fleet.Hosts[0].Name+"   # why it waits, or how far it is",
		"    go run ./kubectl-reboot dashboard        # the same in a browser", "",
		"  Logs are in "+d.fleet.Cluster.Dir+". Ctrl-C ends it all.")
	// The user may do anything to the cluster, such as delete a Node. Only an interrupt ends the
	// demo.
	for ctx.Err() == nil {
		_ = d.status(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(last):
		}
	}
}

// failed keeps the logs and says where they are.
func (d *demo) failed(err error) error {
	return fmt.Errorf("%w\nlogs are in %s", err, d.fleet.Cluster.KeepLogs())
}
