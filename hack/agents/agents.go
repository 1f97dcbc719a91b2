// Package agents plays the agents of nodes. The harness decides when each agent acts and what its
// host is like. What an agent may write and report is decided by the same functions as in the real
// agent.
package agents

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// Move is one write of an agent, which changes the Node in memory. It fails if the protocol does
// not allow it.
type Move func(node *corev1.Node) error

// Play sends moves to the API server, one after the other. It leaves the last state in node.
func Play(ctx context.Context, nodes client.Client, node *corev1.Node, moves ...Move) error {
	for _, move := range moves {
		before := node.DeepCopy()
		if err := move(node); err != nil {
			return err
		}
		if err := write(ctx, nodes, node, before); err != nil {
			return err
		}
	}
	return nil
}

// write sends the difference as the real agent does: to the Node itself if the cordon changes,
// otherwise to its status.
func write(ctx context.Context, nodes client.Client, node, before *corev1.Node) error {
	patch, owner := client.StrategicMergeFrom(before), client.FieldOwner(v1alpha1.FieldOwnerAgent)
	if node.Spec.Unschedulable != before.Spec.Unschedulable {
		return nodes.Patch(ctx, node, patch, owner)
	}
	return nodes.Status().Patch(ctx, node, patch, owner)
}

// Boot changes the boot ID, as the kubelet reports it.
func Boot(id string) Move {
	return func(node *corev1.Node) error {
		node.Status.NodeInfo.BootID = id
		return nil
	}
}

// Start begins an attempt and cordons the node.
func Start(now time.Time) Move {
	return func(node *corev1.Node) error {
		progress, may := protocol.Start(protocol.RecordOf(node), node.Status.NodeInfo.BootID, !node.Spec.Unschedulable, now)
		node.Spec.Unschedulable = true
		return record(node, progress, may)
	}
}

// Commit passes the point of no return.
func Commit(now time.Time) Move {
	return func(node *corev1.Node) error {
		progress, may := protocol.Commit(protocol.RecordOf(node), node.Status.NodeInfo.BootID, now)
		if err := record(node, progress, may); err != nil {
			return err
		}
		return Report(step.Observation{Now: now})(node)
	}
}

// Abort ends an attempt, and removes the agent's own cordon. It counts as a failure unless it was
// cancelled.
func Abort(reason v1alpha1.Reason, message string, now time.Time) Move {
	return func(node *corev1.Node) error {
		failed := reason != v1alpha1.ReasonCancelled
		progress, may := protocol.Abort(protocol.RecordOf(node), node.Status.NodeInfo.BootID, reason, message, failed, now)
		node.Spec.Unschedulable = node.Spec.Unschedulable && !protocol.Uncordons(node)
		return record(node, progress, may)
	}
}

func record(node *corev1.Node, progress protocol.Progress, may bool) error {
	if !may {
		return fmt.Errorf("node %q may not begin or leave its phase: %v", node.Name, node.Annotations)
	}
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, v1alpha1.AnnotationProgress, progress.String())
	return nil
}

// Staged returns the observation of an agent whose host has an update to boot.
func Staged(now time.Time) step.Observation {
	return observed(now, engine.Report{State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Message: "An update is staged."})
}

// UpToDate returns the observation of an agent whose host has no update.
func UpToDate(now time.Time) step.Observation {
	return observed(now, engine.Report{State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: "Nothing is staged."})
}

func observed(now time.Time, report engine.Report) step.Observation {
	report.Engine = "update-engine"
	return step.Observation{Now: now, Engines: []engine.Report{report}}
}

// Report reports on the Node. The observation says what the agent sees of its host.
func Report(o step.Observation) Move {
	return func(node *corev1.Node) error {
		o.Node, o.BootID, o.Record, o.Conditions = node.Name, node.Status.NodeInfo.BootID, protocol.RecordOf(node), node.Status.Conditions
		o.RequestedWhy, o.Requested = v1alpha1.RequestIn(node.Annotations)
		o.BootedAt = v1alpha1.BootedAt(node.Annotations)
		o.Reported, _ = protocol.ParseAgentReport(node.Annotations)
		o.Before, _ = protocol.ParseEngines(node.Annotations)
		show(node, o.Now, step.NodeStatusOf(o))
		return nil
	}
}

func show(node *corev1.Node, now time.Time, s step.NodeStatus) {
	for _, c := range s.Conditions {
		before := v1alpha1.NodeCondition(node.Status.Conditions, c.Type)
		if c.Status == before.Status && c.Reason == before.Reason && c.Message == before.Message {
			continue
		}
		c = nodepatch.Dated(c, before, now)
		if i := slices.Index(node.Status.Conditions, before); i >= 0 {
			node.Status.Conditions[i] = c
		} else {
			node.Status.Conditions = append(node.Status.Conditions, c)
		}
	}
	node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return slices.Contains(s.Removed, c.Type) })
	change(&node.Labels, s.Labels)
	change(&node.Annotations, s.Annotations)
}

func change(values *map[string]string, wanted map[string]*string) {
	if *values == nil {
		*values = map[string]string{}
	}
	for key, value := range wanted {
		delete(*values, key)
		if value != nil {
			(*values)[key] = *value
		}
	}
}
