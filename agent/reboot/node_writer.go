package reboot

import (
	"context"
	"fmt"
	"maps"
	"slices"
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

// writtenLasts is the time for which the agent's own write counts if the cache is older. A watch is
// faster than that.
const writtenLasts = 10 * time.Second

// nodeWriter writes the agent's Node. It reads the Node so that the agent's own writes are never
// missed.
type nodeWriter struct {
	name   string
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	wake   Wake

	// written is the Node after the last write, and writtenAt is the time of that write. If
	// writtenAt is zero, the Node has to be read before it counts again.
	written   *corev1.Node
	writtenAt time.Time
}

// node returns the Node from the cache, or as the agent's last write left it if the cache is older.
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

// cached returns the Node from the cache. It is safe to call outside the reconciler.
func (w *nodeWriter) cached(ctx context.Context) (*corev1.Node, error) {
	node := &corev1.Node{}
	return node, w.client.Get(ctx, client.ObjectKey{Name: w.name}, node)
}

// own returns the Node as the agent's last write left it while the cache is older. The cache may
// stay older: after the API server's data was restored from a backup, versions are lower than
// before. So the Node is read live after a while, and after a conflict. The write is not just
// forgotten, because with an older Node the agent could evict pods in an attempt that it has ended.
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

// uncordons reports whether the end of the attempt undoes the cordon. It reads the Node live,
// because the cache does not keep managedFields.
func (w *nodeWriter) uncordons(ctx context.Context) (bool, error) {
	node := &corev1.Node{}
	if err := w.live.Get(ctx, client.ObjectKey{Name: w.name}, node); err != nil {
		return false, fmt.Errorf("reading whose cordon it is: %w", err)
	}
	return protocol.Uncordons(node), nil
}

// confirm checks with a live read that logind may be called. The process may have just started and
// see an old Node, or it may have been restored together with its machine and have outdated memory.
// It compares annotations as text, because a later release may have written a field that this one
// does not know.
func (w *nodeWriter) confirm(ctx context.Context, node *corev1.Node, o step.Observation) error {
	live := &corev1.Node{}
	if err := w.live.Get(ctx, client.ObjectKey{Name: w.name}, live); err != nil {
		return fmt.Errorf("confirming the reboot: %w", err)
	}
	read, current := node.Annotations[v1alpha1.AnnotationProgress], live.Annotations[v1alpha1.AnnotationProgress]
	if current != read {
		return fmt.Errorf("confirming the reboot: the cache shows progress %s, the API server %s", read, current)
	}
	// Until the kubelet has reported the boot of a machine that was restored, the manager may
	// finish its grant at any moment.
	if reported := live.Status.NodeInfo.BootID; reported != "" && reported != o.BootID {
		return fmt.Errorf("confirming the reboot: the host runs boot %s, and its kubelet reports %.64q", o.BootID, reported)
	}
	if !protocol.MayCall(protocol.RecordOf(live), o.BootID, o.Entry) {
		return fmt.Errorf("confirming the reboot: the API server shows grant %s", live.Annotations[v1alpha1.AnnotationGrant])
	}
	return nil
}

// swapTries is the number of times that a write is repeated at once after another program's write
// came first.
const swapTries = 8

// swap sends a patch. If another program's write came first and did not change anything that the
// agent's decision depends on, swap repeats the patch on the version of a live read. Other changes
// are left to the next reconcile.
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

// stillHolds reports whether a patch that was decided on one read of the Node is right for a newer
// one, too.
func stillHolds(node, live *corev1.Node, patch *nodepatch.Patch) bool {
	same := node.UID == live.UID && (node.DeletionTimestamp == nil) == (live.DeletionTimestamp == nil) && !interesting(node, live)
	return same && (!patch.Uncordons() || protocol.Uncordons(live))
}

// write patches the Node itself and updates node to the result.
func (w *nodeWriter) write(ctx context.Context, node *corev1.Node, patch *nodepatch.Patch) error {
	after := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.name}}
	err := w.swap(ctx, node, patch, func() error { return w.client.Patch(ctx, after, patch, client.FieldOwner(v1alpha1.FieldOwnerAgent)) })
	if err == nil {
		err = w.wrote(node, after, patch)
	}
	if err != nil {
		return fmt.Errorf("patching the Node: %w", err)
	}
	return nil
}

// writeStatus patches nodes/status, which also accepts labels and annotations, and updates node to
// the result.
func (w *nodeWriter) writeStatus(ctx context.Context, node *corev1.Node, patch *nodepatch.Patch) error {
	after := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.name}}
	err := w.swap(ctx, node, patch, func() error {
		return w.client.Status().Patch(ctx, after, patch, client.FieldOwner(v1alpha1.FieldOwnerAgent))
	})
	if err == nil {
		err = w.wrote(node, after, patch)
	}
	if err != nil {
		return fmt.Errorf("patching the status of the Node: %w", err)
	}
	return nil
}

// wrote takes over the Node in the response to a patch. It returns an error if the Node does not show
// the progress that the patch set, or, without a progress, anything else that it set. Such a write is
// repeated as slowly as one that is refused.
func (w *nodeWriter) wrote(node, after *corev1.Node, patch *nodepatch.Patch) error {
	after.DeepCopyInto(node)
	w.written, w.writtenAt = after, w.clock.Now()
	undone := patch.Undone(after)
	if _, moves := patch.Metadata.Annotations[v1alpha1.AnnotationProgress]; moves {
		undone = slices.DeleteFunc(undone, func(field string) bool { return field != "annotation "+v1alpha1.AnnotationProgress })
	}
	if len(undone) > 0 {
		return &nodepatch.UndoneError{Fields: undone}
	}
	w.wake.Trigger()
	return nil
}

// refused is called after a conflict. The last write then does not count until the Node has been
// read again.
func (w *nodeWriter) refused() { w.writtenAt = time.Time{} }

// progressPatch returns the patch that writes the progress if the Node has not changed.
func progressPatch(node *corev1.Node, progress protocol.Progress) *nodepatch.Patch {
	return nodepatch.New(node.ResourceVersion).Annotate(v1alpha1.AnnotationProgress, progress.String())
}

// addStatus adds the parts of a status that the Node does not show yet, and reports whether there
// were any.
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

// changed returns the wanted conditions that the Node does not have yet, with their times.
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

// differing returns the wanted values that are missing and, with a nil value, the unwanted ones
// that are present. It returns nil without differences.
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
