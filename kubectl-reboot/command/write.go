package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/timetable"
)

// The values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// patience limits the retries of a write after conflicts with kubelets and the manager.
var patience = wait.Backoff{Steps: 10, Duration: 20 * time.Millisecond, Factor: 1.5, Jitter: 0.1}

// writeOptions is shared by the commands that edit nodes and policies.
type writeOptions struct {
	selection

	session *Session
	dryRun  string
	print   *genericclioptions.PrintFlags
	printer printers.ResourcePrinter
	wait    waitOptions
	// question is asked before writing to the objects that -l or --all selects. If it is empty,
	// nothing is asked.
	question string
	yes      bool
	// reboots means that reboots of the written nodes should follow.
	reboots bool
}

// ask makes the command ask before it writes to the objects that -l or --all selects.
func (w *writeOptions) ask(cmd *cobra.Command, question string) {
	w.question = question
	cmd.Flags().BoolVarP(&w.yes, "yes", "y", false, "Do not ask for confirmation with -l or --all.")
}

// confirm asks the question, unless --yes or a dry run makes it unnecessary.
func (w *writeOptions) confirm(count int) error {
	if w.question == "" || w.yes || w.named() || w.dryRun != dryRunNone {
		return nil
	}
	nodes := message.Count(count, "node", "nodes")
	if _, policies := w.everything.(*v1alpha1.RebootPolicyList); policies && w.all {
		nodes = message.Count(count, "policy", "policies")
	}
	fmt.Fprintf(w.session.ErrOut, w.question+" [y/N] ", nodes)
	answer, _ := bufio.NewReader(w.session.In).ReadString('\n') // an error counts as no
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was written: answer y, or use --yes")
	}
	return nil
}

func (w *writeOptions) bind(cmd *cobra.Command) {
	cmd.PreRunE = func(*cobra.Command, []string) error { return w.check() }
	w.print = genericclioptions.NewPrintFlags("")
	w.print.AddFlags(cmd)
	cmd.Flags().StringVar(&w.dryRun, "dry-run", dryRunNone, "Must be none, server or client. With client nothing is sent; with server the API server checks the request and discards it.")
	completeFlag(cmd, "output", oneOf(w.print.AllowedFormats()...))
	completeFlag(cmd, "dry-run", oneOf(dryRunNone, dryRunServer, dryRunClient))
}

func (w *writeOptions) check() error {
	if _, err := w.print.ToPrinter(); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	switch w.dryRun {
	case dryRunNone:
		return w.wait.check(*w.print.OutputFormat)
	case dryRunClient, dryRunServer:
		if w.wait.on {
			return errors.New("--wait and --dry-run exclude each other, because nothing happens in a dry run")
		}
		return nil
	}
	return fmt.Errorf("--dry-run %q must be none, server or client", w.dryRun)
}

// edit changes an object and describes the change in a phrase. If it does not change the object,
// the phrase says why.
type edit func(object client.Object) (done string, err error)

// each edits the named or selected objects, and continues after an error. With --wait it then
// follows the objects until they are done.
func (w *writeOptions) each(ctx context.Context, arguments []string, find finder, e edit) error {
	c, err := w.client()
	if err != nil {
		return err
	}
	if w.wait.on {
		if err := w.wait.mayRead(ctx, c); err != nil {
			return err
		}
	}
	objects := make([]client.Object, len(arguments)) // each object is read just before its edit
	if !w.named() {
		if objects, err = w.objects(ctx, c); err != nil {
			return err
		}
		if err := w.confirm(len(objects)); err != nil {
			return err
		}
	}
	var written, expected []client.Object
	errs := forEach(ctx, len(objects), func(i int) error {
		object := objects[i]
		if object == nil {
			if object, err = find(ctx, c, arguments[i]); err != nil {
				return err
			}
		}
		version := object.GetResourceVersion()
		done, err := w.write(ctx, c, object, e)
		if err != nil {
			return err
		}
		if err := w.printDone(object, done); err != nil {
			return err
		}
		written = append(written, object)
		if w.named() || object.GetResourceVersion() != version {
			expected = append(expected, object)
		}
		return nil
	})
	if len(written) > 0 && w.dryRun == dryRunNone {
		errs = append(errs, w.follow(ctx, c, written, expected))
	}
	return errors.Join(errs...)
}

