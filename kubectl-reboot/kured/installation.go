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

// installation is one kured: its DaemonSet and the container that runs it.
type installation struct {
	daemonSet appsv1.DaemonSet
	container corev1.Container
	args      []string // after the program, with variables filled in
	scripted  bool     // a shell script contains the flags
}

// where returns the DaemonSet's name, always on one line.
func (k *installation) where() string {
	name := k.daemonSet.Name
	if k.daemonSet.Namespace != "" {
		name = k.daemonSet.Namespace + "/" + name
	}
	return oneLine(name)
}

// oneLine quotes a text unless it is printable on one line.
func oneLine(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// findContainer finds the container that runs kured, by its command line or else by its image.
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

// programIn returns the index of kured in a command line, which may be behind a wrapper such as
// tini, or -1. A word after a flag is ignored, because it may be the flag's value, such as a
// namespace of that name.
func programIn(args []string) int {
	for i, arg := range args {
		if path.Base(arg) == program && (i == 0 || args[i-1] == "--" || !strings.HasPrefix(args[i-1], "--")) {
			return i
		}
	}
	return -1
}

func namesProgram(c corev1.Container) bool { return programIn(commandLine(c)) >= 0 }

// runsScript reports whether the command line has a shell script that starts kured.
func runsScript(c corev1.Container) bool {
	return slices.ContainsFunc(commandLine(c), startsProgram)
}

var script = regexp.MustCompile(`(^|[\s;&|/])kured(\s|$)`)

// startsProgram reports whether an argument is a script that runs kured. The program's name alone
// is not a script.
func startsProgram(arg string) bool { return path.Base(arg) != program && script.MatchString(arg) }

// hasImage reports whether the image is kured's, by the last part of its name. Its entry point is
// kured, so the command line has only arguments.
func hasImage(c corev1.Container) bool {
	name, _ := image(c)
	return strings.Contains(name, program)
}

// readArgs reads the arguments of the program after Kubernetes' expansion of $(NAME).
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

// expand expands $(NAME) like Kubernetes: unknown names stay, and $$ becomes a dollar sign.
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

// image returns the last part of the image's name, and its tag if it has one.
func image(c corev1.Container) (name, tag string) {
	name, _, _ = strings.Cut(path.Base(c.Image), "@")
	name, tag, _ = strings.Cut(name, ":")
	return name, tag
}

// variables holds the container's environment: the values in the manifest, and the sources of all
// others.
type variables struct {
	values map[string]string
	hidden map[string]string
	// sources lists ConfigMaps and Secrets that may define any variable and are not in the input.
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

// valueOf returns the value of a variable, or its source if the manifest does not have the value.
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

// olderThan compares the tag of the image with a version. A tag of two numbers counts as the newest
// patch release, and a tag that is not a version as the newest release.
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
