package plan

import (
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// guard keeps a quorum: at most one control-plane node is ever granted, only while the others are Ready, and only when
// all of them fall under one policy.
func (f *fleet) guard(n *Node) *Objection {
	if !n.ControlPlane {
		return nil
	}
	for _, other := range f.controlPlane {
		if other == n {
			continue
		}
		if o := f.guardAgainst(other); o != nil {
			return o
		}
	}
	return nil
}

func (f *fleet) guardAgainst(other *Node) *Objection {
	g := f.Governor.Govern(other.Labels)
	switch {
	case f.held(other):
		return objection(v1alpha1.ReasonControlPlaneGuard, "control-plane node %s is being rebooted", other.Name)
	case !other.Ready:
		return objection(v1alpha1.ReasonControlPlaneGuard, "control-plane node %s is not Ready", other.Name)
	case g.Policy != f.name:
		return objection(v1alpha1.ReasonPolicyConflict, "all control-plane nodes must fall under one policy; %s does not fall under %s", other.Name, f.name)
	}
	return nil
}
