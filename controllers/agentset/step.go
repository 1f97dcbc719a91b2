package agentset

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Observation is what a decision looks at.
type Observation struct {
	// Policies are all there are, those being deleted too.
	Policies []v1alpha1.RebootPolicy
	// Nodes are all there are.
	Nodes []corev1.Node
	// DaemonSet is the one called Name; nil: there is none.
	DaemonSet *appsv1.DaemonSet
}

// Step is what is to be done about the DaemonSet. The zero value is nothing.
type Step struct {
	// Apply is what it should be; nil: leave it alone.
	Apply *appsv1ac.DaemonSetApplyConfiguration
	// Delete: no node needs an agent any more.
	Delete bool
	// Foreign states why the manager may not do what it should, and what to do about it; empty: it may.
	Foreign string
	// Held are the policies whose selector cannot be read. Because of them no node loses its agent.
	Held []string
}

// Next decides. It fails only where the manifest is broken.
func (t Template) Next(o Observation) (Step, error) {
	set := o.DaemonSet
	wanted, unreadable := assign(o.Policies, o.Nodes)
	step := Step{Held: unreadable}
	switch {
	case set != nil && set.Labels[ManagedBy] != Manager:
		if !wanted.Nowhere() || len(unreadable) > 0 {
			step.Foreign = foreign(set)
		}
		return step, nil
	case set != nil && set.DeletionTimestamp != nil:
		return step, nil // its deletion is the next event
	case set != nil && len(unreadable) > 0:
		wanted = wanted.with(placementOf(set))
	}
	if wanted.Nowhere() {
		step.Delete = set != nil
		return step, nil
	}
	var err error
	step.Apply, err = t.DaemonSet(wanted)
	return step, err
}

func foreign(set *appsv1.DaemonSet) string {
	return fmt.Sprintf("DaemonSet %[1]s/%[2]s was not made by the manager and is left alone: delete it, or hand it over by "+
		"`kubectl label daemonset -n %[1]s %[2]s %[3]s=%[4]s --overwrite`; or run the manager without --manage-agents",
		set.Namespace, set.Name, ManagedBy, Manager)
}

// placementOf is where the DaemonSet runs agents now.
func placementOf(set *appsv1.DaemonSet) Placement {
	affinity := set.Spec.Template.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return Placement{Everywhere: true}
	}
	return Placement{Terms: affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms}
}
