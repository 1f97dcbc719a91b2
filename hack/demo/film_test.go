package main

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// The picture must be well-formed, and show what the terminal shows.
func TestFilm(t *testing.T) {
	theme := terminal.Theme{Color: true}
	f := film{"first\n", "second\n", "\n  node-1  " + theme.Paint(terminal.Good, "back") + "  <script> & more\n"}
	var picture struct {
		Frames []struct {
			Lines []struct {
				Y    int    `xml:"y,attr"`
				Text string `xml:",innerxml"`
			} `xml:"text"`
		} `xml:"g"`
	}
	if err := xml.Unmarshal([]byte(f.svg()), &picture); err != nil {
		t.Fatal(err)
	}
	if got := len(picture.Frames); got != 3 {
		t.Fatalf("%d frames, want 3", got)
	}
	const want = `  node-1  <tspan fill="#3fb950">back</tspan>  &lt;script&gt; &amp; more`
	if lines := picture.Frames[2].Lines; len(lines) != 1 || lines[0].Y != 2*letterHeight || lines[0].Text != want {
		t.Errorf("the last frame has %v, want %s", lines, want)
	}
	if strings.Contains(f.svg(), "\x1b") {
		t.Error("the picture has an escape sequence")
	}
}
