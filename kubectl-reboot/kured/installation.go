package kured

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
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

func isProgram(arg string) bool { return path.Base(arg) == program }

// namesProgram reports whether the command line names kured, possibly behind a wrapper such as tini.
func namesProgram(c corev1.Container) bool {
	return slices.ContainsFunc(commandLine(c), isProgram)
}

// runsScript reports whether a shell script in the command line starts kured.
func runsScript(c corev1.Container) bool {
	return slices.ContainsFunc(commandLine(c), startsProgram)
}

var startsProgram = regexp.MustCompile(`(^|[\s;&|/])kured(\s|$)`).MatchString

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
	if i := slices.IndexFunc(args, isProgram); i >= 0 {
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
