package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// The picture is well-formed, has a frame for each second, and shows what the terminal shows, where it shows it.
func TestFilm(t *testing.T) {
	theme := terminal.Theme{Color: true}
	var f film
	for i := range 25 {
		f.add(time.Duration(i)*100*time.Millisecond, []string{"", "  node-1  " + theme.Paint(terminal.Good, "● back  ") + "  <script> & more"})
	}
	if got := len(f.frames); got != 3 {
		t.Errorf("%d frames of 2.5 seconds, want 3", got)
	}
	picture := f.svg()
	decoder, frames := xml.NewDecoder(strings.NewReader(picture)), 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if element, ok := token.(xml.StartElement); ok && element.Name.Local == "g" {
			frames++
		}
	}
	if frames != 3 {
		t.Errorf("%d groups, want one for each frame", frames)
	}
	const row = `<text y="38"><tspan x="35.8">node-1</tspan><tspan x="103.0" fill="#3fb950">● back</tspan><tspan x="187.0">&lt;script&gt; &amp; more</tspan></text>`
	if !strings.Contains(picture, row) {
		t.Errorf("no row %s in\n%s", row, picture)
	}
}
