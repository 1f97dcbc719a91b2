package reboot

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// writtenLasts is how long the agent's own write counts before a cache that is older. It is longer than a watch takes.
const writtenLasts = 10 * time.Second

// nodeWriter writes the agent's Node, and reads it so that no write of its own is missed.
type nodeWriter struct {
	name   string
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	wake   Wake

	// written is the Node as the last write left it, and writtenAt is when it was. Zero: it is read before it counts again.
	written   *corev1.Node
	writtenAt time.Time
}

// node is the Node as the cache shows it, or as the agent's own last write left it where the cache is older.
func (w *nodeWriter) node(ctx context.Context) (*corev1.Node, error) {
	node, err := w.cached(ctx)
	if err != nil || w.written == nil {
		return node, err
	}
	order, err := resourceversion.CompareResourceVersion(node.ResourceVersion, w.written.ResourceVersion)
	if err == nil && order < 0 {
		return w.own(ctx)
	}
	w.written = nil
	return node, nil
}

// cached is the Node as the cache shows it. What runs beside the reconciler may call it.
func (w *nodeWriter) cached(ctx context.Context) (*corev1.Node, error) {
	node := &corev1.Node{}
	return node, w.client.Get(ctx, client.ObjectKey{Name: w.name}, node)
}

// own is the Node as the agent's own last write left it, while the cache is older. The cache may stay older: after a restore of the
// API server's data, versions are lower than they were. So the API server is asked after a while, and after a conflict. The write is
// not just forgotten: by an older Node the agent could evict pods in an attempt that it has ended.
func (w *nodeWriter) own(ctx context.Context) (*corev1.Node, error) {
	if !w.clock.Now().Before(w.writtenAt.Add(writtenLasts)) {
		live := &corev1.Node{}
		if err := w.live.Get(ctx, client.ObjectKey{Name: w.name}, live); err != nil {
			return nil, err
		}
		w.written, w.writtenAt = live, w.clock.Now()
	}
	return w.written.DeepCopy(), nil
}

// uncordons reads past the cache, which keeps no managedFields, whether the end of the attempt undoes the cordon.
func (w *nodeWriter) uncordons(ctx context.Context) (bool, error) {
	node := &corev1.Node{}
	if err := w.live.Get(ctx, client.ObjectKey{Name: w.name}, node); err != nil {
		return false, fmt.Errorf("reading whose cordon it is: %w", err)
	}
	return protocol.Uncordons(node), nil
}

// confirm makes sure, past the cache, that logind may be called. The process may have just started and see an old Node, or it may
// have been restored together with its machine and believe what was true then. Annotations are compared as they are written: a
// later release may have written a field that this one does not know.
func (w *nodeWriter) confirm(ctx context.Context, node *corev1.Node, o step.Observation) error {
	live := &corev1.Node{}
	if err := w.live.Get(ctx, client.ObjectKey{Name: w.name}, live); err != nil {
		return fmt.Errorf("confirming the reboot: %w", err)
	}
	seen, current := node.Annotations[v1alpha1.AnnotationProgress], live.Annotations[v1alpha1.AnnotationProgress]
	if current != seen {
		return fmt.Errorf("confirming the reboot: the cache shows progress %s, the API server %s", seen, current)
	}
	// Until the kubelet has reported the boot of a machine that was restored, the manager may end its reboot at any moment.
	if reported := live.Status.NodeInfo.BootID; reported != "" && reported != o.BootID {
		return fmt.Errorf("confirming the reboot: the host runs boot %s, and its kubelet reports %.64q", o.BootID, reported)
	}
	if !protocol.MayCall(protocol.RecordOf(live), o.BootID, o.Entry) {
		return fmt.Errorf("confirming the reboot: the API server shows grant %s", live.Annotations[v1alpha1.AnnotationGrant])
	}
	return nil
}

// swapTries limits how often a write that lost a race against a foreign one is sent again at once.
const swapTries = 8

// swap sends a patch. If a foreign write came first and changed nothing that the agent decides by, the decision still holds, and the patch
// is sent again on the version of a live reading. Everything else is for the next reconcile.
func (w *nodeWriter) swap(ctx context.Context, node *corev1.Node, patch *nodepatch.Patch, send func() error) error {
	err := send()
	for range swapTries {
		if !apierrors.IsConflict(err) {
			break
		}
		live := &corev1.Node{}
		if w.live.Get(ctx, client.ObjectKey{Name: w.name}, live) != nil || live.ResourceVersion == patch.Metadata.ResourceVersion || !stillHolds(node, live, patch) {
			break
		}
		patch.Metadata.ResourceVersion = live.ResourceVersion
		err = send()
	}
	return err
}

