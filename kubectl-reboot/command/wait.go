package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
)

// waitOptions is the flag --wait, which follows the affected nodes until they are done.
type waitOptions struct {
	on      bool
	timeout time.Duration
	left    status.Left
}

func (w *waitOptions) bind(cmd *cobra.Command, until string, remaining status.Left) {
	w.left = remaining
	cmd.Flags().BoolVar(&w.on, "wait", false, "Report progress until "+until+".")
	cmd.Flags().Var((*days)(&w.timeout), "timeout", "How long --wait waits before it fails, such as 2h or 1d, or 0 for no limit.")
}

// days is a duration that may have days.
type days time.Duration

// String implements pflag.Value.
func (d *days) String() string { return time.Duration(*d).String() }

// Set implements pflag.Value.
func (d *days) Set(text string) error {
	parsed, err := v1alpha1.ParseDuration(text)
	*d = days(parsed)
	return err
}

// Type implements pflag.Value.
func (d *days) Type() string { return "duration" }

func (w *waitOptions) check(format string) error {
	switch {
	case !w.on && w.timeout != 0:
		return errors.New("--timeout is for --wait")
	case w.timeout < 0:
		return fmt.Errorf("--timeout %s must not be negative", w.timeout)
	case w.on && format != "":
		return errors.New("--wait shows text only: leave out --output")
	}
	return nil
}

// notDisrupted is for commands that start no reboots. A node is done if it is not disrupted.
func notDisrupted(*corev1.Node, *record.Node) string { return "" }

// notInService is for commands after which nodes reboot. A node is done if it needs no reboot, is
// Ready, and is not cordoned.
func notInService(object *corev1.Node, n *record.Node) string {
	_, requested := v1alpha1.RebootRequested(object)
	switch {
	case requested:
		return "requested"
	case n.Required == corev1.ConditionTrue:
		return "in need of a reboot"
	case !n.Reports() && !n.Windows: // Windows nodes have no agent
		return "of unknown need"
	case !n.Ready:
		return "not Ready"
	case n.Cordoned:
		return "cordoned"
	}
	return ""
}

// mayRead fails if policies or nodes cannot be listed. The watches would retry forever and report
// nothing.
func (w *waitOptions) mayRead(ctx context.Context, c client.Client) error {
	for _, list := range []client.ObjectList{&v1alpha1.RebootPolicyList{}, &corev1.NodeList{}} {
		if err := c.List(ctx, list, client.Limit(1)); err != nil {
			return fmt.Errorf("nothing was written, because --wait cannot read the progress: %w", err)
		}
	}
	return nil
}

// follow reports progress until all affected nodes are done. It is an error if it ends before.
func (w *waitOptions) follow(ctx context.Context, s *Session, written []client.Object) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if w.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, w.timeout)
		defer cancel()
	}
	var before status.Progress
	var err error
	over, troubled := false, ""
	// The view may catch up with the writes through a heartbeat, which is not a change, so look
	// again every second.
	failed := watch(ctx, s, time.Second, func(f fleet.Fleet, trouble string) {
		s.printTrouble(troubled, trouble)
		troubled = trouble
		var nodes map[string]bool
		var current bool
		if nodes, current, err = w.nodes(f, written); err != nil {
			over = true
			cancel()
		}
		if !current || err != nil {
			return
		}
		progress := status.ProgressOf(f, nodes, w.left)
		if lines := progress.Lines(before, s.Zone); len(lines) > 0 {
			s.Screen.Print(s.Screen.Theme.Lines(lines)...)
		}
		if before = progress; progress.Done == progress.Nodes {
			over = true
			cancel()
		}
	})
	switch {
	case failed != nil:
		return failed
	case over:
		return err
	case before.Nodes == 0:
		return errors.New("--wait ended before the state of the nodes was known")
	}
	return fmt.Errorf("--wait ended before all nodes were done: %s", before)
}

// nodes returns the affected nodes: nodes that were written, nodes of policies that were written,
// and nodes whose reboots these have granted. current is false if the view is older than the
// writes.
func (w *waitOptions) nodes(f fleet.Fleet, written []client.Object) (nodes map[string]bool, current bool, err error) {
	nodes = map[string]bool{}
	var gone []string
	for _, object := range written {
		var live client.Object
		if _, ok := object.(*corev1.Node); ok {
			if n, _ := f.Node(object.GetName()); n != nil {
				live = n
				nodes[n.Name] = true
			}
		} else if p := f.Policy(object.GetName()); p != nil {
			live = p
			for _, n := range f.Governed(p.Name) {
				nodes[n.Name] = true
			}
			for _, t := range f.Plan(p).Reboots {
				if t.Node != nil { // even if it has left the policy since
					nodes[t.Node.Name] = true
				}
			}
		}
		if live == nil || live.GetUID() != object.GetUID() {
			gone = append(gone, titled(object, object.GetName()))
			continue
		}
		older, err := resourceversion.CompareResourceVersion(live.GetResourceVersion(), object.GetResourceVersion())
		if err != nil {
			return nil, false, fmt.Errorf("comparing versions of %s: %w", titled(object, object.GetName()), err)
		}
		if older < 0 {
			return nil, false, nil
		}
	}
	if len(gone) > 0 {
		return nil, false, fmt.Errorf("--wait ended before all nodes were done: deleted: %s", strings.Join(gone, ", "))
	}
	return nodes, true, nil
}
