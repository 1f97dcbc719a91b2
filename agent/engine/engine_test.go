package engine

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestMerge(t *testing.T) {
	staged := Report{
		Engine: "update-engine", State: Needed, Reason: v1alpha1.ReasonUpdateStaged,
		Version: "4001.0.0", Running: "4000.0.0", Message: "update_engine has installed version 4001.0.0.",
	}
	broadcast := Report{
		Engine: "update-engine", State: Needed, Reason: v1alpha1.ReasonUpdateStaged,
		Until: time.Date(2026, 11, 24, 22, 0, 0, 0, time.UTC), Message: "A broadcast asks for a reboot.",
	}
	sentinel := Report{
		Engine: "sentinel", State: Needed, Reason: v1alpha1.ReasonSentinelPresent, Message: "/run/reboot-required exists.",
	}
	upToDate := Report{
		Engine: "update-engine", State: NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: "Nothing is staged.",
	}
	gone := Report{
		Engine: "rpm-ostree", State: Unknown, Reason: v1alpha1.ReasonEngineUnreachable, Message: "rpm-ostree is not on the bus.",
	}
	other := Report{
		Engine: "update-engine", State: Unknown, Reason: v1alpha1.ReasonEngineUnreachable, Message: "The bus is gone.",
	}
	fileAbsent := Report{
		Engine: "sentinel", State: NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: "The file does not exist.",
	}
	never := Report{Engine: "cos-update-engine", State: Absent, Message: "Not here."}
	nowhere := Report{Engine: "sentinel", State: Absent, Message: "Nor here."}

	cases := map[string]struct {
		reports []Report
		want    Report
	}{
		"one engine alone": {[]Report{staged}, staged},
		"a need wins over an engine that needs nothing": {[]Report{upToDate, staged}, staged},
		"a need wins over an engine that does not respond, which is reported": {[]Report{gone, staged}, Report{
			Engine: "update-engine", State: Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: "4001.0.0", Running: "4000.0.0",
			Message: "update_engine has installed version 4001.0.0. rpm-ostree is not on the bus.",
		}},
		"an engine that does not respond may have a need, whatever others report (behaviour 7)": {[]Report{fileAbsent, gone}, Report{
			Engine: "rpm-ostree", State: Unknown, Reason: v1alpha1.ReasonEngineUnreachable,
			Message: "rpm-ostree is not on the bus. The file does not exist.",
		}},
		"nothing is needed if all engines report that": {[]Report{upToDate, fileAbsent}, Report{
			Engine: "update-engine", State: NotNeeded, Reason: v1alpha1.ReasonUpToDate,
			Message: "Nothing is staged. The file does not exist.",
		}},
		"several needs are one, and all are reported (behaviour 12)": {[]Report{sentinel, staged, upToDate}, Report{
			Engine: "sentinel", State: Needed, Reason: v1alpha1.ReasonSentinelPresent, Version: "4001.0.0",
			Running: "4000.0.0", Message: "/run/reboot-required exists. update_engine has installed version 4001.0.0.",
		}},
		"a need that expires does not expire next to a confirmed need": {[]Report{broadcast, sentinel}, Report{
			Engine: "update-engine", State: Needed, Reason: v1alpha1.ReasonUpdateStaged,
			Message: "A broadcast asks for a reboot. /run/reboot-required exists.",
		}},
		"a need that ends by itself": {[]Report{upToDate, broadcast}, broadcast},
		"several engines that do not respond": {[]Report{gone, other}, Report{
			Engine: "rpm-ostree", State: Unknown, Reason: v1alpha1.ReasonEngineUnreachable,
			Message: "rpm-ostree is not on the bus. The bus is gone.",
		}},
		"the same sentence is reported once":         {[]Report{gone, gone}, gone},
		"an absent engine does not count":            {[]Report{never, upToDate, nowhere}, upToDate},
		"an absent engine next to one that vanished": {[]Report{never, gone}, gone},
		"no engine at all is unknown, never up to date (behaviour 7)": {[]Report{never, nowhere}, Report{
			State: Unknown, Reason: v1alpha1.ReasonEngineUnreachable,
			Message: "No update engine is found on this host; looked for cos-update-engine, sentinel. Mount the host's /run/dbus " +
				"and /run into the agent's pod, or name the host's engine with --engines.",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Merge(tc.reports)); diff != "" {
				t.Errorf("Merge (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMerge_LeavesItsInputAlone(t *testing.T) {
	reports := []Report{{Engine: "a", State: Unknown}, {Engine: "b", State: Needed}}
	want := []Report{{Engine: "a", State: Unknown}, {Engine: "b", State: Needed}}
	Merge(reports)
	if diff := cmp.Diff(want, reports); diff != "" {
		t.Errorf("reports changed (-want +got):\n%s", diff)
	}
}

func TestMerge_CutsLongMessages(t *testing.T) {
	long := strings.Repeat("x", MaxMessageBytes)
	got := Merge([]Report{{State: Needed, Message: long}, {State: Needed, Message: long + "y"}, {State: Unknown, Message: long + "z"}})
	if len(got.Message) != 2*MaxMessageBytes || !strings.HasPrefix(got.Message, long+" "+long[1:len(long)-len("…")]) {
		t.Errorf("got %d bytes: %q", len(got.Message), got.Message)
	}
}

// FuzzMerge shows that the merged message of any reports fits into the Node, and that no need is
// lost.
func FuzzMerge(f *testing.F) {
	f.Add("update_engine has installed version 4081.2.0; it runs after a reboot.", "\xff", []byte{0, 1})
	f.Add(strings.Repeat("ä", 300), strings.Repeat("\u20ac", 200), []byte{2, 2, 0})
	f.Add("", "", []byte{})
	f.Fuzz(func(t *testing.T, one, other string, states []byte) {
		all := []State{Needed, NotNeeded, Unknown, Absent}
		var reports []Report
		needed := false
		for i, b := range states {
			r := Report{Engine: "a", State: all[int(b)%len(all)], Message: []string{one, other}[i%2]}
			needed = needed || r.State == Needed
			reports = append(reports, r)
		}
		merged := Merge(reports)
		if (merged.State == Needed) != needed || merged.State == Absent {
			t.Errorf("%v make %v", reports, merged.State)
		}
		if !utf8.ValidString(merged.Message) || len(merged.Message) > 2*MaxMessageBytes && merged.Reason == "" {
			t.Errorf("message of %d bytes: %q", len(merged.Message), merged.Message)
		}
	})
}
