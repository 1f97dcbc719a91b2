package kured

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

const environmentPrefix = "KURED_"

// variables are the container's environment: values that the manifest has, and for the others where they come from.
type variables struct {
	values map[string]string
	hidden map[string]string
	// sources are ConfigMaps and Secrets that are not in the input and may hold any variable.
	sources []string
}

func (k *installation) variables() variables {
	v := variables{values: map[string]string{}, hidden: map[string]string{}}
	for _, from := range k.container.EnvFrom {
		switch {
		case from.ConfigMapRef != nil:
			v.sources = append(v.sources, "ConfigMap "+from.ConfigMapRef.Name)
		case from.SecretRef != nil:
			v.sources = append(v.sources, "Secret "+from.SecretRef.Name)
		}
	}
	for _, env := range k.container.Env {
		delete(v.values, env.Name)
		delete(v.hidden, env.Name)
		value, hidden := valueOf(env)
		if hidden != "" {
			v.hidden[env.Name] = hidden
			continue
		}
		v.values[env.Name] = expand(value, v.values)
	}
	return v
}

// valueOf is the value of a variable, or where it comes from if the manifest does not have it.
func valueOf(env corev1.EnvVar) (value, hidden string) {
	from := env.ValueFrom
	if from == nil {
		return env.Value, ""
	}
	switch {
	case from.ConfigMapKeyRef != nil:
		return "", fmt.Sprintf("key %s of ConfigMap %s", from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Name)
	case from.SecretKeyRef != nil:
		return "", fmt.Sprintf("key %s of Secret %s", from.SecretKeyRef.Key, from.SecretKeyRef.Name)
	case from.FieldRef != nil:
		return "", "field " + from.FieldRef.FieldPath + " of the pod"
	}
	return "", "a source outside the manifest"
}

// takeEnvironment sets flags from KURED_ variables. Up to 1.16.1 a flag on the command line wins over its variable; since
// 1.16.2 the variable wins, and adds to a list.
func (f *kuredFlags) takeEnvironment(k *installation) error {
	v := k.variables()
	variableWins := !k.olderThan("1.16.2")
	names := map[string]bool{}
	var err error
	f.set.VisitAll(func(known *pflag.Flag) {
		variable := environmentPrefix + strings.ToUpper(strings.ReplaceAll(known.Name, "-", "_"))
		names[variable] = true
		if err == nil && (variableWins || f.find(known.Name) == nil) {
			err = f.takeVariable(known, variable, v, variableWins)
		}
	})
	for _, name := range slices.Sorted(maps.Keys(v.values)) {
		if strings.HasPrefix(name, environmentPrefix) && !names[name] {
			f.stray = append(f.stray, line{what: name, how: "no variable that this program knows of kured: look up what it does in yours"})
		}
	}
	for _, source := range v.sources {
		f.stray = append(f.stray, line{
			what: "envFrom " + source,
			how:  "it may set KURED_ variables, which the manifest does not have: look into it yourself, and put what is set into env",
		})
	}
	return err
}

func (f *kuredFlags) takeVariable(known *pflag.Flag, variable string, v variables, wins bool) error {
	if hidden, found := v.hidden[variable]; found {
		f.note(given{name: known.Name, texts: []string{variable}, hidden: hidden})
		return nil
	}
	value, found := v.values[variable]
	if !found {
		return nil
	}
	if known.Name == "blocking-pod-selector" && wins {
		f.stray = append(f.stray, line{what: variable, how: "kured has ignored it since 1.16.2, so there is nothing to carry over; the policy's field is gates.blockingPods"})
		return nil
	}
	return f.assign(known, variable, value)
}

// olderThan compares the tag of the image; a tag of two numbers is the newest of its line, and one that is no version the newest of all.
func (k *installation) olderThan(want string) bool {
	_, tag := image(k.container)
	have, err := version.ParseGeneric(tag)
	if err != nil {
		return false
	}
	if len(have.Components()) == 2 {
		have = have.WithPatch(math.MaxUint32)
	}
	return have.LessThan(version.MustParseGeneric(want))
}
