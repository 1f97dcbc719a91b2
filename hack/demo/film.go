package main

import (
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

const (
	// filmWidth is the number of columns in a picture.
	filmWidth = 110
	// letterWidth and letterHeight are the size of a letter in pixels.
	letterWidth, letterHeight = 8.4, 19
	// shown is the duration of a frame, and ending that of the last one.
	shown, ending = time.Second, 5 * time.Second
)

// film holds the output of `kubectl reboot status`, a frame for each second, for an animated
// picture.
type film []string

// paint maps styles to colors on a dark background.
var paint = strings.NewReplacer(
	"\x1b[0m", "</tspan>",
	"\x1b["+string(terminal.Strong)+"m", `<tspan fill="#fff">`,
	"\x1b["+string(terminal.Quiet)+"m", `<tspan fill="#8b949e">`,
	"\x1b["+string(terminal.Good)+"m", `<tspan fill="#3fb950">`,
	"\x1b["+string(terminal.Wait)+"m", `<tspan fill="#d29922">`,
	"\x1b["+string(terminal.Busy)+"m", `<tspan fill="#39c5cf">`,
	"\x1b["+string(terminal.Away)+"m", `<tspan fill="#bc8cff">`,
	"\x1b["+string(terminal.Bad)+"m", `<tspan fill="#ff7b72">`,
)

// svg returns the animated picture. Viewers who prefer reduced motion only see the last frame.
func (f film) svg() string {
	lines := 0
	for _, frame := range f {
		lines = max(lines, strings.Count(frame, "\n"))
	}
	whole := time.Duration(len(f)-1)*shown + ending
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" role="img" aria-label="Terminal: nodes reboot one after the other">
<style>
text { font: 14px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #e6edf3; white-space: pre }
g { visibility: hidden; animation: frame %gs step-end infinite }
g:last-of-type { animation-name: last }
@keyframes frame { 0%% { visibility: visible } %.3f%% { visibility: hidden } }
@keyframes last { 0%% { visibility: visible } %.3f%% { visibility: hidden } }
@media (prefers-reduced-motion: reduce) { g { animation: none } g:last-of-type { visibility: visible } }
</style>
<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>
`, filmWidth*letterWidth+2*letterHeight, (lines+1)*letterHeight, whole.Seconds(), 100*shown.Seconds()/whole.Seconds(), 100*ending.Seconds()/whole.Seconds())
	for i, frame := range f {
		fmt.Fprintf(&b, "<g style=\"animation-delay:%gs\">\n", (time.Duration(i) * shown).Seconds())
		n := 0
		for line := range strings.Lines(frame) {
			n++
			if line = strings.TrimRight(line, " \n"); line != "" {
				fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">%s</text>\n", letterHeight, n*letterHeight, paint.Replace(html.EscapeString(line)))
			}
		}
		b.WriteString("</g>\n")
	}
	return b.String() + "</svg>\n"
}
