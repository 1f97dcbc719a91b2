package controllers

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// applyReboots writes the Nodes of due reboots, and reports whether it tried anything. A Node that
// refuses is not tried again in this pass, and does not block other nodes.
func (r *RebootPolicyReconciler) applyReboots(ctx context.Context, s *state, p plan.Plan, tried map[string]underway.Action) bool {
	wrote := false
	var accept, refuse []underway.Reboot
	for _, t := range p.UnderWay() {
		if t.Refused == "" {
			accept = append(accept, t)
		} else {
			refuse = append(refuse, t)
		}
	}
	// Nodes that refused last time come last, because a webhook that hangs would otherwise use up
	// the time of the others in every pass.
	for _, t := range slices.Concat(accept, refuse) {
		if !t.Action.WritesNode() || tried[t.Entry.Node] == t.Action {
			continue
		}
		if s.halfOver(r.Clock.Now()) {
			s.putOff(listPause)
			return wrote
		}
		key := triedKey(t.Entry.Node, t.Action)
		if wait := r.nodes.undone.waits(key, r.Clock.Now()); wait > 0 {
			s.putOff(wait)
			continue
		}
		wrote, tried[t.Entry.Node] = true, t.Action
		switch err := r.applyReboot(ctx, s, p, t); {
		case apierrors.IsNotFound(err):
			s.remove(t.Entry.Node)
		case apierrors.IsConflict(err):
			// The Node was written in between, maybe by a heartbeat, which does not cause an event.
			ctrl.LoggerFrom(ctx).V(4).Info("The Node has changed; deciding again", "Node", klog.KRef("", t.Entry.Node), "step", t.Action)
			s.putOff(conflictPause)
		case nodepatch.IsUndone(err):
			r.nodes.undone.note(key, r.Clock.Now())
			s.fail(err)
		default:
			s.fail(err)
		}
	}
	return wrote
}

// conflictTries is the number of times that a write is decided and sent again at once after a
// conflict.
const conflictTries = 8

// applyReboot carries out the due step of one granted reboot. A grant is published from the cache
// with its resourceVersion, because nothing else matters for it, and the cache is almost always up
// to date. Every other step uses a live read.
func (r *RebootPolicyReconciler) applyReboot(ctx context.Context, s *state, p plan.Plan, t underway.Reboot) error {
	if t.Action == underway.PublishGrant {
		if err := r.nodes.publish(ctx, s, t.Node, t); !apierrors.IsConflict(err) {
			return r.nodes.noteAnswer(s, t.Entry.Node, err)
		}
	}
	err := r.applyLive(ctx, s, p, t)
	for range conflictTries {
		if !apierrors.IsConflict(err) || s.halfOver(r.Clock.Now()) {
			break
		}
		err = r.applyLive(ctx, s, p, t)
	}
	return err
}

// applyLive reads the Node live and decides again with it, because the cache may be outdated. The
// write carries the resourceVersion of that read.
func (r *RebootPolicyReconciler) applyLive(ctx context.Context, s *state, p plan.Plan, t underway.Reboot) error {
	live, err := r.fleet.liveNode(ctx, t.Entry.Node)
	if err != nil {
		return err
	}
	s.replace(snapshot.Trim(live))
	n := s.Nodes[s.index[t.Entry.Node]]
	now := p.Again(s.Snapshot, n, t.Entry)
	if now.Action != t.Action {
		return nil
	}
	switch now.Action {
	case underway.BeginHooks:
		err = r.nodes.beginHooks(ctx, s, n, now)
	case underway.NoteTaint:
		err = r.nodes.noteTaint(ctx, s, n, now)
	case underway.PublishGrant:
		err = r.nodes.publish(ctx, s, n, now)
	case underway.CancelGrant:
		err = r.nodes.cancel(ctx, s, n, now)
	case underway.FinishGrant:
		err = r.nodes.finish(ctx, s, n, now, protocol.Uncordons(live))
	case underway.Wait, underway.WithdrawGrant, underway.ReleaseEntry:
	}
	return r.nodes.noteAnswer(s, t.Entry.Node, err)
}
