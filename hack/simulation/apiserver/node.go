package apiserver

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PatchNode applies a strategic merge patch to a Node, or to its status, which takes metadata too. A resourceVersion in it
// makes it a compare-and-swap.
func (s *Store) PatchNode(name string, status bool, patch []byte, by string) (*corev1.Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := Key{Nodes, name}
	before, ok := s.objects[key].(*corev1.Node)
	if !ok {
		return nil, notFound(key)
	}
	after, version, err := merge(before, patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := checkVersion(key, before, version); err != nil {
		return nil, err
	}
	after.UID, after.CreationTimestamp, after.ManagedFields = before.UID, before.CreationTimestamp, before.ManagedFields
	if status {
		after.Spec = before.Spec
	} else {
		after.Status = before.Status
	}
	written, _ := copied(s.replace(key, before, after, by)).(*corev1.Node)
	return written, nil
}

// merge makes the Node that a patch asks for, and the version that it insists on.
func merge(before *corev1.Node, patch []byte) (after *corev1.Node, version string, err error) {
	var asked map[string]any
	if err := json.Unmarshal(patch, &asked); err != nil {
		return nil, "", fmt.Errorf("reading the patch: %w", err)
	}
	current, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return nil, "", fmt.Errorf("encoding the Node: %w", err)
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(&corev1.Node{})
	if err != nil {
		return nil, "", fmt.Errorf("reading how a Node is patched: %w", err)
	}
	merged, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(current, asked, schema)
	if err != nil {
		return nil, "", fmt.Errorf("merging the patch: %w", err)
	}
	if metadata, ok := merged["metadata"].(map[string]any); ok {
		version, _ = metadata["resourceVersion"].(string)
	}
	if version == before.ResourceVersion {
		version = ""
	}
	after = &corev1.Node{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(merged, after); err != nil {
		return nil, "", fmt.Errorf("reading the patched Node: %w", err)
	}
	after.ResourceVersion = before.ResourceVersion
	return after, version, nil
}

// own notes in managedFields who has set a cordon, as the API server does: whoever changed the field last, and nobody when
// it is gone.
func own(before, after client.Object, by string) {
	was, _ := before.(*corev1.Node)
	is, ok := after.(*corev1.Node)
	if !ok || was == nil || was.Spec.Unschedulable == is.Spec.Unschedulable {
		return
	}
	is.ManagedFields = nil
	if is.Spec.Unschedulable {
		is.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: by, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`),
		}}
	}
}
