package controllers

import (
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// shield keeps autoscalers off the node; the grant that is written with it says by which annotations.
func shield(p *nodepatch.Patch, n *plan.Node) {
	for _, key := range n.Raise() {
		p.Annotate(key, plan.Raised)
	}
}

// unshield removes the annotations of the grant that the node shows.
func unshield(p *nodepatch.Patch, n *plan.Node) {
	for _, key := range n.Lower() {
		p.RemoveAnnotation(key)
	}
}
