// Package v1alpha1 is the public contract of reboot-operator. It has the RebootPolicy kind, and what the manager and the agents
// keep on each Node: conditions, annotations and labels. It has every reason and event that they report.
//
// The package imports nothing of the project; everything else imports it.
//
// +kubebuilder:object:generate=true
// +groupName=reboot-operator.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of RebootPolicy.
var GroupVersion = schema.GroupVersion{Group: "reboot-operator.io", Version: "v1alpha1"}

var schemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &RebootPolicy{}, &RebootPolicyList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
})

// AddToScheme registers RebootPolicy in a scheme.
var AddToScheme = schemeBuilder.AddToScheme
