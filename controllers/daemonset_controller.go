package controllers

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/agentset"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
)

// DaemonSetReconciler creates the agents' DaemonSet, keeps it as it should be, and removes it with the last policy. It
// has one key, the DaemonSet's.
type DaemonSetReconciler struct {
	// Client reads from the cache and writes; it must read its own writes.
	Client client.Client
	// Live reads from the API server, for what must not be stale.
	Live client.Reader
	// Recorder emits events on policies.
	Recorder events.EventRecorder
	// Template is what the flags say about the DaemonSet.
	Template agentset.Template

	// applied is what this process wrote last. It only ever saves a PATCH that would change nothing.
	applied applied
}

// Reconcile brings the DaemonSet one step on: observe, decide, apply. What the manager may not or cannot do is an event on
// every policy, for none of them has agents then.
func (r *DaemonSetReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	o, err := r.observe(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	step, err := r.Template.Next(o)
	if err != nil {
		return ctrl.Result{}, err
	}
	log := ctrl.LoggerFrom(ctx)
	if len(step.Held) > 0 {
		log.Info("Took no agent away: selectors cannot be read", "RebootPolicies", step.Held)
	}
	if step.Foreign != "" {
		log.Info("Left a DaemonSet alone that is not the manager's", "reason", step.Foreign)
		r.tell(o.Policies, step.Foreign)
	}
	if err := r.apply(ctx, step, o.DaemonSet); err != nil {
		if apierrors.IsConflict(err) {
			log.V(1).Info("Lost a race for the DaemonSet; deciding again", "reason", err.Error())
			return ctrl.Result{RequeueAfter: conflictPause}, nil
		}
		if !errors.Is(err, context.Canceled) { // nothing is wrong with the agents when the manager ends
			r.tell(o.Policies, err.Error())
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, nil
}

// observe reads everything the decision looks at.
func (r *DaemonSetReconciler) observe(ctx context.Context) (agentset.Observation, error) {
	policies, err := snapshot.Policies(ctx, r.Client)
	if err != nil {
		return agentset.Observation{}, err
	}
	var nodes corev1.NodeList
	if err := r.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil { // nobody changes them
		return agentset.Observation{}, fmt.Errorf("listing nodes: %w", err)
	}
	o := agentset.Observation{Policies: policies, Nodes: nodes.Items}
	set := &appsv1.DaemonSet{}
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: r.Template.Namespace, Name: agentset.Name}, set)
	switch {
	case err == nil:
		o.DaemonSet = set
	case !apierrors.IsNotFound(err):
		return o, fmt.Errorf("reading DaemonSet %q: %w", agentset.Name, err)
	}
	return o, nil
}

// tell says on every policy why its nodes have no agents, or have not the ones they should.
func (r *DaemonSetReconciler) tell(policies []v1alpha1.RebootPolicy, why string) {
	for i := range policies {
		r.Recorder.Eventf(&policies[i], nil, corev1.EventTypeWarning, v1alpha1.EventAgentsNotDeployed, "DeployAgents", "%s", why)
	}
}
