package apiserver

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// PutPolicyStatus replaces the status of a policy, in a compare-and-swap where it names a resourceVersion. The rest of what
// is put does not matter.
func (s *Store) PutPolicyStatus(put *v1alpha1.RebootPolicy, by string) (*v1alpha1.RebootPolicy, error) {
	return s.changePolicy(put.Name, put.ResourceVersion, by, func(after *v1alpha1.RebootPolicy) error {
		after.Status = v1alpha1.RebootPolicyStatus{}
		return through(put.Status, &after.Status)
	})
}

// PatchPolicy applies a JSON merge patch to the metadata of a policy: annotations and finalizers.
func (s *Store) PatchPolicy(name string, patch []byte, by string) (*v1alpha1.RebootPolicy, error) {
	var asked struct {
		Metadata struct {
			ResourceVersion string             `json:"resourceVersion"`
			Annotations     map[string]*string `json:"annotations"`
			Finalizers      *[]string          `json:"finalizers"`
		} `json:"metadata"`
	}
	var shape struct {
		Metadata map[string]any `json:"metadata"`
	}
	if err := json.Unmarshal(patch, &asked); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := json.Unmarshal(patch, &shape); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return s.changePolicy(name, asked.Metadata.ResourceVersion, by, func(after *v1alpha1.RebootPolicy) error {
		annotations, touched := shape.Metadata["annotations"]
		if touched && annotations == nil {
			after.Annotations = nil
		}
		for key, value := range asked.Metadata.Annotations {
			if delete(after.Annotations, key); value != nil {
				metav1.SetMetaDataAnnotation(&after.ObjectMeta, key, *value)
			}
		}
		if finalizers, touched := shape.Metadata["finalizers"]; touched {
			after.Finalizers = nil
			if finalizers != nil {
				after.Finalizers = *asked.Metadata.Finalizers
			}
		}
		return nil
	})
}

// DeletePolicy marks a policy for deletion; it goes with its last finalizer.
func (s *Store) DeletePolicy(name string, at metav1.Time, by string) error {
	_, err := s.changePolicy(name, "", by, func(after *v1alpha1.RebootPolicy) error {
		if after.DeletionTimestamp == nil {
			after.DeletionTimestamp = &at
		}
		return nil
	})
	return err
}

func (s *Store) changePolicy(name, version, by string, change func(*v1alpha1.RebootPolicy) error) (*v1alpha1.RebootPolicy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := Key{Policies, name}
	before, ok := s.objects[key].(*v1alpha1.RebootPolicy)
	if !ok {
		return nil, notFound(key)
	}
	if err := checkVersion(key, before, version); err != nil {
		return nil, err
	}
	after := before.DeepCopy()
	if err := change(after); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if !equality.Semantic.DeepEqual(before.Status, after.Status) { // nothing else here changes what the definition looks at
		if err := s.definition.Refusal(context.Background(), before, after); err != nil {
			return nil, apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("RebootPolicy").GroupKind(), name, field.ErrorList{
				field.Invalid(field.NewPath("status"), name, fmt.Sprintf("the CustomResourceDefinition says: %v", err)),
			})
		}
	}
	written, _ := copied(s.replace(key, before, after, by)).(*v1alpha1.RebootPolicy)
	return written, nil
}

// through is what becomes of a value on its way through JSON: times lose their fractions.
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

func bumpGeneration(before client.Object, after *v1alpha1.RebootPolicy) {
	if was, ok := before.(*v1alpha1.RebootPolicy); ok && !equality.Semantic.DeepEqual(was.Spec, after.Spec) {
		after.Generation++
	}
}
