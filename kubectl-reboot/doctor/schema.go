package doctor

import (
	"reflect"
	"strings"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// outdated finds a CustomResourceDefinition without some of the fields that this version knows. The
// API server drops them from every write.
func outdated(c Cluster, f *findings) {
	if c.Schema == nil {
		return
	}
	if dropped := absent(reflect.TypeFor[v1alpha1.RebootPolicy](), c.Schema, ""); len(dropped) > 0 {
		f.add(Problem, "the CustomResourceDefinition of RebootPolicy is older than this plugin: the API server drops "+message.Some(dropped)+
			" from policies; helm upgrade does not update it", "kubectl apply --server-side --force-conflicts -k config/crd")
	}
}

// absent returns the paths of the fields of a type that a schema does not have. A schema without
// properties is that of a scalar.
func absent(t reflect.Type, schema map[string]any, path string) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if t.Kind() == reflect.Slice {
			schema, _ = schema["items"].(map[string]any)
		}
		t = t.Elem()
	}
	properties, described := schema["properties"].(map[string]any)
	if !described || t.Kind() != reflect.Struct {
		return nil
	}
	var paths []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" { // embedded
			paths = append(paths, absent(field.Type, schema, path)...)
			continue
		}
		property, found := properties[name].(map[string]any)
		if !found {
			paths = append(paths, path+name)
			continue
		}
		paths = append(paths, absent(field.Type, property, path+name+".")...)
	}
	return paths
}
