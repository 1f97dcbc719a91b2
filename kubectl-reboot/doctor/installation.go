package doctor

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/controllers/plan/attention"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
)

// Names and labels of what config deploys.
const (
	product    = "reboot-operator"
	nameLabel  = "app.kubernetes.io/name"
	partLabel  = "app.kubernetes.io/component"
	agentPart  = "agent"
	serverPart = "manager"
)

// helmRelease is the annotation that Helm adds to everything it installs.
const helmRelease = "meta.helm.sh/release-name"

// The first minor versions of Kubernetes 1 that the operator supports, and that have constrained
// impersonation.
const (
	oldest       = 31
	impersonates = 36
)

// Agent returns the DaemonSet of the agents, or nil.
func (c Cluster) Agent() *appsv1.DaemonSet {
	i := slices.IndexFunc(c.DaemonSets, func(d appsv1.DaemonSet) bool { return isPart(d.Spec.Template.Labels, agentPart) })
	if i < 0 {
		return nil
	}
	return &c.DaemonSets[i]
}

// Manager returns the Deployment of the manager, or nil.
func (c Cluster) Manager() *appsv1.Deployment {
	i := slices.IndexFunc(c.Deployments, func(d appsv1.Deployment) bool { return isPart(d.Spec.Template.Labels, serverPart) })
	if i < 0 {
		return nil
	}
	return &c.Deployments[i]
}

// deploy returns the command that deploys the operator again in the way it was deployed. A Helm
// release keeps its values and gets the given ones. The Makefile detects by itself which identity
// the agents can use.
func (c Cluster) deploy(values ...string) string {
	var of metav1.ObjectMeta
	if m := c.Manager(); m != nil {
		of = m.ObjectMeta
	} else if a := c.Agent(); a != nil {
		of = a.ObjectMeta
	}
	application, _, _ := strings.Cut(of.Annotations["argocd.argoproj.io/tracking-id"], ":")
	switch {
	case of.Labels["helm.toolkit.fluxcd.io/name"] != "":
		return fmt.Sprintf("kubectl edit helmrelease --namespace %s %s", of.Labels["helm.toolkit.fluxcd.io/namespace"], of.Labels["helm.toolkit.fluxcd.io/name"])
	case of.Labels["kustomize.toolkit.fluxcd.io/name"] != "":
		return fmt.Sprintf("flux reconcile kustomization --namespace %s %s", of.Labels["kustomize.toolkit.fluxcd.io/namespace"], of.Labels["kustomize.toolkit.fluxcd.io/name"])
	case application != "":
		return "argocd app sync " + application
	case of.Annotations[helmRelease] == "":
		return "make deploy"
	}
	command := fmt.Sprintf("helm upgrade %s config/chart --namespace %s --reset-then-reuse-values", of.Annotations[helmRelease], of.Namespace)
	if len(values) > 0 {
		command += " --set " + strings.Join(values, ",")
	}
	return command
}

func isPart(labels map[string]string, part string) bool {
	return labels[nameLabel] == product && labels[partLabel] == part
}

// plain reports whether the agents act with their own permissions, as in
// config/overlays/rbac-fallback.
func plain(agent *appsv1.DaemonSet) bool {
	for _, container := range agent.Spec.Template.Spec.Containers {
		if slices.Contains(container.Args, "--identity=serviceaccount") {
			return true
		}
	}
	return false
}

func version(c Cluster, f *findings) {
	outdated(c, f)
	agent := c.Agent()
	found := fmt.Sprintf("Kubernetes %d.%d", c.Major, c.Minor)
	switch {
	case c.Major == 0:
	case c.Major == 1 && c.Minor < oldest:
		f.add(Problem, fmt.Sprintf("the API server is %s; the operator needs 1.%d or later: upgrade the cluster", found, oldest), "")
	case agent == nil:
	case c.Major == 1 && c.Minor < impersonates && !plain(agent):
		f.add(Problem, "the agents have no permissions, because "+found+" cannot let them act as their nodes (constrained impersonation); deploy again to let them act as a ServiceAccount",
			c.deploy("identity=auto"))
	case (c.Major > 1 || c.Minor >= impersonates) && plain(agent):
		f.add(Warning, "the agents act as a ServiceAccount with permissions on all nodes, although "+found+" can let each act as its node; deploy again to limit each to its node",
			c.deploy("identity=auto"))
	}
}

