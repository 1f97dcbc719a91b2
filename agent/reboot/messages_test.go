package reboot

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
)

func TestRemaining(t *testing.T) {
	blocked := func(n int) []drain.Pod {
		var pods []drain.Pod
		for i := range n {
			pods = append(pods, drain.Pod{Namespace: "a", Name: fmt.Sprintf("p%d", i), Message: "why"})
		}
		return pods
	}
	cases := map[string]struct {
		status drain.Status
		want   string
	}{
		"one pod":                     {drain.Status{Remaining: 1}, "1 pod is left on the node."},
		"several pods":                {drain.Status{Remaining: 2}, "2 pods are left on the node."},
		"one pod in the way":          {drain.Status{Remaining: 2, Blocked: blocked(1)}, "2 pods are left on the node; in the way: a/p0 (why)."},
		"many pods in the way":        {drain.Status{Remaining: 5, Blocked: blocked(5)}, "5 pods are left on the node; in the way: a/p0 (why), a/p1 (why), a/p2 (why) and 2 more."},
		"one pod left, with its name": {drain.Status{Remaining: 1, Left: blocked(1)}, "1 pod is left on the node: a/p0 (why)."},
		"some pods without a message": {
			drain.Status{Remaining: 4, Left: append(blocked(1), drain.Pod{Namespace: "b", Name: "q"}, drain.Pod{Namespace: "b", Name: "r"}, drain.Pod{})},
			"4 pods are left on the node: a/p0 (why), b/q, b/r and 1 more.",
		},
		"one pod in the way, of several": {
			drain.Status{Remaining: 2, Left: blocked(2), Blocked: blocked(1)}, "2 pods are left on the node; in the way: a/p0 (why).",
		},
		"one pod that came back": {drain.Status{Remaining: 1, Back: blocked(1)}, "1 pod is left on the node; staying: a/p0 (why)."},
		"one pod in the way, and many that came back": {
			drain.Status{Remaining: 1, Blocked: blocked(1), Back: blocked(4)},
			"1 pod is left on the node; in the way: a/p0 (why); staying: a/p0 (why), a/p1 (why), a/p2 (why) and 1 more.",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, remaining(tc.status)); diff != "" {
				t.Errorf("remaining (-want +got):\n%s", diff)
			}
		})
	}
	long := drain.Status{Remaining: 1, Blocked: []drain.Pod{{Message: strings.Repeat("x", 1000)}}}
	if got := len(remaining(long)); got > engine.MaxMessageBytes {
		t.Errorf("%d bytes", got)
	}
}

func TestInhibited(t *testing.T) {
	a, b := host.Inhibitor{Who: "a", Why: "why a"}, host.Inhibitor{Who: "b", Why: "why b"}
	cases := map[string]struct {
		blocking []host.Inhibitor
		want     string
	}{
		"nobody":                     {nil, ""},
		"somebody":                   {[]host.Inhibitor{a}, "A shutdown of the host is blocked by a (why a)."},
		"always in the same order":   {[]host.Inhibitor{b, a}, "A shutdown of the host is blocked by a (why a), b (why b)."},
		"a duplicate is listed once": {[]host.Inhibitor{b, b}, "A shutdown of the host is blocked by b (why b)."},
		"a text with line breaks": {
			[]host.Inhibitor{{Who: "a\r\nNode n2", Why: "x\u2028\x1b[2J\u202e"}}, "A shutdown of the host is blocked by a  Node n2 (x \uFFFD[2J\uFFFD).",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, inhibited(tc.blocking)); diff != "" {
				t.Errorf("inhibited (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnasked(t *testing.T) {
	cases := map[string]struct {
		err  error
		want string
	}{
		"no answer": {errors.New("no answer within 10s"), "logind cannot be asked who blocks a shutdown: no answer within 10s."},
		"an answer that is too large": {
			fmt.Errorf("calling ListInhibitors of logind: %w", host.ErrTooLarge),
			"logind cannot be asked who blocks a shutdown: the list of inhibitors is larger than 1 MiB. Look at systemd-inhibit --list on the host, and end the programs that hold them.",
		},
		"a refusal, whose text changes": {&host.RefusedError{Name: "org.example.No", Message: ":1.7"}, "logind cannot be asked who blocks a shutdown: logind answers org.example.No."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, unasked(tc.err)); diff != "" {
				t.Errorf("unasked (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzInhibited shows that the sentence about any holders of locks, with any reasons, fits into the
// Node.
func FuzzInhibited(f *testing.F) {
	f.Add("backup", "a snapshot is being taken", uint8(1))
	f.Add("\xff", strings.Repeat("ä", 300), uint8(3))
	f.Add("", "", uint8(200))
	f.Fuzz(func(t *testing.T, who, why string, locks uint8) {
		blocking := make([]host.Inhibitor, 0, locks)
		for i := range locks {
			blocking = append(blocking, host.Inhibitor{Who: who + string(rune('a'+i)), Why: why})
		}
		text := inhibited(blocking)
		if (text == "") != (locks == 0) || len(text) > engine.MaxMessageBytes || !utf8.ValidString(text) {
			t.Errorf("%d locks, %d bytes: %q", locks, len(text), text)
		}
	})
}