// follow follows the written objects with --wait. Without, it warns of what keeps the expected ones
// from being done.
func (w *writeOptions) follow(ctx context.Context, c client.Client, written, expected []client.Object) error {
	switch {
	case w.wait.on:
		return w.wait.follow(ctx, w.session, written)
	case w.reboots:
		w.warnOfStays(ctx, expected)
	default:
		w.session.warn(readManager(ctx, c))
	}
	return nil
}

// mostWarnings is the number of nodes that warnings name.
const mostWarnings = 10

// warnOfStays warns of nodes that will not be rebooted until a person has done something else. It
// says nothing if the fleet cannot be read, because the write has succeeded.
func (w *writeOptions) warnOfStays(ctx context.Context, expected []client.Object) {
	f, err := w.session.fleet(ctx)
	if err != nil {
		return
	}
	w.session.warn(f.Manager)
	var names []string
	for _, object := range expected {
		if _, ok := object.(*corev1.Node); ok {
			names = append(names, object.GetName())
		}
	}
	stays := timetable.Stays(f, names)
	for _, s := range stays[:min(len(stays), mostWarnings)] {
		fmt.Fprintf(w.session.ErrOut, "warning: %s will not be rebooted: %s: %s; see %s\n", s.Node, s.Reason, moment.Local(s.Message, w.session.Zone),
			w.session.command("kubectl reboot explain %s", s.Node))
	}
	if more := len(stays) - mostWarnings; more > 0 {
		fmt.Fprintf(w.session.ErrOut, "warning: %s will not be rebooted\n", message.Count(more, "more node", "more nodes"))
	}
}

// forEach does something for each of many objects. It continues after an error, and stops when the
// context ends.
func forEach(ctx context.Context, many int, do func(i int) error) []error {
	var errs []error
	for i := range many {
		if ctx.Err() != nil {
			return append(errs, fmt.Errorf("interrupted: %d of %d are unchanged", many-i, many))
		}
		errs = append(errs, do(i))
	}
	return errs
}

// client returns a client that writes in the plugin's name, or makes server-side dry runs with
// --dry-run=server.
func (w *writeOptions) client() (client.Client, error) {
	c, err := w.session.client()
	if err != nil {
		return nil, err
	}
	c = client.WithFieldOwner(c, fieldOwner)
	if w.dryRun == dryRunServer {
		c = client.NewDryRunClient(c)
	}
	return c, nil
}

// finder reads the object of an argument.
type finder func(ctx context.Context, c client.Client, argument string) (client.Object, error)

// write edits an object with optimistic concurrency. After a conflict it reads the object and edits
// it again.
func (w *writeOptions) write(ctx context.Context, c client.Client, object client.Object, e edit) (done string, err error) {
	tried := false
	err = retry.RetryOnConflict(patience, func() error {
		if tried {
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
		}
		tried = true
		before, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("%T is not an object", object)
		}
		var err error
		if done, err = e(object); err != nil || w.dryRun == dryRunClient || equality.Semantic.DeepEqual(before, object) {
			return err
		}
		return c.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", titled(object, object.GetName()), err)
	}
	return done, nil
}

// printDone prints the result like kubectl: a line such as "node/n4 paused (server dry run)", or
// the object.
func (w *writeOptions) printDone(object client.Object, done string) error {
	if w.dryRun != dryRunNone {
		done += " (" + w.dryRun + " dry run)"
	}
	w.print.NamePrintFlags.Operation = terminal.Theme{}.Line(done) // it may quote text from the node
	if w.printer == nil || *w.print.OutputFormat == "" {           // a new printer for every line, one printer for all documents
		scheme, _, err := kinds()
		if err != nil {
			return err
		}
		if w.printer, err = w.print.WithTypeSetter(scheme).ToPrinter(); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	return w.printer.PrintObj(object, w.session.Out)
}

// byKind edits nodes and policies with their own functions. policy is nil if only nodes can be
// found.
func byKind(node func(*corev1.Node) (string, error), policy func(*v1alpha1.RebootPolicy) (string, error)) edit {
	return func(object client.Object) (string, error) {
		switch o := object.(type) {
		case *corev1.Node:
			return node(o)
		case *v1alpha1.RebootPolicy:
			return policy(o)
		}
		return "", fmt.Errorf("%T is neither a node nor a policy", object)
	}
}
