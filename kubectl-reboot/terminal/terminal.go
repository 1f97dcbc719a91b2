// Package terminal shows progress to people: in place and in colour in a terminal, as plain lines in a pipe.
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
	// frame is how often what moves is drawn again.
	frame = 100 * time.Millisecond
	// defaultWidth and defaultHeight are those of a terminal of unknown size.
	defaultWidth, defaultHeight = 80, 24
	// stepWidth is how wide the name of a step may be.
	stepWidth = 52
)

const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
)

// Terminal is where progress is shown. Its methods may be called from any goroutine.
type Terminal struct {
	// Live reports whether lines can be drawn again in place.
	Live bool
	// Theme paints.
	Theme Theme

	out   io.Writer
	size  func() (width, height int)
	clock clock.Clock

	mu sync.Mutex
	// drawn are the lines above the cursor that the next drawing replaces.
	drawn []string
}

// Open shows on a file. Colours are left out where the file is no terminal, TERM is dumb or NO_COLOR is set.
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

// Live shows on what understands escape sequences.
func Live(out io.Writer, theme Theme, size func() (width, height int)) *Terminal {
	return &Terminal{Live: true, Theme: theme, out: out, clock: clock.RealClock{}, size: size}
}

// Pipe shows on what is no terminal.
func Pipe(out io.Writer) *Terminal {
	return &Terminal{out: out, clock: clock.RealClock{}, size: func() (width, height int) { return defaultWidth, defaultHeight }}
}

// Size is how many columns and lines there are.
func (t *Terminal) Size() (width, height int) { return t.size() }

// Print prints lines for good.
func (t *Terminal) Print(lines ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drawn = nil
	fmt.Fprint(t.out, strings.Join(lines, "\n")+"\n")
}

// Draw draws lines instead of those drawn before. Only on a live terminal.
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
	t.drawn = t.Theme.Lines(lines) // each is one line, or the next drawing would begin in the wrong one
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

// rows is how many rows of the terminal a line takes. Full: it ends in the last column, where the cursor stays until the next letter.
// To clear the rest of the row would erase that column.
func (t *Terminal) rows(line string) (rows int, full bool) {
	width, _ := t.size()
	takes := textWidth(painted.ReplaceAllString(line, ""))
	return max(1, (takes+width-1)/width), takes > 0 && takes%width == 0
}

// Crop leaves out the last of more lines than there is room for, and reports it.
func (t *Terminal) Crop(lines []string, height int) []string {
	height = max(height, 1)
	used, fit := 0, 0 // fit leave a row for the report
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

// Close leaves what is drawn where it is and gives the cursor back.
func (t *Terminal) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drawn = nil
	if t.Live {
		fmt.Fprint(t.out, showCursor)
	}
}

// Step runs one step of a start and reports how long it takes.
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
