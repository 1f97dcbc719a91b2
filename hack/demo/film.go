package main

import (
	"fmt"
	"html"
	"os"
	"regexp"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// Columns and lines of a picture, and of one of its letters in pixels.
const (
	filmWidth, filmHeight     = 110, 24
	letterWidth, letterHeight = 8.4, 19
)

const (
	// shown is how long a frame is, and ending how long the last one.
	shown, ending = time.Second, 5 * time.Second
)

// film is what a terminal shows, a frame for each second since the first drawing, for a picture that moves.
type film struct {
	clock  clock.PassiveClock
	began  time.Time
	frames []string
}

// terminal is the terminal that is filmed.
func (f *film) terminal() *terminal.Terminal {
	return terminal.Live(f, terminal.Theme{Color: true}, func() (width, height int) { return filmWidth, filmHeight })
}

// moves are the escape sequences of a terminal that draws: all but those of colours.
var moves = regexp.MustCompile("\r|\x1b\\[[?0-9]*[A-Zhl]")

// Write takes a drawing in, which has all lines.
func (f *film) Write(drawing []byte) (int, error) {
	lines := moves.ReplaceAllString(string(drawing), "")
	if lines == "" {
		return len(drawing), nil
	}
	if f.frames == nil {
		f.began, f.frames = f.clock.Now(), []string{lines}
	}
	for i := int(f.clock.Since(f.began) / shown); len(f.frames) <= i; {
		f.frames = append(f.frames, f.frames[len(f.frames)-1])
	}
	f.frames[len(f.frames)-1] = lines
	return len(drawing), nil
}

// paint gives styles their colours, on a dark ground.
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

// svg is the picture. Whoever prefers no motion sees the last frame alone.
func (f *film) svg() string {
	lines := 0
	for _, frame := range f.frames {
		lines = max(lines, strings.Count(frame, "\n"))
	}
	whole := time.Duration(len(f.frames)-1)*shown + ending
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
	for i, frame := range f.frames {
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

// write writes the picture.
func (f *film) write(path string) error {
	if err := os.WriteFile(path, []byte(f.svg()), 0o644); err != nil {
		return fmt.Errorf("writing the picture: %w", err)
	}
	return nil
}
