package terminal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A shown command must use the same cluster, whatever kubectl's current context is.
func TestLook_Command(t *testing.T) {
	l := Look{Flags: "--kubeconfig=/c --context=prod"}
	for command, want := range map[string]string{
		"kubectl get nodes":      "kubectl get nodes --kubeconfig=/c --context=prod",
		"helm upgrade r chart":   "helm upgrade r chart --kubeconfig=/c --kube-context=prod",
		"systemd-inhibit --list": "systemd-inhibit --list",
	} {
		if got := l.Command(command); got != want {
			t.Errorf("%s is %q, want %q", command, got, want)
		}
		if got := (Look{}).Command(command); got != command {
			t.Errorf("%s is %q without a chosen cluster", command, got)
		}
	}
}

func TestTable(t *testing.T) {
	columns := []string{"NODE", ">PODS", "+>AGE", "WHY"}
	rows := [][]Cell{
		{{Text: "n1"}, {Text: "7"}, {Text: "2d"}, {Text: "waits for a window", Style: Bad}},
		{{Text: "worker-12"}, {Text: "110"}, {Text: "100d"}, {}},
	}
	cases := map[string]struct {
		look Look
		want []string
	}{
		"a pipe has no width": {want: []string{
			"NODE       PODS  WHY",
			"n1            7  waits for a window",
			"worker-12   110",
		}},
		"a wide look shows more columns": {look: Look{Wide: true}, want: []string{
			"NODE       PODS   AGE  WHY",
			"n1            7    2d  waits for a window",
			"worker-12   110  100d",
		}},
		"the last column is wrapped between words": {look: Look{Width: 32}, want: []string{
			"NODE       PODS  WHY",
			"n1            7  waits for a",
			"                 window",
			"worker-12   110",
		}},
		"columns that do not fit go below the others": {look: Look{Width: 24}, want: []string{
			"NODE       PODS",
			"  WHY",
			"n1            7",
			"  waits for a window",
			"worker-12   110",
		}},
		"only a word that is wider than the terminal is cut": {look: Look{Width: 8}, want: []string{
			"NODE",
			"  PODS",
			"  WHY",
			"n1",
			"     7",
			"  waits",
			"  for a",
			"  window",
			"worker-…",
			"   110",
		}},
		"colour has no width": {look: Look{Theme: Theme{Color: true}, Width: 32}, want: []string{
			"\x1b[2mNODE     \x1b[0m  \x1b[2mPODS\x1b[0m  \x1b[2mWHY\x1b[0m",
			"n1            7  \x1b[1;31mwaits for a\x1b[0m",
			"                 \x1b[1;31mwindow\x1b[0m",
			"worker-12   110",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.look.Table(columns, rows)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// East Asian letters take two columns and combining accents none. Alignment and cuts must count
// columns.
func TestTable_ByColumns(t *testing.T) {
	rows := [][]Cell{
		{{Text: "磁盘-1"}, {Text: "7"}, {Text: "等待磁盘更换完成"}},
		{{Text: "n1"}, {Text: "110"}, {Text: "e\u0301te\u0301"}},
	}
	want := []string{
		"NODE    PODS",
		"  WHY",
		"磁盘-1     7",
		"  等待磁盘更换完成",
		"n1       110",
		"  e\u0301te\u0301",
	}
	if diff := cmp.Diff(want, Look{Width: 24}.Table([]string{"NODE", ">PODS", "WHY"}, rows)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"等待 磁盘", "更换"}, Wrap("等待 磁盘 更换", 9)); diff != "" {
		t.Errorf("wrapped (-want +got):\n%s", diff)
	}
}

func TestWrap(t *testing.T) {
	cases := map[string]struct {
		text  string
		width int
		want  []string
	}{
		"no width":           {"a b c", 0, []string{"a b c"}},
		"fits":               {"a b c", 5, []string{"a b c"}},
		"breaks at a word":   {"a b c", 4, []string{"a b", "c"}},
		"a long word stays":  {"see https://example.com now", 6, []string{"see", "https://example.com", "now"}},
		"columns, not bytes": {"ä ö ü", 5, []string{"ä ö ü"}},
		"nothing":            {"", 5, []string{""}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Wrap(tc.text, tc.width)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCrop(t *testing.T) {
	screen, _ := shown(true)
	lines := []string{"a", "b", "c"}
	cases := map[int][]string{3: lines, 2: {"a", "… 2 more lines"}, 1: {"… 3 more lines"}, -1: {"… 3 more lines"}}
	for height, want := range cases {
		if diff := cmp.Diff(want, screen.Crop(lines, height)); diff != "" {
			t.Errorf("%d lines (-want +got):\n%s", height, diff)
		}
	}
	wide := []string{"a", strings.Repeat("x", 100), "c"}
	if diff := cmp.Diff([]string{"a", "… 2 more lines"}, screen.Crop(wide, 3)); diff != "" {
		t.Errorf("a line of two rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "… 1 more line"}, screen.Crop(wide[:2], 2)); diff != "" {
		t.Errorf("one line (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wide, screen.Crop(wide, 4)); diff != "" {
		t.Errorf("a line of two rows for which there is room (-want +got):\n%s", diff)
	}
}
