package controllers

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// nodePatch is a strategic merge patch of a Node: it touches nothing it does not name. With a resourceVersion it is a
// compare-and-swap: the API server refuses it when the Node has changed since.
type nodePatch struct {
	Metadata nodePatchMetadata `json:"metadata"`
	Spec     map[string]any    `json:"spec,omitempty"`
	Status   *nodePatchStatus  `json:"status,omitempty"`
}

type nodePatchMetadata struct {
	ResourceVersion string         `json:"resourceVersion,omitempty"`
	Annotations     map[string]any `json:"annotations,omitempty"`
	Labels          map[string]any `json:"labels,omitempty"`
}

type nodePatchStatus struct {
	Conditions []any `json:"conditions"`
}

func newNodePatch(resourceVersion string) *nodePatch {
	return &nodePatch{Metadata: nodePatchMetadata{ResourceVersion: resourceVersion, Annotations: map[string]any{}, Labels: map[string]any{}}}
}

func (p *nodePatch) annotate(key, value string) *nodePatch {
	p.Metadata.Annotations[key] = value
	return p
}

// remove takes an annotation away; there need not be one.
func (p *nodePatch) remove(annotation string) { p.Metadata.Annotations[annotation] = nil }

// label sets a label, or takes it away where the value is nil.
func (p *nodePatch) label(key string, value any) { p.Metadata.Labels[key] = value }

func (p *nodePatch) condition(c corev1.NodeCondition) *nodePatch {
	return p.withCondition(c)
}

func (p *nodePatch) removeCondition(kind corev1.NodeConditionType) {
	p.withCondition(map[string]any{"type": kind, "$patch": "delete"})
}

func (p *nodePatch) withCondition(c any) *nodePatch {
	if p.Status == nil {
		p.Status = &nodePatchStatus{}
	}
	p.Status.Conditions = append(p.Status.Conditions, c)
	return p
}

func (p *nodePatch) uncordon() { p.spec("unschedulable", nil) }

// taint replaces all taints: their list has one owner, and no patch reaches into it.
func (p *nodePatch) taint(taints []corev1.Taint) {
	if len(taints) == 0 {
		p.spec("taints", nil)
		return
	}
	p.spec("taints", taints)
}

func (p *nodePatch) spec(key string, value any) {
	if p.Spec == nil {
		p.Spec = map[string]any{}
	}
	p.Spec[key] = value
}

// shield keeps autoscalers off the node; the grant that is written with it says by which annotations.
func (p *nodePatch) shield(n *plan.Node) *nodePatch {
	for _, key := range n.Raise() {
		p.annotate(key, plan.Raised)
	}
	return p
}

// unshield takes away the annotations of the grant that the node shows.
func (p *nodePatch) unshield(n *plan.Node) *nodePatch {
	for _, key := range n.Lower() {
		p.remove(key)
	}
	return p
}

// Type implements client.Patch.
func (p *nodePatch) Type() types.PatchType { return types.StrategicMergePatchType }

// Data implements client.Patch.
func (p *nodePatch) Data(client.Object) ([]byte, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	return data, nil
}
