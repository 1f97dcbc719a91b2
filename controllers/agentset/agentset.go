// Package agentset decides what the agents' DaemonSet should look like, for a manager that deploys
// its own agents.
//
// It is pure: it turns policies, nodes and the current DaemonSet into a Step. A linter proves that.
//
// Agents run on the nodes that any policy selects, even if another policy governs them, and in any
// mode, because a node reports before it is rebooted. An agent is not removed during an attempt. A
// policy that is being deleted counts until its finalizer is removed, which waits for its grants. A
// node that no policy selects any more is selected by name until its attempt has ended. If a
// selector cannot be read, no node loses its agent.
//
// A new image or selector changes the template, so the DaemonSet controller replaces the agents, a
// few at a time. That is safe during a drain, because the next agent continues it. The DaemonSet is
// never deleted and created again.
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
	// Name is the name of the DaemonSet, whether it was created by hand or by the manager. There is
	// only one.
	Name = "reboot-operator-agent"
	// managedBy is the label that names the program which manages the DaemonSet.
	managedBy = "app.kubernetes.io/managed-by"
	// manager is its value on the DaemonSet that the manager owns. Set it by hand to hand over a
	// DaemonSet to the manager.
	manager = "reboot-operator-manager"

	partOf    = "app.kubernetes.io/part-of"
	product   = "reboot-operator"
	container = "agent"
)

// PodLabels are the labels that only the agents' pods have.
var PodLabels = map[string]string{"app.kubernetes.io/name": product, "app.kubernetes.io/component": container}

// Template holds the flags for the DaemonSet.
type Template struct {
	// Manifest is the DaemonSet as YAML, without what the other fields set.
	Manifest string
	// Namespace is the namespace of the DaemonSet.
	Namespace string
	// Image is the image of the agent.
	Image string
	// Args are appended to the arguments of the manifest.
	Args []string
}

// Observation is the input of a decision.
type Observation struct {
	// Policies are all policies, including those that are being deleted.
	Policies []v1alpha1.RebootPolicy
	// Nodes are all Nodes.
	Nodes []corev1.Node
	// DaemonSet is the DaemonSet called Name, or nil if it does not exist.
	DaemonSet *appsv1.DaemonSet
}

// Step is an action on the DaemonSet. The zero Step does nothing.
type Step struct {
	// Apply is the DaemonSet to apply. If it is nil, the DaemonSet stays as it is.
	Apply *appsv1ac.DaemonSetApplyConfiguration
	// Delete means that no node needs an agent any more.
	Delete bool
	// Foreign says why the manager may not do what it should, and what to do about that. It is
	// empty if it may.
	Foreign string
	// Held are the policies whose selector cannot be read. While there are any, no node loses its
	// agent.
	Held []string
}

// Next decides the next Step. It fails only if the manifest is invalid.
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

// foreign says that the manager does not own the existing DaemonSet, and what to do.
func foreign(set *appsv1.DaemonSet) string {
	return fmt.Sprintf("DaemonSet %[1]s/%[2]s was not made by the manager and is not changed: delete it, or hand it over with "+
		"`kubectl label daemonset -n %[1]s %[2]s %[3]s=%[4]s --overwrite`; or run the manager without --manage-agents",
		set.Namespace, set.Name, managedBy, manager)
}

// placementOf returns the current placement of the DaemonSet.
func placementOf(set *appsv1.DaemonSet) placement {
	affinity := set.Spec.Template.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return placement{Everywhere: true}
	}
	return placement{Terms: affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms}
}

// daemonSet returns everything that the manager sets and so owns. An error means that the manifest
// is not a DaemonSet.
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

// affinity returns the affinity for a placement, or nil if agents run everywhere. The manifest's
// nodeSelector applies in addition.
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
