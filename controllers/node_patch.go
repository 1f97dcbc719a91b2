package controllers

import (
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// setMarkers sets the annotations that keep autoscalers off the node; the grant that is written with it names them.
func setMarkers(p *nodepatch.Patch, n *plan.Node) {
	for _, key := range n.AnnotationsToSet() {
		p.Annotate(key, plan.AutoscalerValue)
	}
}

// removeMarkers removes the annotations that the grant on the node names.
func removeMarkers(p *nodepatch.Patch, n *plan.Node) {
	for _, key := range n.AnnotationsToRemove() {
		p.RemoveAnnotation(key)
	}
}
