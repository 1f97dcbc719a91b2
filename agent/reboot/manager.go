package reboot

import (
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// ManagerOptions are those of an agent's manager: it watches one Node and asks the API server for nothing else.
func ManagerOptions(node string) (ctrl.Options, error) {
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
