package fleet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// witness sees every revision of every Node and every ledger, and notes what may not be between a grant and its end: a
// node that is uncordoned, an attempt that is given up, a slot that is released.
type witness struct {
	live    func(node string) (*corev1.Node, error)
	ledgers map[string][]v1alpha1.LedgerEntry // by policy

	mu sync.Mutex
	// seen counts revisions of nodes in the middle of an attempt, and of ledgers with an entry.
	seen    int
	accused []string
}

func newWitness(t *testing.T, f *Fleet) *witness {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api, err := client.NewWithWatch(f.Cluster.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := &witness{ledgers: map[string][]v1alpha1.LedgerEntry{}, live: func(name string) (*corev1.Node, error) {
		var node corev1.Node
		return &node, api.Get(ctx, client.ObjectKey{Name: name}, &node)
	}}
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	for _, list := range []client.ObjectList{&corev1.NodeList{}, &v1alpha1.RebootPolicyList{}} {
		if err := api.List(ctx, list); err != nil {
			t.Fatal(err)
		}
		since := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
		revisions, err := api.Watch(ctx, list, since)
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			for event := range revisions.ResultChan() {
				w.observe(event)
			}
			if ctx.Err() == nil {
				w.accuse("the watch has ended: nobody looks any more")
			}
		})
	}
	return w
}

func (w *witness) observe(event watch.Event) {
	switch object := event.Object.(type) {
	case *corev1.Node:
		w.node(object)
	case *v1alpha1.RebootPolicy:
		w.policy(object)
	}
}

func (w *witness) node(node *corev1.Node) {
	grant, err := v1alpha1.ParseGrant(node.Annotations)
	if err != nil {
		w.accuse("%s: %v", node.Name, err)
	}
	progress, err := v1alpha1.ParseProgress(node.Annotations)
	if err != nil {
		w.accuse("%s: %v", node.Name, err)
	}
	if grant == nil || progress == nil || progress.Seq != grant.Seq || grant.State == v1alpha1.GrantFinished {
		return
	}
	w.note()
	switch {
	case grant.State == v1alpha1.GrantCancelled:
		w.accuse("%s: grant %d is taken back in mid-attempt (%s)", node.Name, grant.Seq, grant.Reason)
	case progress.Phase == v1alpha1.PhaseAborted:
		w.accuse("%s: attempt %d is given up (%s)", node.Name, grant.Seq, progress.Reason)
	case !node.Spec.Unschedulable:
		w.accuse("%s: uncordoned while %s", node.Name, progress.Phase)
	}
}

// policy looks at who has left the ledger: only nodes that are on another boot may.
func (w *witness) policy(policy *v1alpha1.RebootPolicy) {
	now := policy.Status.Grants
	for range now {
		w.note()
	}
	for _, was := range w.ledgers[policy.Name] {
		if slices.ContainsFunc(now, func(is v1alpha1.LedgerEntry) bool { return is.Node == was.Node && is.Seq == was.Seq }) {
			continue
		}
		if node, err := w.live(was.Node); err != nil || node.Status.NodeInfo.BootID == was.BootID {
			w.accuse("%s: slot %d is released on boot %s (%v)", was.Node, was.Seq, was.BootID, err)
		}
	}
	w.ledgers[policy.Name] = now
}

func (w *witness) note() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
}

func (w *witness) accuse(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accused = append(w.accused, fmt.Sprintf(format, args...))
}

// check fails where anything was seen that may not be, and where nothing was seen at all.
func (w *witness) check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == 0 {
		t.Error("the witness has seen no attempt")
	}
	for _, accusation := range w.accused {
		t.Error(accusation)
	}
	w.accused = nil
}
