package main

import (
	"encoding/xml"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// The picture is well-formed, has a frame for each second, and shows what the terminal shows.
func TestFilm(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Time{})
	f := &film{clock: clock}
	screen := f.terminal()
	for range 25 {
		screen.Draw([]string{"", "  node-1  " + screen.Theme.Paint(terminal.Good, "back") + "  <script> & more"})
		clock.SetTime(clock.Now().Add(100 * time.Millisecond))
	}
	screen.Close()
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
		t.Fatalf("%d frames of 2.5 seconds, want 3", got)
	}
	const want = `  node-1  <tspan fill="#3fb950">back</tspan>  &lt;script&gt; &amp; more`
	if lines := picture.Frames[2].Lines; len(lines) != 1 || lines[0].Y != 2*letterHeight || lines[0].Text != want {
		t.Errorf("the last frame has %v, want %s", lines, want)
	}
	if strings.Contains(f.svg(), "\x1b") {
		t.Error("the picture has an escape sequence")
	}
}
