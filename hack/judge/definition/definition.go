// Package definition validates a RebootPolicy against the schema and the CEL rules of its
// CustomResourceDefinition, with the code of the API server.
package definition

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// Definition is a parsed CustomResourceDefinition.
type Definition struct {
	structural *schema.Structural
	shape      validation.SchemaValidator
	rules      *cel.Validator
}

// Shipped returns the CustomResourceDefinition of config/crd.
var Shipped = sync.OnceValues(func() (*Definition, error) {
	manifest, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "crd", "bases", "reboot-operator.io_rebootpolicies.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the CustomResourceDefinition: %w", err)
	}
	return parse(manifest)
})

func parse(manifest []byte) (*Definition, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(manifest, &crd); err != nil {
		return nil, fmt.Errorf("reading the CustomResourceDefinition: %w", err)
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return nil, fmt.Errorf("converting the schema: %w", err)
	}
	var d Definition
	var err error
	if d.structural, err = schema.NewStructural(&props); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	if d.shape, _, err = validation.NewSchemaValidator(&props); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	d.rules = cel.NewValidator(d.structural, true, celconfig.PerCallLimit)
	return &d, nil
}

// Refusal returns the reason the API server would reject an update of a policy, or nil if it would
// accept it.
func (d *Definition) Refusal(ctx context.Context, before, after *v1alpha1.RebootPolicy) error {
	was, err := object(before)
	if err != nil {
		return err
	}
	current, err := object(after)
	if err != nil {
		return err
	}
	errs := validation.ValidateCustomResourceUpdate(nil, current, was, d.shape)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, current)...)
	broken, _ := d.rules.Validate(ctx, nil, d.structural, current, was, celconfig.RuntimeCELCostBudget)
	if errs = append(errs, broken...); len(errs) > 0 {
		return errs.ToAggregate()
	}
	return nil
}

// object converts a policy to the form that the API server validates.
func object(policy *v1alpha1.RebootPolicy) (map[string]any, error) {
	text, err := json.Marshal(policy)
	if err != nil {
		return nil, fmt.Errorf("encoding policy %q: %w", policy.Name, err)
	}
	var o map[string]any
	if err := utiljson.Unmarshal(text, &o); err != nil { // decodes whole numbers as int64, which CEL needs
		return nil, fmt.Errorf("decoding policy %q: %w", policy.Name, err)
	}
	return o, nil
}
