package reboots

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

const (
	// foreignNodes is the number of nodes that are rebooted, and foreignWrites how often another
	// program writes each of them in a second.
	foreignNodes, foreignWrites = 4, 18
	// goalForeign is the maximum ratio of the wall time to the ideal.
	goalForeign = 1.3
)

// Foreign is the part that reboots nodes while another program writes them.
var Foreign = figures.Part{
	Name: "foreign", About: "a rolling reboot while another program writes every Node all the time",
	Run: func(ctx context.Context, screen *terminal.Terminal) (figures.Result, error) {
		b := &bench{screen: screen, nodes: foreignNodes}
		written, err := b.runForeign(ctx)
		return reportForeign(b.result, written), err
	},
}

func (b *bench) runForeign(ctx context.Context) (written int, err error) {
	b.fleet, err = fleet.Start(ctx, fleet.Options{Nodes: foreignNodes, RebootDuration: down, Step: b.screen.Step})
	if err != nil {
		return 0, err
	}
	defer b.fleet.Stop()
	policy, err := b.fleet.ApplyPolicy(ctx, func(spec *v1alpha1.RebootPolicySpec) {
		one := intstr.FromInt32(1)
		spec.Concurrency, spec.Reboot = &v1alpha1.Concurrency{MaxUnavailable: &one}, &v1alpha1.Reboot{Settle: &v1alpha1.Duration{}}
	})
	if err != nil {
		return 0, err
	}
	writing, stop := context.WithCancel(ctx)
	defer stop()
	var writers sync.WaitGroup
	counts := make([]int, foreignNodes)
	for i, host := range b.fleet.Hosts {
		writers.Go(func() { counts[i] = b.write(writing, host.Name) })
	}
	name := fmt.Sprintf("%d nodes rebooted, one at a time, each written %d times a second", foreignNodes, foreignWrites)
	from := time.Now()
	err = b.screen.Step(name, func() error { return b.reboot(ctx, policy) })
	stop()
	writers.Wait()
	for _, n := range counts {
		written += n
	}
	if err != nil {
		return 0, err
	}
	return int(float64(written) / time.Since(from).Seconds() / foreignNodes), b.fleet.Judge(ctx)
}

// write plays another program that writes a Node until ctx ends. It returns the number of writes.
func (b *bench) write(ctx context.Context, node string) (written int) {
	for n := 0; lifecycle.Pause(ctx, clock.RealClock{}, time.Second/foreignWrites); n++ {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/foreign":"%d"}}}`, n))
		if b.fleet.Client.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, patch) == nil {
			written++
		}
	}
	return written
}

func reportForeign(r result, written int) figures.Result {
	drains, reboots := r.ideal()
	ideal := drains + reboots
	ratio := r.wall.Seconds() / max(ideal.Seconds(), 1e-9)
	return figures.Result{
		Setting: fmt.Sprintf("%d simulated nodes, limit 1, machines that are down for %s, settle 0s, on the embedded control plane. Another "+
			"program writes an annotation of each Node up to %d times a second, from before the reboots until they are over.", foreignNodes, down, foreignWrites),
		Tables: []figures.Table{{Columns: []string{"figure", "measured"}, Rows: []figures.Row{
			figures.Figure("foreign writes of each Node in a second", strconv.Itoa(written)),
			figures.Figure("wall time", fmt.Sprintf("%s; the ideal (drains %s + reboots %s) is %s",
				figures.Seconds(r.wall), figures.Seconds(drains), figures.Seconds(reboots), figures.Seconds(ideal))),
			figures.Judged("wall time to the ideal", fmt.Sprintf("%.2f", ratio), ratio <= goalForeign, fmt.Sprintf("at most %.2f", goalForeign)),
			figures.Figure("requests refused, nearly all of them by conflicts", strconv.Itoa(r.asked.Refused)),
		}}},
	}
}
