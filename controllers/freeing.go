package controllers

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// freeing are the policies of which a node has come back, or has given up, since their last pass began: a slot can be handed
// over. What a pass writes to explain, dozens of requests one after the other, gives way to it. It only ever saves time, and
// is forgotten with the process. Its methods may be called from any goroutine.
type freeing struct {
	mu       sync.Mutex
	policies map[string]bool
}

// note remembers a policy.
func (f *freeing) note(policy string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.policies == nil {
		f.policies = map[string]bool{}
	}
	f.policies[policy] = true
}

// begin forgets a policy whose pass begins, and so sees the node.
func (f *freeing) begin(policy string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.policies, policy)
}

// noted tells whether a policy was remembered since its last pass began.
func (f *freeing) noted(policy string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.policies[policy]
}

// freesSlot tells whether a node that shows an active grant is done with it, by all that its agent and its kubelet say. The
// manager's own write of the end is none of that.
func freesSlot(node *corev1.Node, grant *v1alpha1.Grant) bool {
	if grant == nil || grant.State != v1alpha1.GrantActive {
		return false
	}
	if node.Status.NodeInfo.BootID != grant.BootID {
		return true
	}
	progress, err := v1alpha1.ParseProgress(node.Annotations)
	return err == nil && progress != nil && progress.Seq == grant.Seq && progress.Phase == v1alpha1.PhaseAborted
}
