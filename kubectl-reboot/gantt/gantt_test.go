package gantt_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	. "github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet/fleettest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/gantt"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal/terminaltest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/timetable"
)

func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func needy(n int, options ...func(*corev1.Node)) []corev1.Node {
	nodes := make([]corev1.Node, n)
	for i := range nodes {
		nodes[i] = Node(fmt.Sprintf("worker-%03d.example.com", i+1), "w", append([]func(*corev1.Node){Needs(time.Hour)}, options...)...)
	}
	return nodes
}

func freeze(from, to string) func(*v1alpha1.RebootPolicy) {
	return Spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Blackouts = append(s.Blackouts, v1alpha1.Blackout{Name: "freeze", From: from, To: to, TimeZone: "Europe/Berlin", Reason: "Black Friday"})
	})
}

func nights(start string, hours int) func(*v1alpha1.RebootPolicy) {
	return Spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Windows = []v1alpha1.Window{{Name: "nights", Start: start, Duration: metav1.Duration{Duration: time.Duration(hours) * time.Hour}, TimeZone: "Europe/Berlin"}}
	})
}

type picture struct {
	now    time.Time
	nodes  []corev1.Node
	policy []func(*v1alpha1.RebootPolicy)
}

func (p picture) table() timetable.Timetable {
	policy := Policy("w", p.policy...)
	if p.now.IsZero() {
		p.now = Now
	}
	f := fleet.New([]v1alpha1.RebootPolicy{policy}, p.nodes, p.now)
	return timetable.Of(f, f.Policy("w"))
}

func pictures() map[string]picture {
	inProgress := Node("worker-000.example.com", "w", Needs(time.Hour), Granted("w", 7, 3*time.Minute), Progressed(7, protocol.PhaseDraining, time.Minute))
	stays := Node("worker-999.example.com", "w", Needs(time.Hour), Annotated(v1alpha1.AnnotationPaused, "true"))
	autumn := time.Date(2026, 10, 24, 20, 0, 0, 0, time.UTC)
	return map[string]picture{
		"three":        {nodes: needy(3)},
		"nothing":      {nodes: []corev1.Node{Node("n", "w")}},
		"in-progress":  {nodes: append(needy(4), inProgress, stays), policy: []func(*v1alpha1.RebootPolicy){Holds(inProgress.Name, 7, 3*time.Minute), Weeknights}},
		"forty":        {nodes: append(needy(40), stays), policy: []func(*v1alpha1.RebootPolicy){nights("22:00", 2), freeze("2026-11-25", "2026-11-28")}},
		"thousand":     {nodes: needy(1000), policy: []func(*v1alpha1.RebootPolicy){Weeknights, AtMost("5"), freeze("2026-11-26", "2026-12-01")}},
		"weeks":        {nodes: needy(400), policy: []func(*v1alpha1.RebootPolicy){nights("22:00", 1)}},
		"clock-change": {now: autumn, nodes: needy(45), policy: []func(*v1alpha1.RebootPolicy){nights("01:00", 5)}},
		"paused": {nodes: needy(9), policy: []func(*v1alpha1.RebootPolicy){Spec(func(s *v1alpha1.RebootPolicySpec) {
			s.Pause = &v1alpha1.Pause{Reason: `<script>alert("x")</script> & ` + "\x00\x1b\u009b\u202e"}
		})}},
	}
}

// TestSVG: each picture is well-formed, needs nothing from elsewhere, and stays inside its edges. Small ones are golden.
func TestSVG(t *testing.T) {
	for name, p := range pictures() {
		t.Run(name, func(t *testing.T) {
			svg := gantt.SVG(p.table(), berlin(t))
			selfContained(t, svg)
			inside(t, svg)
			if folder := os.Getenv("GANTT_FOLDER"); folder != "" { // for people who want to look
				if err := os.WriteFile(filepath.Join(folder, name+".svg"), []byte(svg), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if len(p.nodes) < 10 {
				terminaltest.Golden(t, name+".svg", strings.Split(strings.TrimSuffix(svg, "\n"), "\n"))
			}
		})
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
	for _, box := range boxed.FindAllStringSubmatch(svg, -1) {
		x, y, w, h := number(box[2]), number(box[3]), number(box[4]), number(box[5])
		if x < 0 || y < 0 || w < 0 || h < 0 || x+w > width+1 || y+h > height+1 {
			t.Errorf("outside of %v × %v: %s", width, height, box[0])
		}
	}
}

// TestSVG_StaysReadable: however many nodes, there are at most sixty rows and a bounded width.
func TestSVG_StaysReadable(t *testing.T) {
	for name, p := range pictures() {
		size := sized.FindStringSubmatch(gantt.SVG(p.table(), berlin(t)))
		if w, _ := strconv.Atoi(size[1]); w > 3500 {
			t.Errorf("%s is %d wide", name, w)
		}
		if h, _ := strconv.Atoi(size[2]); h > 1400 {
			t.Errorf("%s is %d high", name, h)
		}
	}
}

// TestFigure: the picture for a page has no style sheet of its own and does not repeat what the page reports.
func TestFigure(t *testing.T) {
	figure := gantt.Figure(pictures()["in-progress"].table(), berlin(t))
	selfContained(t, figure)
	for _, bad := range []string{"<style", ">policy w<", ">Done "} {
		if strings.Contains(figure, bad) {
			t.Errorf("it has %q", bad)
		}
	}
	if !strings.Contains(figure, ">drain<") || !strings.Contains(figure, "worker-002") {
		t.Error("it has no legend or no rows")
	}
}
