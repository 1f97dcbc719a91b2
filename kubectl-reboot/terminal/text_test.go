package terminal

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSeconds(t *testing.T) {
	want := map[time.Duration]string{
		0: "0.0 s", 50 * time.Millisecond: "0.1 s", 99949 * time.Millisecond: "99.9 s", 99950 * time.Millisecond: "1m40s",
		125 * time.Second: "2m05s", 59*time.Minute + 59600*time.Millisecond: "1h00m", 187 * time.Minute: "3h07m",
	}
	got := map[time.Duration]string{}
	for d := range want {
		got[d] = Seconds(d)
		if len(got[d]) > 6 {
			t.Errorf("%q has more than six columns", got[d])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A command goes to the cluster that was asked, whatever kubectl's current context is.
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
			t.Errorf("%s is %q where nobody has chosen a cluster", command, got)
		}
	}
}

func TestCutAndFit(t *testing.T) {
	cases := map[string]struct {
		width    int
		cut, fit string
	}{
		"abc":      {3, "abc", "abc"},
		"abcd":     {3, "ab…", "ab…"},
		"ab cdef":  {4, "ab…", "ab… "},
		"äöü":      {5, "äöü", "äöü  "},
		"whatever": {0, "", ""},
	}
	for text, tc := range cases {
		if got := Cut(text, tc.width); got != tc.cut {
			t.Errorf("Cut(%q, %d) is %q, want %q", text, tc.width, got, tc.cut)
		}
		if got := Fit(text, tc.width); got != tc.fit {
			t.Errorf("Fit(%q, %d) is %q, want %q", text, tc.width, got, tc.fit)
		}
	}
}
