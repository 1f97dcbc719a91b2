package agentset

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"
)

const (
	// Name is the DaemonSet's, made by hand or by the manager: there is one.
	Name = "reboot-operator-agent"
	// ManagedBy is the label of a DaemonSet that a program manages.
	ManagedBy = "app.kubernetes.io/managed-by"
	// Manager is its value on the DaemonSet that the manager owns. Set it by hand to hand over a DaemonSet to the manager.
	Manager = "reboot-operator-manager"

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

// DaemonSet is the whole of what the manager wants, and so owns. An error means that the manifest is not one.
func (t Template) DaemonSet(p Placement) (*appsv1ac.DaemonSetApplyConfiguration, error) {
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
	return set.WithName(Name).WithNamespace(t.Namespace).WithLabels(map[string]string{ManagedBy: Manager, partOf: product}), nil
}

// affinity is nil where agents run everywhere. The manifest's nodeSelector holds beside it.
func affinity(p Placement) *corev1ac.AffinityApplyConfiguration {
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
