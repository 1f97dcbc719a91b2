package simulation

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
)

// admin is who edits the objects of a world. The pools are those that a node may be in.
type admin struct {
	store *apiserver.Store
	pools []string
}

// wipeStatus takes from a status all that the API server lets go. False: there is no policy.
func (a admin) wipeStatus(name string) bool {
	policy, there := apiserver.Read[*v1alpha1.RebootPolicy](a.store, name)
	if !there {
		return false
	}
	policy.Status = v1alpha1.RebootPolicyStatus{Seq: policy.Status.Seq, Limit: policy.Status.Limit}
	_, err := a.store.PutPolicyStatus(policy, judge.Admin)
	return err == nil
}

func (a admin) editNode(name string, d Fault) bool {
	return apiserver.Change(a.store, name, judge.Admin, func(node *corev1.Node) {
		switch d.What {
		case RequestReboot:
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, v1alpha1.AnnotationRebootRequested, "because")
		case CordonNode:
			node.Spec.Unschedulable = true
		case UncordonNode:
			node.Spec.Unschedulable = false
		case Relabel:
			at := slices.Index(a.pools, node.Labels[labelPool])
			metav1.SetMetaDataLabel(&node.ObjectMeta, labelPool, a.pools[(at+d.Number)%len(a.pools)])
		case PauseNode:
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, v1alpha1.AnnotationPaused, "true")
		case ResumeNode:
			delete(node.Annotations, v1alpha1.AnnotationPaused)
		default:
		}
	})
}

func (a admin) editPolicy(name string, d Fault) bool {
	return apiserver.Change(a.store, name, judge.Admin, func(policy *v1alpha1.RebootPolicy) {
		switch spec := &policy.Spec; d.What {
		case SetLimit:
			spec.Concurrency.MaxUnavailable = new(intstr.FromInt32(int32(d.Number)))
		case PausePolicy:
			until := metav1.NewTime(time.Now().Add(d.For)).Rfc3339Copy()
			spec.Pause = &v1alpha1.Pause{Reason: "because", Until: &until}
		case ResumePolicy:
			spec.Pause = nil
		case DryRun:
			spec.Mode = v1alpha1.ModeDryRun
		case Enforce:
			spec.Mode = v1alpha1.ModeEnforce
		case EndHalt:
			if halted(policy) {
				metav1.SetMetaDataAnnotation(&policy.ObjectMeta, v1alpha1.AnnotationResume, "because")
			}
		default:
		}
	})
}