// twice finds a second installation of a part, in another namespace or by another tool. workloads
// are the namespaces and names of the Deployments or DaemonSets.
func twice(f *findings, part string, workloads []string) {
	if len(workloads) > 1 {
		f.add(Problem, fmt.Sprintf("the %s is installed %d times (%s): remove all but one", part, len(workloads), strings.Join(workloads, ", ")),
			"kubectl get deployments,daemonsets -A -l "+nameLabel+"="+product)
	}
}

func manager(c Cluster, f *findings) {
	var found []string
	for i := range c.Deployments {
		if d := &c.Deployments[i]; isPart(d.Spec.Template.Labels, serverPart) {
			found = append(found, d.Namespace+"/"+d.Name)
		}
	}
	twice(f, serverPart, found)
	_, unread := c.Unread[Manager]
	switch m := c.Manager(); {
	case m == nil && !unread:
		f.add(Problem, "the Deployment of the manager is missing: no reboot is granted", c.deploy())
	case m != nil && m.Status.ReadyReplicas == 0:
		f.add(Problem, fmt.Sprintf("no replica of the manager is Ready (Deployment %s/%s): no reboot is granted", m.Namespace, m.Name),
			"kubectl describe pods -n "+m.Namespace+" -l "+partLabel+"="+serverPart)
	case c.Fleet.Manager.Down(c.Fleet.Now):
		f.add(Problem, c.Fleet.Manager.Trouble(c.Fleet.Now), status.LookAtManager)
	case c.Fleet.Manager.Trouble(c.Fleet.Now) != "":
		f.add(Unchecked, c.Fleet.Manager.Trouble(c.Fleet.Now), letLook)
	}
	for i := range c.Fleet.Policies {
		if p := &c.Fleet.Policies[i]; p.Status.ObservedGeneration < p.Generation {
			f.add(Problem, "the manager has not acted on the last change of policy "+p.Name, status.LookAtManager)
		}
	}
}

func agents(c Cluster, f *findings) {
	var found []string
	for i := range c.DaemonSets {
		if d := &c.DaemonSets[i]; isPart(d.Spec.Template.Labels, agentPart) {
			found = append(found, d.Namespace+"/"+d.Name)
		}
	}
	twice(f, agentPart, found)
	agent := c.Agent()
	_, unread := c.Unread[Agents]
	if agent == nil {
		if !unread {
			f.add(Problem, "the DaemonSet of the agents is missing: no node reports whether it needs a reboot", c.deploy())
		}
		return
	}
	otherVersion(c, agent, f)
	if missing := c.withoutAgent(); len(missing) > 0 && !unread {
		f.add(Problem, "no agent is Ready on "+message.Some(missing)+", so it is unknown whether a reboot is needed there", attention.LookAtAgents, missing...)
	}
}

// agentGrace is the time that an agent may need to become Ready after its node.
const agentGrace = time.Minute

// withoutAgent returns the nodes in service without a Ready agent.
func (c Cluster) withoutAgent() []string {
	ready := map[string]bool{}
	for i := range c.AgentPods {
		pod := &c.AgentPods[i]
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
				ready[pod.Spec.NodeName] = true
			}
		}
	}
	var missing []string
	for _, n := range c.Fleet.Views() {
		if n.Ready && !n.Deleting && !ready[n.Name] && c.Fleet.Now.Sub(n.ReadySince) > agentGrace && c.wantsAgent(n) {
			missing = append(missing, n.Name)
		}
	}
	return missing
}

// wantsAgent reports whether a node should have an agent: a policy selects it, or the DaemonSet
// does not exclude it. A nodeSelector lists the supported operating systems. The manager writes an
// affinity if it brings agents to selected nodes only.
func (c Cluster) wantsAgent(n *record.Node) bool {
	agent := c.Agent()
	switch {
	case n.Windows:
		return false
	case agent == nil, len(c.Fleet.Governor.Selecting(n)) > 0:
		return true
	}
	for key, value := range agent.Spec.Template.Spec.NodeSelector {
		if n.Labels[key] != value {
			return false
		}
	}
	return agent.Spec.Template.Spec.Affinity == nil
}

