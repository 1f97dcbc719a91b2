package controllers

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// writePlanMarkers writes the markers of a plan. They neither permit nor forbid anything, so a
// failed write delays neither reboots nor the next pass.
func (w *nodeWriter) writePlanMarkers(ctx context.Context, s *state, p plan.Plan) {
	if _, err := w.writeMarkers(ctx, s, p.Markers); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot write all node markers")
		s.putOff(refusedPause)
	}
}

// writeMarkers sets and removes the pending taint and what needs a reboot, and removes what ended
// grants have left. Taints are one list with many writers, so each write carries the
// resourceVersion on which it is based, and is repeated after a conflict. It reports whether
// nothing was postponed. As many are written at once as conditions, for the same reason.
func (w *nodeWriter) writeMarkers(ctx context.Context, s *state, markers []record.Markers) (all bool, err error) {
	all = true
	later := func(after time.Duration) {
		all = false
		s.putOff(after)
	}
	var errs []error
	written := 0
	for _, m := range markers {
		i, ok := s.index[m.Node]
		if !ok {
			continue
		}
		if wait := w.markerRefusals.waits(m.Node, w.clock.Now()); wait > 0 {
			later(wait)
			continue
		}
		if w.enough(s, written) {
			later(conditionsPause)
			break
		}
		written++
		switch err := w.writeMarker(ctx, s, s.Nodes[i], m); {
		case apierrors.IsConflict(err):
			ctrl.LoggerFrom(ctx).V(4).Info("The Node has changed; writing its markers again", "Node", klog.KRef("", m.Node))
			later(conflictPause)
		case err != nil && !apierrors.IsNotFound(err):
			if nodepatch.IsRefusal(err) {
				w.markerRefusals.note(m.Node, w.clock.Now())
				w.announce.refused(s, err)
			}
			errs = append(errs, err)
		}
	}
	return all, errors.Join(errs...)
}

func (w *nodeWriter) writeMarker(ctx context.Context, s *state, n *record.Node, m record.Markers) error {
	patch := nodepatch.New(n.ResourceVersion)
	if m.RemoveAnnotations || m.RemoveExclusion || m.RemoveRemediation {
		grant := n.Grant.Without(m.RemoveAnnotations, m.RemoveExclusion, m.RemoveRemediation)
		patch.Annotate(v1alpha1.AnnotationGrant, grant.String())
		removeMarkers(patch, n, grant)
	}
	if m.RemoveHooks {
		endHooks(patch, n, math.MaxInt64)
	}
	annotate(patch, v1alpha1.AnnotationMaxUptime, n.Needs().MaxUptime, m.Needs.MaxUptime)
	annotate(patch, v1alpha1.AnnotationNodeConditions, n.Needs().Conditions, m.Needs.Conditions)
	if n.Pending != m.Pending {
		patch.Taint(record.WithPending(n.Taints, m.Pending))
	}
	return w.patchNode(ctx, s, n, patch)
}

// annotate changes an annotation if its value differs. An empty value removes it.
func annotate(patch *nodepatch.Patch, key, before, after string) {
	switch after {
	case before:
	case "":
		patch.RemoveAnnotation(key)
	default:
		patch.Annotate(key, after)
	}
}

// setMarkers sets the markers for autoscalers, health controllers and load balancers, as the grant says.
func setMarkers(p *nodepatch.Patch, n *record.Node, grant *protocol.Grant) {
	for _, key := range grant.Annotations {
		p.Annotate(key, record.AutoscalerValue)
	}
	if grant.Unremediated {
		p.Label(v1alpha1.LabelExcludeFromRemediation, record.AutoscalerValue)
	}
	switch {
	case grant.Excluded:
		p.Label(v1alpha1.LabelExcludeFromLoadBalancers, v1alpha1.ExcludedByOperator)
	case n.RemovesExclusion():
		p.RemoveLabel(v1alpha1.LabelExcludeFromLoadBalancers) // left behind by an earlier grant
	}
}

// unmark removes the markers of a grant that the API server did not keep. Only the grant records
// that it set them, so the next one would leave them on the Node as another program's.
func (w *nodeWriter) unmark(ctx context.Context, s *state, name string, grant protocol.Grant, err error) error {
	n := *s.Nodes[s.index[name]]
	if !nodepatch.IsUndone(err) || n.Grant != nil && n.Grant.Seq == grant.Seq {
		return nil
	}
	n.Grant = &grant
	if len(n.AnnotationsToRemove()) == 0 && !n.RemovesExclusion() && !n.RemovesRemediation() {
		return nil
	}
	patch := nodepatch.New("")
	removeMarkers(patch, &n, protocol.Grant{})
	return w.patchNode(ctx, s, &n, patch)
}

// removeMarkers removes what the grant on the node has set. It keeps the autoscaler annotations
// that the new version of the grant, which is written with it, still names.
func removeMarkers(p *nodepatch.Patch, n *record.Node, grant protocol.Grant) {
	for _, key := range n.AnnotationsToRemove() {
		if !slices.Contains(grant.Annotations, key) {
			p.RemoveAnnotation(key)
		}
	}
	if n.RemovesExclusion() && !grant.Excluded {
		p.RemoveLabel(v1alpha1.LabelExcludeFromLoadBalancers)
	}
	if n.RemovesRemediation() && !grant.Unremediated {
		p.RemoveLabel(v1alpha1.LabelExcludeFromRemediation)
	}
}
