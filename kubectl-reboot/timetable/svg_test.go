package timetable_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	. "github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/hack/terminaltest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/timetable"
)

func nights(start string, hours int) func(*v1alpha1.RebootPolicy) {
	return Spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Windows = []v1alpha1.Window{{Name: "nights", Start: start, Duration: v1alpha1.Duration{Duration: time.Duration(hours) * time.Hour}, TimeZone: "Europe/Berlin"}}
	})
}

// pictures returns timetables with and without something to draw.
func pictures() map[string]timetable.Timetable {
	const long = "worker-%03d.example.com"
	inProgress := Node("worker-000.example.com", "w", Needs(time.Hour), Granted("w", 7, 3*time.Minute), Progressed(7, protocol.PhaseDraining, time.Minute))
	stays := Node("worker-999.example.com", "w", Needs(time.Hour), Annotated(v1alpha1.AnnotationPaused, "until Mon 2026-11-23 20:00:00 UTC"))
	autumn := time.Date(2026, 10, 24, 20, 0, 0, 0, time.UTC)
	return map[string]timetable.Timetable{
		"three":        timetableOf(Now, needy(3, long)),
		"nothing":      timetableOf(Now, []corev1.Node{Node("n", "w")}),
		"in-progress":  timetableOf(Now, append(needy(4, long), inProgress, stays), Holds(inProgress.Name, 7, 3*time.Minute), Weeknights),
		"forty":        timetableOf(Now, append(needy(40, long), stays), nights("22:00", 2), freeze("2026-11-25", "2026-11-28")),
		"thousand":     timetableOf(Now, needy(1000, long), Weeknights, AtMost("5"), freeze("2026-11-26", "2026-12-01")),
		"weeks":        timetableOf(Now, needy(400, long), nights("22:00", 1)),
		"clock-change": timetableOf(autumn, needy(45, long), nights("01:00", 5)),
		"paused": timetableOf(Now, needy(9, long), Spec(func(s *v1alpha1.RebootPolicySpec) {
			s.Pause = &v1alpha1.Pause{Reason: `<script>alert("x")</script> & ` + "\x00\x1b\u009b\u202e"}
		})),
	}
}

// TestSVG tests that each picture is well-formed and self-contained, and stays inside its edges,
// however many nodes it has. Small pictures are compared with golden files. A picture for a page
// has no style sheet and does not repeat what the page says.
func TestSVG(t *testing.T) {
	for name, table := range pictures() {
		t.Run(name, func(t *testing.T) {
			svg := timetable.SVG(table, Berlin)
			selfContained(t, svg)
			inside(t, svg)
			if folder := os.Getenv("GANTT_FOLDER"); folder != "" { // to look at the pictures
				if err := os.WriteFile(filepath.Join(folder, name+".svg"), []byte(svg), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if len(table.Reboots) < 10 {
				terminaltest.Golden(t, name+".svg", strings.Split(strings.TrimSuffix(svg, "\n"), "\n"))
			}
			if name == "in-progress" {
				whole(t, svg)
			}
			figure := timetable.Figure(table, Berlin)
			selfContained(t, figure)
			for _, bad := range []string{"<style", ">policy w<", ">Done "} {
				if strings.Contains(figure, bad) {
					t.Errorf("the figure has %q", bad)
				}
			}
			if name == "in-progress" && (!strings.Contains(figure, ">drain<") || !strings.Contains(figure, "worker-002")) {
				t.Error("the figure has no legend or no rows")
			}
		})
	}
}

// whole tests that nothing in the picture is cut off, crossed out or unexplained.
func whole(t *testing.T, svg string) {
	t.Helper()
	if strings.Index(svg, `<line class="now"`) > strings.Index(svg, ">Mon 23 Nov 16:45<") {
		t.Error("the line of now crosses the time of a stretch")
	}
	if !strings.Contains(svg, ">granted<") {
		t.Error("the legend does not explain the bar before the drain")
	}
	if !strings.Contains(svg, ">reboot-operator.io/paused-<") {
		t.Error("the command for a node that stays is cut off")
	}
}

func selfContained(t *testing.T, svg string) {
	t.Helper()
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "script" {
			t.Error("a name has become markup")
		}
	}
	rest := strings.ReplaceAll(svg, `xmlns="http://www.w3.org/2000/svg"`, "")
	for _, bad := range []string{"http:", "https:", "url(", "@import", "href"} {
		if strings.Contains(rest, bad) {
			t.Errorf("it has %q", bad)
		}
	}
}

var (
	sized = regexp.MustCompile(`viewBox="0 0 (\d+) (\d+)"`)
	boxed = regexp.MustCompile(`<rect class="(\w+)" x="([-\d.]+)" y="([-\d.]+)" width="([-\d.]+)" height="([-\d.]+)"`)
)

func inside(t *testing.T, svg string) {
	t.Helper()
	number := func(s string) float64 {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	size := sized.FindStringSubmatch(svg)
	width, height := number(size[1]), number(size[2])
	if width > 3500 || height > 1400 {
		t.Errorf("it is %v wide and %v high", width, height)
	}
	for _, box := range boxed.FindAllStringSubmatch(svg, -1) {
		x, y, w, h := number(box[2]), number(box[3]), number(box[4]), number(box[5])
		if x < 0 || y < 0 || w < 0 || h < 0 || x+w > width+1 || y+h > height+1 {
			t.Errorf("outside of %v × %v: %s", width, height, box[0])
		}
	}
}
