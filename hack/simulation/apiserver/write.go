package apiserver

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func merge(object client.Object, kind types.PatchType, status bool, patch []byte) error {
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encoding what is patched: %w", err)
	}
	before := copied(object)
	switch after := object.(type) {
	case *corev1.Node:
		if kind != types.StrategicMergePatchType {
			return fmt.Errorf("a Node is patched by %s", kind)
		}
		text, err = strategicpatch.StrategicMergePatch(text, patch, corev1.Node{})
		*after = corev1.Node{}
	case *v1alpha1.RebootPolicy:
		if kind != types.MergePatchType || status {
			return fmt.Errorf("a policy is patched by %s, its status %t", kind, status)
		}
		text, err = jsonpatch.MergePatch(text, patch)
		*after = v1alpha1.RebootPolicy{}
	}
	if err != nil {
		return fmt.Errorf("merging the patch: %w", err)
	}
	if err := json.Unmarshal(text, object); err != nil {
		return fmt.Errorf("reading what was patched: %w", err)
	}
	object.SetUID(before.GetUID())
	object.SetCreationTimestamp(before.GetCreationTimestamp())
	object.SetManagedFields(before.GetManagedFields())
	switch after := object.(type) {
	case *corev1.Node:
		if was, _ := before.(*corev1.Node); status {
			after.Spec = was.Spec
		} else {
			after.Status = was.Status
		}
	case *v1alpha1.RebootPolicy:
		after.Status = before.(*v1alpha1.RebootPolicy).Status
	}
	return nil
}

// Change modifies an object on behalf of somebody without a client, such as a kubelet or an
// administrator with kubectl. It returns false if the object is unchanged or missing, or if
// validation rejects it.
func Change[T client.Object](s *Store, name, by string, change func(T)) bool {
	var of T
	version := ""
	written, err := s.write(Key{KindOf(of), name}, by, func(object client.Object) error {
		version = object.GetResourceVersion()
		changed, _ := object.(T)
		change(changed)
		return nil
	})
	return err == nil && written.GetResourceVersion() != version
}

// Delete marks an object for deletion. It is removed with its last finalizer, or at once if it has
// none.
func (s *Store) Delete(key Key, by string) error {
	_, err := s.write(key, by, func(object client.Object) error {
		if object.GetDeletionTimestamp() == nil {
			object.SetDeletionTimestamp(new(metav1.Now().Rfc3339Copy()))
		}
		return nil
	})
	return err
}

// write applies a change to an object and returns a copy of what was stored. A resourceVersion that
// the change leaves in the object must match, unless it is empty. A changed cordon then belongs to
// the writer.
func (s *Store) write(key Key, by string, change func(client.Object) error) (client.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, ok := s.objects[key]
	if !ok {
		return nil, apierrors.NewNotFound(resource(key.Kind), key.Name)
	}
	after := copied(before)
	if err := change(after); err != nil {
		return nil, err
	}
	version, asked := before.GetResourceVersion(), after.GetResourceVersion()
	if asked != "" && asked != version {
		return nil, apierrors.NewConflict(resource(key.Kind), key.Name, fmt.Errorf("it is at %s by now, not %s", version, asked))
	}
	after.SetResourceVersion(version)
	if s.mutate != nil {
		s.mutate(by, before, after)
	}
	switch after := after.(type) {
	case *corev1.Node:
		was, _ := before.(*corev1.Node)
		if size := SizeOf(after.Annotations); size > MostAnnotations {
			return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), after.Name, field.ErrorList{
				field.TooLong(field.NewPath("metadata", "annotations"), "", MostAnnotations),
			})
		}
		own(was, after, by)
	case *v1alpha1.RebootPolicy:
		was, _ := before.(*v1alpha1.RebootPolicy)
		if err := s.admit(was, after); err != nil {
			return nil, err
		}
	}
	switch {
	case equality.Semantic.DeepEqual(before, after):
		return copied(before), nil
	case after.GetDeletionTimestamp() != nil && len(after.GetFinalizers()) == 0:
		s.remove(key, before, by)
	default:
		s.put(key, before, after, by)
	}
	return copied(after), nil
}

// MostAnnotations is the maximum size of all annotations of an object in bytes.
const MostAnnotations = 256 << 10

// SizeOf returns the size of annotations in bytes.
func SizeOf(annotations map[string]string) (size int) {
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	return size
}

// admit validates a policy and updates its generation.
func (s *Store) admit(before, after *v1alpha1.RebootPolicy) error {
	edited := !equality.Semantic.DeepEqual(before.Spec, after.Spec)
	if !edited && equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil // the definition validates nothing else
	}
	if edited {
		after.Generation++
	}
	if s.definition == nil {
		return nil
	}
	if err := s.definition.Refusal(context.Background(), before, after); err != nil {
		return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("RebootPolicy").GroupKind(), after.Name, field.ErrorList{
			field.Invalid(field.NewPath("object"), after.Name, fmt.Sprintf("refused by the CustomResourceDefinition: %v", err)),
		})
	}
	return nil
}

// own records in managedFields who set the cordon, as the API server does: the last writer of the
// field, and nobody after it is removed.
func own(before, after *corev1.Node, by string) {
	if before.Spec.Unschedulable == after.Spec.Unschedulable {
		return
	}
	after.ManagedFields = nil
	if after.Spec.Unschedulable {
		after.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: by, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`),
		}}
	}
}

// through copies a value by encoding it as JSON, which drops the fractions of times.
func through(from, to any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	return nil
}
