package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/bench/rules"
)

// reboots plays the agents and the machines of the nodes that need a reboot, and notes when slots are freed and given. Its
// methods run in one goroutine, but for those of a single reboot.
type reboots struct {
	lab  *lab
	down time.Duration

	// freed is when an agent had reported that all is well after the boot, finished when the manager had confirmed it, and granted
	// when the grant was published: all as this process saw it in a watch.
	freed, finished, granted []time.Time

	nodes map[string]*numbers
	fail  func(error)
}

// numbers are the last grants of a node of which something was seen.
type numbers struct{ granted, freed, finished int64 }

// selected are the nodes that need reboots.
func selected() metav1.ListOptions { return metav1.ListOptions{LabelSelector: labelReboots} }

// run makes all of them need a reboot, and returns when each has been rebooted and confirmed.
func (r *reboots) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.fail, r.nodes = cancel, map[string]*numbers{}
	list, err := r.lab.kube.CoreV1().Nodes().List(ctx, selected())
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for i := range list.Items {
		r.nodes[list.Items[i].Name] = r.before(&list.Items[i])
	}
	// The API server ends the watch of one who is slow, as this process may be while thousands of nodes begin to need a reboot.
	changes, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selected().LabelSelector
			return r.lab.kube.CoreV1().Nodes().Watch(ctx, options)
		},
	})
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	defer changes.Stop()
	go func() {
		if err := r.need(ctx, list.Items); err != nil {
			cancel(err)
		}
	}()
	return r.follow(ctx, changes, len(list.Items))
}

// before is what was done about a node before.
func (r *reboots) before(node *corev1.Node) *numbers {
	if grant, err := protocol.ParseGrant(node.Annotations); err == nil && grant != nil {
		return &numbers{grant.Seq, grant.Seq, grant.Seq}
	}
	return &numbers{}
}

func (r *reboots) follow(ctx context.Context, changes watch.Interface, reboots int) error {
	for len(r.finished) < reboots {
		select {
		case change, open := <-changes.ResultChan():
			node, isNode := change.Object.(*corev1.Node)
			if !open || !isNode {
				return cmp.Or(context.Cause(ctx), errors.New("the watch of nodes has ended"))
			}
			r.answer(ctx, node)
			r.observe(ctx, node)
		case <-ctx.Done():
			return fmt.Errorf("rebooting %d nodes, %d of which are done: %w", reboots, len(r.finished), context.Cause(ctx))
		}
	}
	return nil
}

// observe notes what has happened to a node, and begins its reboot once it may.
func (r *reboots) observe(ctx context.Context, node *corev1.Node) {
	now, last := r.lab.clock.Now(), r.nodes[node.Name]
	grant, err := protocol.ParseGrant(node.Annotations)
	if err != nil || grant == nil || last == nil {
		return
	}
	if grant.State == protocol.GrantActive && grant.Seq > last.granted {
		last.granted = grant.Seq
		r.granted = append(r.granted, now)
		go func() {
			if err := r.reboot(ctx, node, grant); err != nil && ctx.Err() == nil {
				r.fail(err)
			}
		}()
	}
	if grant.Seq > last.freed && node.Status.NodeInfo.BootID != grant.BootID && !needs(node) {
		last.freed = grant.Seq
		r.freed = append(r.freed, now)
	}
	if grant.State == protocol.GrantFinished && grant.Seq > last.finished {
		last.finished = grant.Seq
		r.finished = append(r.finished, now)
	}
}

// answer writes what a hook and the agent answer that the manager asks.
func (r *reboots) answer(ctx context.Context, node *corev1.Node) {
	answers := map[string]any{}
	if approval := rules.Approval(node); approval != "" {
		answers[rules.Answer] = approval
	}
	if asked, err := protocol.ParsePreflight(node.Annotations); err == nil && asked != nil {
		nothing := protocol.PreflightReport{Policy: asked.Policy, Revision: asked.Revision, BootID: node.Status.NodeInfo.BootID}
		report := protocol.AgentReport{Preflight: &nothing}.String()
		if node.Annotations[v1alpha1.AnnotationReport] != report {
			answers[v1alpha1.AnnotationReport] = report
		}
	}
	if len(answers) == 0 {
		return
	}
	go func() {
		if err := r.patch(ctx, node.Name, map[string]any{"metadata": map[string]any{"annotations": answers}}); err != nil && ctx.Err() == nil {
			r.fail(err)
		}
	}()
}

