package kured

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

const program = "kured"

// installation is one kured: its DaemonSet, and the container in it that is kured.
type installation struct {
	daemonSet appsv1.DaemonSet
	container corev1.Container
	args      []string // the command line after the program, variables filled in
	scripted  bool     // kured's flags are in a shell script
}

// where names the DaemonSet, in one line whatever the manifest calls it.
func (k *installation) where() string {
	name := k.daemonSet.Name
	if k.daemonSet.Namespace != "" {
		name = k.daemonSet.Namespace + "/" + name
	}
	return oneLine(name)
}

// oneLine quotes a text of the manifest that would not be one line.
func oneLine(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// findContainer finds the container that is kured, by its command line first and by its image otherwise.
func (k *installation) findContainer() bool {
	containers := k.daemonSet.Spec.Template.Spec.Containers
	for _, looks := range []func(corev1.Container) bool{namesProgram, runsScript, hasImage} {
		if i := slices.IndexFunc(containers, looks); i >= 0 {
			k.container = containers[i]
			k.readArgs()
			return true
		}
	}
	return false
}

func commandLine(c corev1.Container) []string { return slices.Concat(c.Command, c.Args) }

// programIn is where a command line names kured, possibly behind a wrapper such as tini; -1: it does not. What follows a flag may be its
// value, such as a namespace of that name.
func programIn(args []string) int {
	for i, arg := range args {
		if path.Base(arg) == program && (i == 0 || args[i-1] == "--" || !strings.HasPrefix(args[i-1], "--")) {
			return i
		}
	}
	return -1
}

func namesProgram(c corev1.Container) bool { return programIn(commandLine(c)) >= 0 }

// runsScript reports whether a shell script in the command line starts kured.
func runsScript(c corev1.Container) bool {
	return slices.ContainsFunc(commandLine(c), startsProgram)
}

var script = regexp.MustCompile(`(^|[\s;&|/])kured(\s|$)`)

// startsProgram reports whether an argument is a script that runs kured. The name alone is not.
func startsProgram(arg string) bool { return path.Base(arg) != program && script.MatchString(arg) }

// hasImage reports whether the image is kured's, by the last part of its name. Its entry point is kured, so there are only arguments.
func hasImage(c corev1.Container) bool {
	name, _ := image(c)
	return strings.Contains(name, program)
}

// readArgs takes the arguments of the program, in which Kubernetes has filled in $(NAME).
func (k *installation) readArgs() {
	args := commandLine(k.container)
	known := k.variables()
	for i := range args {
		args[i] = expand(args[i], known.values)
	}
	if i := programIn(args); i >= 0 {
		k.args = args[i+1:]
		return
	}
	if k.scripted = slices.ContainsFunc(args, startsProgram); k.scripted {
		return
	}
	k.args = args
}

var reference = regexp.MustCompile(`\$\$|\$\([^)]*\)`)

// expand fills in $(NAME) as Kubernetes does: unknown names stay as they are, and $$ is a dollar sign.
func expand(arg string, values map[string]string) string {
	return reference.ReplaceAllStringFunc(arg, func(found string) string {
		if found == "$$" {
			return "$"
		}
		if value, known := values[found[2:len(found)-1]]; known {
			return value
		}
		return found
	})
}

// image is the last part of the name of a container's image, and its tag; empty where there is none.
func image(c corev1.Container) (name, tag string) {
	name, _, _ = strings.Cut(path.Base(c.Image), "@")
	name, tag, _ = strings.Cut(name, ":")
	return name, tag
}

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

// olderThan compares the tag of the image. A tag of two numbers is the newest of its line, and one that is no version the newest of
// all.
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
