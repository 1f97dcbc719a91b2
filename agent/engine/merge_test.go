package engine

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestMerge(t *testing.T) {
	staged := Report{
		Engine: "update-engine", State: Needed, Reason: v1alpha1.ReasonUpdateStaged,
		Version: "4001.0.0", Running: "4000.0.0", Message: "update_engine has installed version 4001.0.0.",
	}
	heard := Report{
		Engine: "update-engine", State: Needed, Reason: v1alpha1.ReasonUpdateStaged,
		Latched: true, Message: "A broadcast asks for a reboot.",
	}
	sentinel := Report{
		Engine: "sentinel", State: Needed, Reason: v1alpha1.ReasonSentinelPresent, Message: "/run/reboot-required exists.",
	}
	upToDate := Report{
		Engine: "update-engine", State: NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: "Nothing is staged.",
	}
	absent := Report{
		Engine: "rpm-ostree", State: Unknown, Reason: v1alpha1.ReasonEngineUnreachable, Message: "rpm-ostree is not on the bus.",
	}
	other := Report{
		Engine: "update-engine", State: Unknown, Reason: v1alpha1.ReasonEngineUnreachable, Message: "The bus is gone.",
	}
	noEngine := Report{
		State: Unknown, Reason: v1alpha1.ReasonEngineUnreachable, Message: "No update engine is watched on this host.",
	}

	cases := map[string]struct {
		reports []Report
		want    Report
	}{
		"no engine at all is unknown, never up to date": {nil, noEngine},
		"one engine speaks for itself":                  {[]Report{staged}, staged},
		"a need wins over an engine that needs nothing": {[]Report{upToDate, staged}, staged},
		"a need wins over one that cannot be asked":     {[]Report{absent, staged}, staged},
		"one engine that knows is enough":               {[]Report{absent, upToDate}, upToDate},
		"several needs are all told": {[]Report{sentinel, staged, upToDate}, Report{
			Engine: "sentinel", State: Needed, Reason: v1alpha1.ReasonSentinelPresent, Version: "4001.0.0",
			Running: "4000.0.0", Message: "/run/reboot-required exists. update_engine has installed version 4001.0.0.",
		}},
		"a latched need beside a confirmed one is not latched": {[]Report{heard, sentinel}, Report{
			Engine: "update-engine", State: Needed, Reason: v1alpha1.ReasonUpdateStaged,
			Message: "A broadcast asks for a reboot. /run/reboot-required exists.",
		}},
		"a latched need alone stays latched": {[]Report{upToDate, heard}, heard},
		"unknown only when all are": {[]Report{absent, other}, Report{
			Engine: "rpm-ostree", State: Unknown, Reason: v1alpha1.ReasonEngineUnreachable,
			Message: "rpm-ostree is not on the bus. The bus is gone.",
		}},
		"the same sentence is told once": {[]Report{absent, absent}, absent},
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

func TestShorten(t *testing.T) {
	cases := map[string]struct{ message, want string }{
		"short text is kept":                     {"nothing to do", "nothing to do"},
		"the limit itself is kept":               {strings.Repeat("x", 256), strings.Repeat("x", 256)},
		"longer text ends in an ellipsis":        {strings.Repeat("x", 257), strings.Repeat("x", 253) + "…"},
		"a character is never cut in two":        {strings.Repeat("ä", 129), strings.Repeat("ä", 126) + "…"},
		"bytes that are not UTF-8 are replaced":  {"a\xffb", "a\uFFFDb"},
		"replacing them does not pass the limit": {strings.Repeat("a\xff", 200), strings.Repeat("a\uFFFD", 63) + "a…"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Shorten(tc.message)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Shorten (-want +got):\n%s", diff)
			}
			if len(got) > MaxMessageBytes || !utf8.ValidString(got) {
				t.Errorf("got %d bytes, valid UTF-8 %v", len(got), utf8.ValidString(got))
			}
		})
	}
}
