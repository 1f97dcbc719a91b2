package kured

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// fieldOrder is the order of the fields in the spec.
var fieldOrder = []string{"mode", "pause", "nodeSelector", "concurrency", "windows", "drain", "reboot", "gates"}

// write writes the policy in the usual style, with its comments. Each document begins with three
// dashes.
func (c *conversion) write(out io.Writer) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c.policy.Spec)
	if err != nil {
		return fmt.Errorf("writing the spec: %w", err)
	}
	fmt.Fprintf(out, "---\n# From DaemonSet %s.\n", c.kured.where())
	head, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "RebootPolicy", "metadata": map[string]any{"name": c.policy.Name},
	})
	if err != nil {
		return fmt.Errorf("writing the policy's name: %w", err)
	}
	fmt.Fprintf(out, "%sspec:\n", head)
	for _, name := range fieldOrder {
		value, found := fields[name]
		if !found {
			continue
		}
		delete(fields, name)
		if err := writeField(out, name, value, c.comments[name]); err != nil {
			return err
		}
	}
	if len(fields) > 0 {
		return fmt.Errorf("fields of the spec without a place in the output: %v", fields)
	}
	return nil
}

func writeField(out io.Writer, name string, value any, comments []string) error {
	for _, comment := range comments {
		fmt.Fprintf(out, "  # %s\n", comment)
	}
	field, err := yaml.Marshal(map[string]any{name: value})
	if err != nil {
		return fmt.Errorf("writing spec.%s: %w", name, err)
	}
	for line := range strings.Lines(zeros.ReplaceAllString(string(field), "$1")) {
		fmt.Fprint(out, "  ", line)
	}
	return nil
}

// zeros matches redundant zeros at the end of a duration, such as in 6h0m0s.
var zeros = regexp.MustCompile(`(?m)^([ -]*(?:settle|spacing|timeout|gracePeriod|leadTime|duration): \S*?[hm])(?:0m)?0s$`)

// line is one setting of kured and what became of it.
type line struct{ subject, how string }

// outcomes says what became of all settings of kured.
type outcomes struct {
	carried, unneeded, open []line
}

// carry reports something that the policy has, and leave something that it does not have. Flags are
// reported by conversion.note.
func (o *outcomes) carry(subject, how string) { o.carried = append(o.carried, line{subject, how}) }

func (o *outcomes) leave(subject, how string) { o.open = append(o.open, line{subject, how}) }

const (
	titleCarried  = "Carried over"
	titleUnneeded = "Not needed any more"
	titleOpen     = "Not carried over: settle these before you set spec.mode to Enforce"
)

// writeReport writes the report. Adjacent settings with the same outcome share a sentence.
func (c *conversion) writeReport(out io.Writer) {
	fmt.Fprintf(out, "DaemonSet %s -> RebootPolicy %s\n", c.kured.where(), c.policy.Name)
	for _, part := range []struct {
		title string
		lines []line
	}{{titleCarried, c.report.carried}, {titleUnneeded, c.report.unneeded}, {titleOpen, c.report.open}} {
		if len(part.lines) == 0 {
			continue
		}
		fmt.Fprintf(out, "\n%s\n", part.title)
		for i, l := range part.lines {
			fmt.Fprintf(out, "  %s\n", oneLine(l.subject))
			if i+1 == len(part.lines) || part.lines[i+1].how != l.how {
				fmt.Fprintf(out, "      %s\n", l.how)
			}
		}
	}
	fmt.Fprintln(out)
}
