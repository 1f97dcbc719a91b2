package drains

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

const (
	// drainer is the user that kubectl is, so that its requests can be distinguished from all others.
	drainer = "kubectl-drain"
	// down is how long the machine is down that the operator has drained.
	down = time.Second
	// room is how many pods fit on a node.
	room = 600
)

// rig is two nodes between which pods move, and a third one with the managers.
type rig struct {
	*fleet.Fleet
	screen *terminal.Terminal
	// ours is drained by the operator, theirs by kubectl; other has the managers.
	ours, theirs, other string
	// kubeconfig is that of drainer.
	kubeconfig string
}

// newRig starts a fleet whose nodes are large enough, and whose policy reboots a node when it needs that.
func newRig(ctx context.Context, screen *terminal.Terminal) (*rig, error) {
	f, err := fleet.Start(ctx, fleet.Options{
		Nodes: 3, Workload: workload(0), RebootDuration: down, Step: screen.Step,
	})
	if err != nil {
		return nil, err
	}
	r := &rig{Fleet: f, screen: screen, ours: f.Hosts[0].Name, theirs: f.Hosts[1].Name, other: f.Hosts[2].Name}
	if err := screen.Step("managers on a node of their own", func() error { return r.prepare(ctx) }); err != nil {
		f.Stop()
		return nil, err
	}
	return r, nil
}

func (r *rig) prepare(ctx context.Context) (err error) {
	if r.kubeconfig, err = r.Cluster.UserKubeconfig(drainer, "system:masters"); err != nil {
		return err
	}
	large := fmt.Sprintf(`-p={"status":{"capacity":{"pods":"%[1]d"},"allocatable":{"pods":"%[1]d"}}}`, room)
	apart := fmt.Sprintf(`-p={"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/hostname":%q}}}}}`, r.other)
	for _, args := range [][]string{
		{"patch", "nodes", r.ours, r.theirs, r.other, "--subresource=status", large},
		{"-n=reboot-operator-system", "patch", "deployment", "reboot-operator-manager", apart},
		{"-n=reboot-operator-system", "rollout", "status", "deployment", "reboot-operator-manager", "--timeout=60s"},
	} {
		if err := r.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	_, err = r.ApplyPolicy(ctx, func(spec *v1alpha1.RebootPolicySpec) { spec.Settle = &metav1.Duration{} })
	return err
}

// kubectl is the administrator's, in the namespace of the pods.
func (r *rig) kubectl(ctx context.Context, args ...string) error {
	_, err := r.Cluster.Kubectl(ctx, nil, append([]string{"--namespace=" + namespace}, args...)...)
	return err
}

// fill brings the pods to the operator's node, beside those that are there.
func (r *rig) fill(ctx context.Context, pods int) error {
	if err := r.kubectl(ctx, "cordon", r.theirs); err != nil {
		return err
	}
	if err := r.Cluster.ApplyManifest(ctx, workload(pods, r.ours, r.theirs)); err != nil {
		return err
	}
	if err := r.awaitPods(ctx, r.ours, pods); err != nil {
		return err
	}
	return r.kubectl(ctx, "uncordon", r.theirs)
}

// guard brings the budgets, and returns when each lets a pod go.
func (r *rig) guard(ctx context.Context, pods int) error {
	if err := r.Cluster.ApplyManifest(ctx, budgets(pods)); err != nil {
		return err
	}
	return r.kubectl(ctx, "wait", "poddisruptionbudgets", "--all", "--for=jsonpath={.status.disruptionsAllowed}=1", "--timeout=2m")
}

// awaitPods returns when so many pods are Ready on a node, and there are no others.
func (r *rig) awaitPods(ctx context.Context, node string, pods int) error {
	return r.Await(ctx, fmt.Sprintf("%d pods on %s", pods, node), func() bool {
		list, err := r.Cluster.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil || len(list.Items) != pods {
			return false
		}
		for _, pod := range list.Items {
			if pod.Spec.NodeName != node || pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
				return false
			}
		}
		return true
	})
}
