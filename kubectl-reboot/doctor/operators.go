package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// operator is a program that reboots nodes from within the cluster. It is recognized by the last
// part of its image names.
type operator struct {
	name   string
	images []string
	// level is Warning for a program that only reboots nodes on request.
	level Level
	// first says what to do before the program is deleted, or is empty.
	first string
}

// known lists the operators that reboot nodes of the hosts that this one supports.
var known = []operator{
	{name: "kured", images: []string{"kured"}, level: Problem, first: "convert its flags into a policy (kubectl reboot convert kured)"},
	{name: "FLUO", images: []string{"flatcar-linux-update-operator"}, level: Problem, first: "see docs/migrate.md"},
	{name: "CLUO", images: []string{"container-linux-update-operator"}, level: Problem, first: "see docs/migrate.md"},
	{name: "the COS update operator", images: []string{"cos-update-operator"}, level: Problem, first: "see docs/migrate.md"},
	{name: "poseidon/fleetlock", images: []string{"fleetlock"}, level: Problem, first: "see docs/migrate.md"},
	{name: "coreos-reboot-operator", images: []string{"coreos-reboot-operator", "rpm-ostree-operator"}, level: Problem, first: "see docs/migrate.md"},
	{name: "rebootmgr-operator", images: []string{"rebootmgr-operator"}, level: Problem},
	{name: "system-upgrade-controller", images: []string{"system-upgrade-controller"}, level: Warning, first: "its Plans may drain and reboot nodes: check that none does"},
}

// operators checks the DaemonSets and Deployments that have or want a pod.
func operators(c Cluster, f *findings) {
	for i := range c.DaemonSets {
		if d := &c.DaemonSets[i]; d.Status.DesiredNumberScheduled > 0 || d.Status.CurrentNumberScheduled > 0 || d.Status.ObservedGeneration < d.Generation {
			f.addOperator("daemonset", d.ObjectMeta, d.Spec.Template.Spec)
		}
	}
	for i := range c.Deployments {
		if d := &c.Deployments[i]; d.Spec.Replicas == nil || *d.Spec.Replicas > 0 || d.Status.Replicas > 0 {
			f.addOperator("deployment", d.ObjectMeta, d.Spec.Template.Spec)
		}
	}
}

// addOperator adds a finding if the pods of a workload run a known operator.
func (f *findings) addOperator(kind string, of metav1.ObjectMeta, pods corev1.PodSpec) {
	i := slices.IndexFunc(known, func(o operator) bool { return o.runs(pods) })
	if i < 0 {
		return
	}
	o := known[i]
	message := fmt.Sprintf("%s runs as %s %s/%s and also reboots nodes, beyond maxUnavailable", o.name, kind, of.Namespace, of.Name)
	if o.first != "" {
		message += ": " + o.first
	}
	f.add(o.level, message, fmt.Sprintf("kubectl delete %s -n %s %s", kind, of.Namespace, of.Name))
}

// runs reports whether a container has one of the operator's images, from any registry and with any
// tag, or its program in the command line. A word after a flag is ignored, because it may be the
// flag's value, such as a namespace of that name.
func (o operator) runs(pods corev1.PodSpec) bool {
	return slices.ContainsFunc(pods.Containers, func(c corev1.Container) bool {
		before := ""
		for _, arg := range slices.Concat(c.Command, c.Args) {
			if slices.Contains(o.images, path.Base(arg)) && (before == "--" || !strings.HasPrefix(before, "--")) {
				return true
			}
			before = arg
		}
		image, _ := parts(c.Image)
		return slices.Contains(o.images, image)
	})
}
