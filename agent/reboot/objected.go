package reboot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// toSeeTo are the objections that do not fall by themselves, and their events.
var toSeeTo = map[v1alpha1.Reason]string{
	v1alpha1.ReasonUpdateNotApplied:    v1alpha1.EventUpdateNotApplied,
	v1alpha1.ReasonCoordinatorConflict: v1alpha1.EventCoordinatorConflict,
}

// objected tells an objection to which somebody has to see. One that stood before was told then.
func (r *Reconciler) objected(node *corev1.Node, before map[string]string) {
	stood, err := v1alpha1.ParseObjection(before)
	if err != nil {
		stood = nil // what nobody can read has told nobody anything
	}
	stands, err := v1alpha1.ParseObjection(node.Annotations)
	if err != nil {
		return // somebody else has written it since
	}
	for _, o := range stands.All() {
		told := slices.ContainsFunc(stood.All(), func(s v1alpha1.Objection) bool { return s.Reason == o.Reason && s.Message == o.Message })
		if event := toSeeTo[o.Reason]; event != "" && !told {
			r.warn(node, event, "Report", "%s", o.Message)
		}
	}
}
