package terminal

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func shown(live bool) (*Terminal, *strings.Builder) {
	var out strings.Builder
	return &Terminal{
		Live: live, out: &out, clock: clocktesting.NewFakeClock(time.Unix(0, 0)),
		size: func() (int, int) { return 80, 24 },
	}, &out
}

func TestStep_IsOneLineInAPipe(t *testing.T) {
	screen, out := shown(false)
	if err := screen.Step("build", func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	bad := errors.New("bad")
	if err := screen.Step("break", func() error { return bad }); !errors.Is(err, bad) {
		t.Errorf("error %v", err)
	}
	want := "  ✓ " + Fit("build", stepWidth) + "  0.0 s\n  ✗ " + Fit("break", stepWidth) + "  0.0 s\n"
	if out.String() != want {
		t.Errorf("shown %q, want %q", out, want)
	}
}

func TestDraw_ReplacesOnlyItsOwnLines(t *testing.T) {
	screen, out := shown(true)
	screen.Print("stays")
	screen.Draw([]string{"a", "b"})
	screen.Draw([]string{"c"})
	screen.Close()
	want := "stays\n" +
		"\x1b[?25l\ra\x1b[K\n\rb\x1b[K\n\x1b[J" +
		"\x1b[?25l\x1b[2A\rc\x1b[K\n\x1b[J" +
		"\x1b[?25h"
	if out.String() != want {
		t.Errorf("shown %q, want %q", out, want)
	}
}

// A line wider than the terminal takes several rows, so the cursor has to go up further to redraw
// it.
func TestDraw_GoesUpAsManyRowsAsTheLinesTook(t *testing.T) {
	for name, tc := range map[string]struct {
		line string
		rows string
	}{
		"one row":                        {strings.Repeat("x", 79), "2"},
		"one row, full":                  {strings.Repeat("x", 80), "2"},
		"two rows":                       {strings.Repeat("x", 81), "3"},
		"colour takes no room":           {Theme{Color: true}.Paint(Bad, strings.Repeat("x", 80)), "2"},
		"letters of two columns":         {strings.Repeat("磁", 41), "3"},
		"an accent on the letter before": {strings.Repeat("e\u0301", 80), "2"},
	} {
		t.Run(name, func(t *testing.T) {
			screen, out := shown(true)
			screen.Theme.Color = true
			screen.Draw([]string{tc.line, "b"})
			out.Reset()
			screen.Draw([]string{"c"})
			if !strings.HasPrefix(out.String(), "\x1b[?25l\x1b["+tc.rows+"A\r") {
				t.Errorf("the second drawing is %q, want %s rows up", out, tc.rows)
			}
		})
	}
}

// A terminal stays in the last column until the next letter, so clearing the rest of the line would
// erase that column.
func TestDraw_ErasesNothingOfALineThatFillsItsRow(t *testing.T) {
	screen, out := shown(true)
	full := strings.Repeat("x", 80)
	screen.Draw([]string{full, ""})
	if want := "\x1b[?25l\r" + full + "\n\r\x1b[K\n\x1b[J"; out.String() != want {
		t.Errorf("shown %q, want %q", out, want)
	}
}

func TestDraw_EachLineIsOneAndHasTheColoursOfTheThemeAlone(t *testing.T) {
	screen, out := shown(true)
	screen.Theme.Color = true
	screen.Draw([]string{screen.Theme.Paint(Bad, "a\nb"), "c\x1b[2J"})
	want := "\x1b[?25l\r\x1b[1;31ma b\x1b[0m\x1b[K\n\rc\uFFFD[2J\x1b[K\n\x1b[J"
	if out.String() != want {
		t.Errorf("shown %q, want %q", out, want)
	}
}

func TestOpen_AFileIsNotATerminal(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	screen := Open(file, func(string) string { return "" })
	if screen.Live || screen.Theme.Color {
		t.Error("a file is taken for a terminal")
	}
	if width, height := screen.Size(); width != defaultWidth || height != defaultHeight {
		t.Errorf("size %d × %d", width, height)
	}
	screen.Print("line")
	screen.Close()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(file); err != nil || string(text) != "line\n" {
		t.Errorf("file has %q, %v", text, err)
	}
}
