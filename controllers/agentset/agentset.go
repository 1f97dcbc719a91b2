// Package agentset decides how the agents' DaemonSet should be, for a manager that brings its own agents.
//
// It is pure: policies, nodes and the DaemonSet as it is go in, a Step comes out. A linter proves it.
//
// Agents run on the nodes that any policy selects, whichever policy governs them and in any mode: a node reports before it is rebooted.
// An agent is not removed during an attempt. A policy that is being deleted counts until its finalizer has gone, which waits for its
// grants. A node that no policy selects any more keeps its agent until its attempt has ended, by name. No node loses its agent because
// of a selector that cannot be read.
//
// A new image or a new selector changes the template, so the DaemonSet controller replaces the agents, a few at a time.
// That needs no care here: where an agent is replaced during a drain, the next one goes on with the drain. The
// DaemonSet is never deleted to be made again.
package agentset

import (
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const (
	// Name is the DaemonSet's, made by hand or by the manager: there is one.
	Name = "reboot-operator-agent"
	// managedBy is the label of a DaemonSet that a program manages.
	managedBy = "app.kubernetes.io/managed-by"
	// manager is its value on the DaemonSet that the manager owns. Set it by hand to hand over a DaemonSet to the manager.
	manager = "reboot-operator-manager"

	partOf    = "app.kubernetes.io/part-of"
	product   = "reboot-operator"
	container = "agent"
)

// PodLabels are on the agents' pods, and on no others.
var PodLabels = map[string]string{"app.kubernetes.io/name": product, "app.kubernetes.io/component": container}

// Template is what the flags report about the DaemonSet.
type Template struct {
	// Manifest is the DaemonSet as YAML: all that the other fields do not set.
	Manifest string
	// Namespace is where it goes.
	Namespace string
	// Image is the agent's.
	Image string
	// Args follow the manifest's.
	Args []string
}

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
	case set != nil && set.Labels[managedBy] != manager:
		if !wanted.nowhere() || len(unreadable) > 0 {
			step.Foreign = foreign(set)
		}
		return step, nil
	case set != nil && set.DeletionTimestamp != nil:
		return step, nil // its deletion is the next event
	case set != nil && len(unreadable) > 0:
		wanted = wanted.with(placementOf(set))
	}
	if wanted.nowhere() {
		step.Delete = set != nil
		return step, nil
	}
	var err error
	step.Apply, err = t.daemonSet(wanted)
	return step, err
}

// foreign states that a DaemonSet of the agents' name is not the manager's, and what to do.
func foreign(set *appsv1.DaemonSet) string {
	return fmt.Sprintf("DaemonSet %[1]s/%[2]s was not made by the manager and is left alone: delete it, or hand it over by "+
		"`kubectl label daemonset -n %[1]s %[2]s %[3]s=%[4]s --overwrite`; or run the manager without --manage-agents",
		set.Namespace, set.Name, managedBy, manager)
}

// placementOf is where the DaemonSet runs agents now.
func placementOf(set *appsv1.DaemonSet) placement {
	affinity := set.Spec.Template.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return placement{Everywhere: true}
	}
	return placement{Terms: affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms}
}

// daemonSet is the whole of what the manager wants, and so owns. An error means that the manifest is not one.
func (t Template) daemonSet(p placement) (*appsv1ac.DaemonSetApplyConfiguration, error) {
	set := &appsv1ac.DaemonSetApplyConfiguration{}
	if err := yaml.UnmarshalStrict([]byte(t.Manifest), set); err != nil {
		return nil, fmt.Errorf("reading the manifest of the agents: %w", err)
	}
	if set.Spec == nil || set.Spec.Template == nil || set.Spec.Template.Spec == nil {
		return nil, errors.New("reading the manifest of the agents: it has no pod template")
	}
	pod := set.Spec.Template.Spec
	i := slices.IndexFunc(pod.Containers, func(c corev1ac.ContainerApplyConfiguration) bool {
		return c.Name != nil && *c.Name == container
	})
	if i < 0 {
		return nil, fmt.Errorf("reading the manifest of the agents: it has no container %q", container)
	}
	pod.Containers[i].WithImage(t.Image).WithArgs(t.Args...)
	pod.Affinity = affinity(p)
	return set.WithName(Name).WithNamespace(t.Namespace).WithLabels(map[string]string{managedBy: manager, partOf: product}), nil
}

// affinity is nil where agents run everywhere. The manifest's nodeSelector holds beside it.
func affinity(p placement) *corev1ac.AffinityApplyConfiguration {
	if p.Everywhere {
		return nil
	}
	selector := corev1ac.NodeSelector()
	for _, term := range p.Terms {
		selector.WithNodeSelectorTerms(corev1ac.NodeSelectorTerm().
			WithMatchExpressions(requirements(term.MatchExpressions)...).
			WithMatchFields(requirements(term.MatchFields)...))
	}
	return corev1ac.Affinity().WithNodeAffinity(
		corev1ac.NodeAffinity().WithRequiredDuringSchedulingIgnoredDuringExecution(selector))
}

func requirements(of []corev1.NodeSelectorRequirement) []*corev1ac.NodeSelectorRequirementApplyConfiguration {
	all := make([]*corev1ac.NodeSelectorRequirementApplyConfiguration, len(of))
	for i, r := range of {
		all[i] = corev1ac.NodeSelectorRequirement().WithKey(r.Key).WithOperator(r.Operator).WithValues(r.Values...)
	}
	return all
}
