package kured

import (
	"fmt"
	"io"
)

// line is one thing of kured's and what became of it.
type line struct{ what, how string }

// outcomes state what became of everything that kured was configured with.
type outcomes struct {
	carried, unneeded, open []line
}

const (
	titleCarried  = "Carried over"
	titleUnneeded = "Not needed any more"
	titleOpen     = "Not carried over: settle these before you set spec.mode to Enforce"
)

// writeReport writes the report; neighbours that became of the same thing share its sentence.
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
			fmt.Fprintf(out, "  %s\n", l.what)
			if i+1 == len(part.lines) || part.lines[i+1].how != l.how {
				fmt.Fprintf(out, "      %s\n", l.how)
			}
		}
	}
	fmt.Fprintln(out)
}
