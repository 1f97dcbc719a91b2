// Package terminal shows progress to people: in place and in color in a terminal, and as plain
// lines in a pipe.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/internal/message"
)

const (
	// frame is the interval between two frames of an animation.
	frame = 100 * time.Millisecond
	// defaultWidth and defaultHeight are used if the size of the terminal is unknown.
	defaultWidth, defaultHeight = 80, 24
	// stepWidth is the maximum width of a step's name.
	stepWidth = 52
)

const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
)

// Terminal shows output. Its methods may be called from any goroutine.
type Terminal struct {
	// Live reports whether lines can be redrawn in place.
	Live bool
	// Theme adds colors.
	Theme Theme

	out   io.Writer
	size  func() (width, height int)
	clock clock.Clock

	mu sync.Mutex
	// drawn holds the lines above the cursor that the next Draw replaces.
	drawn []string
}

// Open returns a Terminal for a file. It omits colors if the file is not a terminal, TERM is dumb
// or NO_COLOR is set.
func Open(file *os.File, getenv func(string) string) *Terminal {
	if !term.IsTerminal(int(file.Fd())) || getenv("TERM") == "dumb" {
		return Pipe(file)
	}
	return Live(file, Theme{Color: getenv("NO_COLOR") == ""}, func() (width, height int) {
		if width, height, err := term.GetSize(int(file.Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
		return defaultWidth, defaultHeight
	})
}

// Live returns a Terminal for a writer that understands escape sequences.
func Live(out io.Writer, theme Theme, size func() (width, height int)) *Terminal {
	return &Terminal{Live: true, Theme: theme, out: out, clock: clock.RealClock{}, size: size}
}

// Pipe returns a Terminal for a writer that is not a terminal.
func Pipe(out io.Writer) *Terminal {
	return &Terminal{out: out, clock: clock.RealClock{}, size: func() (width, height int) { return defaultWidth, defaultHeight }}
}

// Size returns the number of columns and lines.
func (t *Terminal) Size() (width, height int) { return t.size() }

// Print prints lines that are not redrawn.
func (t *Terminal) Print(lines ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drawn = nil
	fmt.Fprint(t.out, strings.Join(lines, "\n")+"\n")
}

// Draw replaces the previously drawn lines. It needs a live terminal.
func (t *Terminal) Draw(lines []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.draw(lines)
}

func (t *Terminal) draw(lines []string) {
	var b strings.Builder
	b.WriteString(hideCursor)
	up := 0
	for _, line := range t.drawn {
		rows, _ := t.rows(line)
		up += rows
	}
	if up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	t.drawn = t.Theme.Lines(lines) // split into single lines, or the next drawing would start in the wrong one
	for _, line := range t.drawn {
		b.WriteString("\r" + line)
		if _, full := t.rows(line); !full {
			b.WriteString(clearLine)
		}
		b.WriteString("\n")
	}
	b.WriteString(clearBelow)
	fmt.Fprint(t.out, b.String())
}

// rows returns how many rows of the terminal a line takes. full means that it ends in the last
// column, where the cursor stays until the next letter, so that clearing the rest of the row would
// erase that column.
func (t *Terminal) rows(line string) (rows int, full bool) {
	width, _ := t.size()
	takes := textWidth(painted.ReplaceAllString(line, ""))
	return max(1, (takes+width-1)/width), takes > 0 && takes%width == 0
}

// Crop cuts lines to the given height, and adds a remark about omitted lines.
func (t *Terminal) Crop(lines []string, height int) []string {
	height = max(height, 1)
	used, fit := 0, 0 // fit leaves a row for the remark
	for _, line := range lines {
		rows, _ := t.rows(line)
		if used += rows; used < height {
			fit++
		}
	}
	if used <= height {
		return lines
	}
	return append(lines[:fit:fit], "… "+message.Count(len(lines)-fit, "more line", "more lines"))
}

// Close leaves the drawn lines on the screen and shows the cursor again.
func (t *Terminal) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drawn = nil
	if t.Live {
		fmt.Fprint(t.out, showCursor)
	}
}

// Step runs one step and shows how long it takes.
func (t *Terminal) Step(name string, run func() error) error {
	began := t.clock.Now()
	done := make(chan struct{})
	var drawing sync.WaitGroup
	if t.Live {
		drawing.Go(func() { t.spin(name, began, done) })
	}
	err := run()
	close(done)
	drawing.Wait()
	mark := t.Theme.Paint(Good, "✓")
	if err != nil {
		mark = t.Theme.Paint(Bad, "✗")
	}
	t.finish(t.step(mark, name, began))
	return err
}

func (t *Terminal) finish(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Live {
		t.draw([]string{line})
	} else {
		fmt.Fprintln(t.out, line)
	}
	t.drawn = nil
}

func (t *Terminal) spin(name string, began time.Time, done <-chan struct{}) {
	spinner := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	for i := 0; ; i++ {
		t.Draw([]string{t.step(t.Theme.Paint(Busy, string(spinner[i%len(spinner)])), name, began)})
		select {
		case <-done:
			return
		case <-t.clock.After(frame):
		}
	}
}

func (t *Terminal) step(mark, name string, began time.Time) string {
	return fmt.Sprintf("  %s %s %s", mark, Fit(name, stepWidth), t.Theme.Paint(Quiet, fmt.Sprintf("%6s", Seconds(t.clock.Since(began)))))
}
