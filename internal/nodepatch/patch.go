// Package nodepatch builds the patches with which the manager and the agent write a Node. A patch
// changes only the fields that it contains.
package nodepatch

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patch is a strategic merge patch of a Node. With a resourceVersion it is a compare-and-swap: the
// API server refuses it if the Node has changed since. The zero value changes nothing.
type Patch struct {
	Metadata Metadata       `json:"metadata,omitzero"`
	Spec     map[string]any `json:"spec,omitempty"`
	Status   *Status        `json:"status,omitempty"`
}

var _ client.Patch = (*Patch)(nil)

// Metadata holds annotations and labels. A nil value removes one, if it exists.
type Metadata struct {
	ResourceVersion string             `json:"resourceVersion,omitempty"`
	Annotations     map[string]*string `json:"annotations,omitempty"`
	Labels          map[string]*string `json:"labels,omitempty"`
}

// Status sets conditions by type. To remove one, it contains a patch directive instead of the
// condition.
type Status struct {
	Conditions []any `json:"conditions,omitempty"`
}

// New returns a patch of a Node of this version, or of any version if it is empty.
func New(resourceVersion string) *Patch {
	return &Patch{Metadata: Metadata{ResourceVersion: resourceVersion}}
}

// Annotate sets an annotation.
func (p *Patch) Annotate(key, value string) *Patch {
	set(&p.Metadata.Annotations, key, &value)
	return p
}

// RemoveAnnotation removes an annotation.
func (p *Patch) RemoveAnnotation(key string) { set(&p.Metadata.Annotations, key, nil) }

// Label sets a label.
func (p *Patch) Label(key, value string) { set(&p.Metadata.Labels, key, &value) }

// RemoveLabel removes a label.
func (p *Patch) RemoveLabel(key string) { set(&p.Metadata.Labels, key, nil) }

func set(values *map[string]*string, key string, value *string) {
	if *values == nil {
		*values = map[string]*string{}
	}
	(*values)[key] = value
}

// Condition replaces all conditions of this type on the Node, because other programs may have added
// several. It also writes an empty message, because a patch keeps missing fields.
func (p *Patch) Condition(c corev1.NodeCondition) *Patch {
	p.RemoveCondition(c.Type)
	p.condition(condition{c, c.Message})
	return p
}

// condition is a condition that a patch sets.
type condition struct {
	corev1.NodeCondition
	Message string `json:"message"`
}

// Dated returns a condition with its times. The transition time changes only with the status.
// before is the previous condition, or the zero value.
func Dated(c, before corev1.NodeCondition, now time.Time) corev1.NodeCondition {
	c.LastHeartbeatTime, c.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
	if c.Status == before.Status {
		c.LastTransitionTime = before.LastTransitionTime
	}
	return c
}

// RemoveCondition removes all conditions of a type.
func (p *Patch) RemoveCondition(kind corev1.NodeConditionType) {
	p.condition(removal{kind, "delete"})
}

// removal removes a condition.
type removal struct {
	Type  corev1.NodeConditionType `json:"type"`
	Patch string                   `json:"$patch"`
}

func (p *Patch) condition(c any) {
	if p.Status == nil {
		p.Status = &Status{}
	}
	p.Status.Conditions = append(p.Status.Conditions, c)
}

// Cordon makes the node unschedulable.
func (p *Patch) Cordon() { p.spec("unschedulable", true) }

// Uncordon makes the node schedulable.
func (p *Patch) Uncordon() { p.spec("unschedulable", nil) }

// Uncordons reports whether the patch makes the node schedulable.
func (p *Patch) Uncordons() bool {
	unschedulable, asked := p.Spec["unschedulable"]
	return asked && unschedulable == nil
}

// Taint replaces all taints, because a patch cannot change single ones.
func (p *Patch) Taint(taints []corev1.Taint) {
	if len(taints) == 0 {
		p.spec("taints", nil)
		return
	}
	p.spec("taints", taints)
}

func (p *Patch) spec(key string, value any) {
	if p.Spec == nil {
		p.Spec = map[string]any{}
	}
	p.Spec[key] = value
}

// Type implements client.Patch.
func (p *Patch) Type() types.PatchType { return types.StrategicMergePatchType }

// Data implements client.Patch.
func (p *Patch) Data(client.Object) ([]byte, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	return data, nil
}
