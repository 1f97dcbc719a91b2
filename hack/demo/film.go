package main

import (
	"fmt"
	"html"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// Columns and lines of a picture, and of one of its letters in pixels.
const (
	filmWidth, filmHeight     = 110, 24
	letterWidth, letterHeight = 8.4, 19
)

// shown is how long a frame is.
const shown = time.Second

// film is what a terminal shows, for a picture that moves.
type film struct {
	frames [][]string
}

// add adds what the terminal shows after so long, where a frame is due.
func (f *film) add(after time.Duration, lines []string) {
	if int(after/shown) >= len(f.frames) {
		f.frames = append(f.frames, lines)
	}
}

// painted is a text with a style, as terminal.Theme paints it.
var painted = regexp.MustCompile("\x1b\\[([0-9;]+)m(.*?)\x1b\\[0m")

// colors of styles, on a dark ground.
var colors = map[terminal.Style]string{
	terminal.Strong: "#fff", terminal.Quiet: "#8b949e", terminal.Good: "#3fb950", terminal.Wait: "#d29922",
	terminal.Busy: "#39c5cf", terminal.Away: "#bc8cff", terminal.Bad: "#ff7b72",
}

// svg is the picture. Whoever prefers no motion sees the last frame alone.
func (f *film) svg() string {
	lines := 0
	for _, frame := range f.frames {
		lines = max(lines, len(frame))
	}
	width, height := filmWidth*letterWidth+2*letterHeight, float64(lines+1)*letterHeight
	whole := time.Duration(len(f.frames)) * shown
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img" aria-label="Terminal: nodes reboot one after the other">
<style>
text { font: 14px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #e6edf3; white-space: pre }
g { visibility: hidden; animation: frame %gs step-end infinite }
g:last-of-type { animation-name: last }
@keyframes frame { 0%% { visibility: visible } %.3f%% { visibility: hidden } }
@keyframes last { 0%% { visibility: visible } }
@media (prefers-reduced-motion: reduce) { g { animation: none } g:last-of-type { visibility: visible } }
</style>
<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>
`, width, height, whole.Seconds(), 100/float64(len(f.frames)))
	for i, frame := range f.frames {
		fmt.Fprintf(&b, "<g style=\"animation-delay:%gs\">\n", (time.Duration(i) * shown).Seconds())
		for n, line := range frame {
			if strings.TrimSpace(line) != "" {
				fmt.Fprintf(&b, "<text y=\"%d\">%s</text>\n", (n+1)*letterHeight, spans(line))
			}
		}
		b.WriteString("</g>\n")
	}
	return b.String() + "</svg>\n"
}

// spans places each part of a line at its column, whatever font there is.
func spans(line string) string {
	var b strings.Builder
	column := 0
	add := func(text, color string) {
		blanks := len(text) - len(strings.TrimLeft(text, " "))
		if part := strings.TrimRight(text[blanks:], " "); part != "" {
			fmt.Fprintf(&b, `<tspan x="%.1f"%s>%s</tspan>`, letterHeight+float64(column+blanks)*letterWidth, color, html.EscapeString(part))
		}
		column += utf8.RuneCountInString(text)
	}
	for line != "" {
		at := painted.FindStringSubmatchIndex(line)
		if at == nil {
			at = []int{len(line), len(line), 0, 0, 0, 0}
		}
		add(line[:at[0]], "")
		if style := terminal.Style(line[at[2]:at[3]]); style != "" {
			add(line[at[4]:at[5]], fmt.Sprintf(` fill="%s"`, colors[style]))
		}
		line = line[at[1]:]
	}
	return b.String()
}

// write writes the picture, with the last frame shown a little longer.
func (f *film) write(path string) error {
	f.frames = append(f.frames, slices.Repeat(f.frames[max(0, len(f.frames)-1):], 4)...)
	if err := os.WriteFile(path, []byte(f.svg()), 0o644); err != nil {
		return fmt.Errorf("writing the picture: %w", err)
	}
	return nil
}