// otherVersion finds agents whose image differs from that of the DaemonSet, and a DaemonSet whose
// image tag differs from that of the manager.
func otherVersion(c Cluster, agent *appsv1.DaemonSet, f *findings) {
	want := imageOf(agent.Spec.Template.Spec, agentPart)
	var old []string
	for i := range c.AgentPods {
		if pod := &c.AgentPods[i]; pod.DeletionTimestamp == nil && imageOf(pod.Spec, agentPart) != want {
			old = append(old, pod.Spec.NodeName)
		}
	}
	if len(old) > 0 {
		slices.Sort(old)
		old = slices.Compact(old)
		f.add(Warning, fmt.Sprintf("the agents of %s do not run image %s of their DaemonSet; its rollout is in progress or stuck", message.Some(old), want),
			fmt.Sprintf("kubectl rollout status -n %s daemonset/%s", agent.Namespace, agent.Name), old...)
	}
	m := c.Manager()
	if m == nil {
		return
	}
	_, a := parts(want)
	if _, b := parts(imageOf(m.Spec.Template.Spec, serverPart)); a != "" && b != "" && a != b {
		f.add(Warning, fmt.Sprintf("the agents have version %s, but the manager has %s", a, b), c.deploy())
	}
}

// imageOf returns the image of the named container, or of the only one.
func imageOf(spec corev1.PodSpec, name string) string {
	for _, container := range spec.Containers {
		if container.Name == name || len(spec.Containers) == 1 {
			return container.Image
		}
	}
	return ""
}

// parts returns the last part of an image's name, and its tag. The tag is empty if the image has
// none or has a digest.
func parts(image string) (name, tag string) {
	image, _, digest := strings.Cut(path.Base(image), "@")
	if name, tag, _ = strings.Cut(image, ":"); digest {
		tag = ""
	}
	return name, tag
}

// Right is a permission that a ServiceAccount of the operator needs.
type Right struct {
	// Namespace and Account identify the ServiceAccount.
	Namespace, Account string
	Verb, Group        string
	// Resource may have a subresource, such as nodes/status.
	Resource string
	// Name is the name of a single object, or empty for all objects.
	Name string
	// In is the namespace of the permission. It is empty for all namespaces and for cluster-scoped
	// resources.
	In string
}

// NeededRights returns permissions without which the manager and the agents cannot work. Each of
// them stands for the role that has it: a role that is not bound lacks all of its permissions.
func (c Cluster) NeededRights() []Right {
	const own = "reboot-operator.io"
	var needed []Right
	if m := c.Manager(); m != nil {
		by := Right{Namespace: m.Namespace, Account: m.Spec.Template.Spec.ServiceAccountName}
		needed = append(needed, by.to("list", "", "nodes"), by.to("patch", "", "nodes"), by.to("patch", "", "nodes/status"), by.to("list", own, "rebootpolicies"),
			by.to("patch", own, "rebootpolicies"), by.to("update", own, "rebootpolicies/status"), by.to("grant", own, "noderecords"))
		local := by.to("list", "", "pods")
		local.In = m.Namespace
		needed = append(needed, local)
	}
	agent := c.Agent()
	if agent == nil {
		return needed
	}
	by := Right{Namespace: agent.Namespace, Account: agent.Spec.Template.Spec.ServiceAccountName}
	needed = append(needed, by.to("get", own, "rebootpolicies"), by.to("list", "policy", "poddisruptionbudgets"), by.to("get", "", "namespaces"))
	if plain(agent) {
		return append(needed, by.to("patch", "", "nodes"), by.to("patch", "", "nodes/status"), by.to("list", "", "pods"), by.to("create", "", "pods/eviction"))
	}
	act := by.to("impersonate:associated-node", "authentication.k8s.io", "nodes")
	act.Name = "*"
	for _, on := range [][2]string{{"patch", "nodes"}, {"patch", "nodes/status"}, {"list", "pods"}, {"create", "pods/eviction"}} {
		needed = append(needed, by.to("impersonate-on:associated-node:"+on[0], "", on[1]))
	}
	return append(needed, act)
}

func (r Right) to(verb, group, resource string) Right {
	r.Verb, r.Group, r.Resource = verb, group, resource
	return r
}

func rights(c Cluster, f *findings) {
	by := map[string][]string{}
	for _, r := range c.Missing {
		account := r.Namespace + "/" + r.Account
		by[account] = append(by[account], r.Verb+" "+r.Resource)
	}
	for _, account := range slices.Sorted(maps.Keys(by)) {
		f.add(Problem, fmt.Sprintf("ServiceAccount %s may not: %s; deploy the ClusterRoles and their bindings again", account, strings.Join(by[account], ", ")), c.deploy())
	}
}
