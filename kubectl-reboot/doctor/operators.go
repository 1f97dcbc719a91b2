package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// operator is a program that reboots nodes from within the cluster, known by the last part of its images' names.
type operator struct {
	name   string
	images []string
	// level is Warning for one that reboots nodes only where it is asked to.
	level Level
	// first is what to do before it is deleted. Empty: nothing.
	first string
}

// known are the operators that reboot nodes of hosts this one serves.
var known = []operator{
	{name: "kured", images: []string{"kured"}, level: Problem, first: "make a policy of its flags (kubectl reboot convert kured)"},
	{name: "FLUO", images: []string{"flatcar-linux-update-operator"}, level: Problem, first: "see docs/migrate.md"},
	{name: "CLUO", images: []string{"container-linux-update-operator"}, level: Problem, first: "see docs/migrate.md"},
	{name: "the COS update operator", images: []string{"cos-update-operator"}, level: Problem, first: "see docs/migrate.md"},
	{name: "coreos-reboot-operator", images: []string{"coreos-reboot-operator", "rpm-ostree-operator"}, level: Problem, first: "see docs/migrate.md"},
	{name: "rebootmgr-operator", images: []string{"rebootmgr-operator"}, level: Problem},
	{name: "system-upgrade-controller", images: []string{"system-upgrade-controller"}, level: Warning, first: "its Plans may drain and reboot nodes: see that none does"},
}

// workload is a DaemonSet or a Deployment that runs pods.
type workload struct {
	kind, namespace, name string
	pods                  corev1.PodSpec
}

// running are the workloads that have, or want, a pod.
func (c Cluster) running() []workload {
	var all []workload
	for i := range c.DaemonSets {
		if d := &c.DaemonSets[i]; d.Status.DesiredNumberScheduled > 0 || d.Status.CurrentNumberScheduled > 0 || d.Status.ObservedGeneration < d.Generation {
			all = append(all, workload{"daemonset", d.Namespace, d.Name, d.Spec.Template.Spec})
		}
	}
	for i := range c.Deployments {
		if d := &c.Deployments[i]; d.Spec.Replicas == nil || *d.Spec.Replicas > 0 || d.Status.Replicas > 0 {
			all = append(all, workload{"deployment", d.Namespace, d.Name, d.Spec.Template.Spec})
		}
	}
	return all
}

func operators(c Cluster, f *findings) {
	for _, w := range c.running() {
		i := slices.IndexFunc(known, func(o operator) bool { return o.runs(w.pods) })
		if i < 0 {
			continue
		}
		o := known[i]
		message := fmt.Sprintf("%s runs as %s %s/%s and reboots nodes beside this operator, above maxUnavailable", o.name, w.kind, w.namespace, w.name)
		if o.first != "" {
			message += ": " + o.first
		}
		f.add(o.level, message, fmt.Sprintf("kubectl delete %s -n %s %s", w.kind, w.namespace, w.name))
	}
}

// runs reports whether a container has one of its images, whatever the registry and the tag, or its program as the command.
func (o operator) runs(pods corev1.PodSpec) bool {
	return slices.ContainsFunc(pods.Containers, func(c corev1.Container) bool {
		image, _, _ := strings.Cut(path.Base(c.Image), "@")
		image, _, _ = strings.Cut(image, ":")
		isProgram := func(arg string) bool { return slices.Contains(o.images, path.Base(arg)) }
		return slices.Contains(o.images, image) || slices.ContainsFunc(c.Command, isProgram) || slices.ContainsFunc(c.Args, isProgram)
	})
}