func needs(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == v1alpha1.NodeRebootRequired {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// need is the agents' word that an update is staged.
func (r *reboots) need(ctx context.Context, nodes []corev1.Node) error {
	return r.lab.each(ctx, 0, len(nodes), func(ctx context.Context, i int) error {
		return r.patch(ctx, nodes[i].Name, map[string]any{
			"metadata": map[string]any{"labels": map[string]any{v1alpha1.LabelRebootRequired: "true"}},
			"status": map[string]any{"conditions": []any{r.condition(v1alpha1.NodeRebootRequired, corev1.ConditionTrue,
				string(v1alpha1.ReasonUpdateStaged), "Flatcar Container Linux 4593.2.0 is staged")}},
		}, "status")
	})
}

// reboot is what an agent and its machine do with a grant: the same four writes, and time in between for the machine alone.
func (r *reboots) reboot(ctx context.Context, node *corev1.Node, grant *protocol.Grant) error {
	progress := protocol.Progress{Seq: grant.Seq, Phase: protocol.PhaseDraining, BootID: grant.BootID, Cordoned: true, At: metav1.Now()}
	record := func() map[string]any {
		return map[string]any{"annotations": map[string]any{v1alpha1.AnnotationProgress: progress.String()}}
	}
	err := r.patch(ctx, node.Name, map[string]any{"metadata": record(), "spec": map[string]any{"unschedulable": true}})
	if err != nil {
		return err
	}
	progress.Phase = protocol.PhaseRebooting
	err = r.patch(ctx, node.Name, map[string]any{
		"metadata": record(),
		"status": map[string]any{"conditions": []any{
			r.condition(corev1.NodeDrained, corev1.ConditionTrue, "Drained", "all pods have left"),
			r.condition(corev1.NodeMaintenanceInProgress, corev1.ConditionTrue, "Rebooting", "the host is asked to reboot"),
		}},
	}, "status")
	if err != nil {
		return err
	}
	if err := r.lab.pause(ctx, r.down); err != nil {
		return err
	}
	boot := string(uuid.NewUUID())
	err = r.patch(ctx, node.Name, map[string]any{"status": map[string]any{"nodeInfo": map[string]any{"bootID": boot}}}, "status")
	if err != nil {
		return err
	}
	return r.patch(ctx, node.Name, map[string]any{
		"metadata": map[string]any{
			"labels":      map[string]any{v1alpha1.LabelRebootRequired: nil, v1alpha1.LabelOSVersion: "4593.2.0"},
			"annotations": map[string]any{v1alpha1.AnnotationEngines: fmt.Sprintf(engines, boot), v1alpha1.AnnotationBootedAt: metav1.Now().UTC().Format(time.RFC3339)},
		},
		"status": map[string]any{"conditions": []any{
			r.condition(corev1.NodeDrained, corev1.ConditionFalse, "Rebooted", "the host has been rebooted"),
			r.condition(corev1.NodeMaintenanceInProgress, corev1.ConditionFalse, "Rebooted", "the host has been rebooted"),
			r.condition(v1alpha1.NodeRebootRequired, corev1.ConditionFalse, string(v1alpha1.ReasonUpToDate), upToDate),
			map[string]any{"type": v1alpha1.NodeRebootPermitted, "$patch": "delete"},
			map[string]any{"type": corev1.NodeMaintenancePlanned, "$patch": "delete"},
		}},
	}, "status")
}

func (r *reboots) condition(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) any {
	now := metav1.NewTime(r.lab.clock.Now())
	return corev1.NodeCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now,
	}
}

func (r *reboots) patch(ctx context.Context, node string, patch map[string]any, subresources ...string) error {
	_, err := r.lab.kube.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, encode(patch),
		metav1.PatchOptions{FieldManager: v1alpha1.FieldOwnerAgent}, subresources...)
	if err != nil {
		return fmt.Errorf("writing node %q: %w", node, err)
	}
	return nil
}
