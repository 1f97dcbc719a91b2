package reboot

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// managerOptions are those of an agent's manager: it watches one Node and asks the API server for nothing else.
func managerOptions(node string) (ctrl.Options, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return ctrl.Options{}, fmt.Errorf("registering the kinds: %w", err)
	}
	return ctrl.Options{
		Scheme:         scheme,
		MapperProvider: kinds,
		Cache: cache.Options{
			ReaderFailOnMissingInformer: true,
			ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {
				Field: fields.OneTermEqualSelector("metadata.name", node), Transform: TrimNode,
			}},
		},
	}, nil
}

// kinds are those an agent reads and writes. Discovery would need rights that the node's identity does not have.
func kinds(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolume"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.GroupVersion.WithKind("RebootPolicy"), meta.RESTScopeRoot)
	return mapper, nil
}

// TrimNode is the transform of the agent's informer: it keeps of the Node what the agent decides by and events refer to.
func TrimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	node.ManagedFields = nil
	node.Status = corev1.NodeStatus{Conditions: node.Status.Conditions, VolumesInUse: node.Status.VolumesInUse}
	return node, nil
}

// ofInterest drops updates that change nothing the agent decides by: the kubelet's heartbeats above all. Changes of the agent's
// own keys pass, so that removed ones are restored.
func ofInterest() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Node)
		after, ok2 := e.ObjectNew.(*corev1.Node)
		return !ok || !ok2 || interesting(before, after)
	}})
}

func interesting(before, after *corev1.Node) bool {
	return !equality.Semantic.DeepEqual(viewOf(before), viewOf(after))
}

// view is what the agent decides by.
type view struct {
	Unschedulable       bool
	Annotations, Labels map[string]string
	Conditions          []corev1.NodeCondition
	VolumesInUse        []corev1.UniqueVolumeName
}

func viewOf(node *corev1.Node) view {
	v := view{
		Unschedulable: node.Spec.Unschedulable,
		Annotations:   ours(node.Annotations),
		Labels:        ours(node.Labels),
		VolumesInUse:  slices.Sorted(slices.Values(node.Status.VolumesInUse)), // older kubelets keep no order
	}
	for _, c := range node.Status.Conditions {
		switch c.Type {
		case v1alpha1.NodeRebootRequired, corev1.NodeDrainInProgress, corev1.NodeDrained, corev1.NodeMaintenanceInProgress:
			c.LastHeartbeatTime = metav1.Time{}
			v.Conditions = append(v.Conditions, c)
		}
	}
	return v
}

// ours are the keys of this project.
func ours(all map[string]string) map[string]string {
	ours := map[string]string{}
	for key, value := range all {
		if strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/") {
			ours[key] = value
		}
	}
	return ours
}