// stillHolds reports whether a patch that was decided on one reading of the Node is right on a newer one, too.
func stillHolds(node, live *corev1.Node, patch *nodepatch.Patch) bool {
	same := node.UID == live.UID && (node.DeletionTimestamp == nil) == (live.DeletionTimestamp == nil) && !interesting(node, live)
	return same && (!patch.Uncordons() || protocol.Uncordons(live))
}

// write patches the Node itself. Afterwards node is as the write left it.
func (w *nodeWriter) write(ctx context.Context, node *corev1.Node, patch *nodepatch.Patch) error {
	after := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.name}}
	err := w.swap(ctx, node, patch, func() error { return w.client.Patch(ctx, after, patch, client.FieldOwner(v1alpha1.FieldOwnerAgent)) })
	if err != nil {
		return fmt.Errorf("patching the Node: %w", err)
	}
	w.wrote(node, after)
	return nil
}

// writeStatus patches nodes/status, which takes labels and annotations too. Afterwards node is as the write left it.
func (w *nodeWriter) writeStatus(ctx context.Context, node *corev1.Node, patch *nodepatch.Patch) error {
	after := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.name}}
	err := w.swap(ctx, node, patch, func() error {
		return w.client.Status().Patch(ctx, after, patch, client.FieldOwner(v1alpha1.FieldOwnerAgent))
	})
	if err != nil {
		return fmt.Errorf("patching the status of the Node: %w", err)
	}
	w.wrote(node, after)
	return nil
}

func (w *nodeWriter) wrote(node, after *corev1.Node) {
	after.DeepCopyInto(node)
	w.written, w.writtenAt = after, w.clock.Now()
	w.wake.Trigger()
}

// refused is called when the Node had changed: what was written last does not count until it is read again.
func (w *nodeWriter) refused() { w.writtenAt = time.Time{} }

// progressPatch writes the progress if nothing has changed on the Node since.
func progressPatch(node *corev1.Node, progress protocol.Progress) *nodepatch.Patch {
	return nodepatch.New(node.ResourceVersion).Annotate(v1alpha1.AnnotationProgress, progress.String())
}

// addStatus adds what of a status the Node does not show yet, and reports whether there was anything.
func addStatus(p *nodepatch.Patch, node *corev1.Node, r step.NodeStatus, now time.Time) bool {
	conditions := changed(node.Status.Conditions, r.Conditions, now)
	labels, annotations := differing(node.Labels, r.Labels), differing(node.Annotations, r.Annotations)
	if len(conditions)+len(labels)+len(annotations) == 0 {
		return false
	}
	for _, c := range conditions {
		p.Condition(c)
	}
	for _, kind := range r.Removed {
		p.RemoveCondition(kind)
	}
	p.Metadata.Labels = labels
	if p.Metadata.Annotations == nil {
		p.Metadata.Annotations = annotations
	} else {
		maps.Copy(p.Metadata.Annotations, annotations)
	}
	for _, key := range r.Versioned {
		_, label := labels[key]
		_, annotation := annotations[key]
		if label || annotation {
			p.Metadata.ResourceVersion = node.ResourceVersion
		}
	}
	return true
}

// changed are the wanted conditions that are not there yet, with their times.
func changed(have, want []corev1.NodeCondition, now time.Time) []corev1.NodeCondition {
	var conditions []corev1.NodeCondition
	for _, c := range want {
		before := v1alpha1.NodeCondition(have, c.Type)
		if c.Status == before.Status && c.Reason == before.Reason && c.Message == before.Message {
			continue
		}
		conditions = append(conditions, nodepatch.Dated(c, before, now))
	}
	return conditions
}

// differing are the wanted values that are not there yet, and the unwanted ones that are; nil where there are none.
func differing(have map[string]string, want map[string]*string) map[string]*string {
	patch := map[string]*string{}
	for key, value := range want {
		before, found := have[key]
		if found != (value != nil) || found && before != *value {
			patch[key] = value
		}
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}
