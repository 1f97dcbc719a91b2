package rpmostree

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func needing(version, running, message string) engine.Report {
	return engine.Report{
		Engine: "rpm-ostree", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: version, Running: running,
		Message: message,
	}
}

func TestJudge(t *testing.T) {
	booted := deployment{version: "40.1", checksum: sum, booted: true}
	cases := map[string]struct {
		list []deployment
		want engine.Report
	}{
		"the booted one alone":                       {[]deployment{booted}, upToDate},
		"the booted one before the one to roll back": {[]deployment{booted, {version: "40.0"}}, upToDate},
		"a staged one": {
			[]deployment{{version: "40.2", checksum: sum, staged: true}, booted, {version: "40.0"}},
			needing("40.2", "40.1 (0123456789ab.0)", "rpm-ostree has staged version 40.2 (0123456789ab); it runs after a reboot."),
		},
		"a pending one that is not staged": {
			[]deployment{{version: "40.0", checksum: sum}, booted},
			needing("40.0", "40.1 (0123456789ab.0)", "rpm-ostree boots version 40.0 (0123456789ab) next; it runs after a reboot."),
		},
		"the same version with other packages": {
			[]deployment{{version: "40.1", checksum: strings.Repeat("f", 64), staged: true}, booted},
			needing("40.1", "40.1 (0123456789ab.0)", "rpm-ostree has staged version 40.1 (ffffffffffff); it runs after a reboot."),
		},
		"one without a version": {
			[]deployment{{checksum: sum, staged: true}, booted},
			needing("0123456789ab", "40.1 (0123456789ab.0)", "rpm-ostree has staged commit 0123456789ab; it runs after a reboot."),
		},
		"one without a checksum": {
			[]deployment{{version: "40.2", staged: true}, booted},
			needing("40.2", "40.1 (0123456789ab.0)", "rpm-ostree has staged version 40.2; it runs after a reboot."),
		},
		"one without any name": {
			[]deployment{{}, booted}, needing("", "40.1 (0123456789ab.0)", "rpm-ostree boots another deployment next; it runs after a reboot."),
		},
		"the same commit with other kernel arguments": {
			[]deployment{{version: "40.1", checksum: sum, serial: 2}, {version: "40.1", checksum: sum, serial: 1, booted: true}},
			needing("40.1", "40.1 (0123456789ab.1)", "rpm-ostree boots version 40.1 (0123456789ab) next; it runs after a reboot."),
		},
		"on a system without a version": {
			[]deployment{{version: "40.2", staged: true}, {checksum: sum, booted: true}},
			needing("40.2", "0123456789ab.0", "rpm-ostree has staged version 40.2; it runs after a reboot."),
		},
		"on a system without any name": {
			[]deployment{{version: "40.2", staged: true}, {booted: true}},
			needing("40.2", "", "rpm-ostree has staged version 40.2; it runs after a reboot."),
		},
		"a locked one (behaviour 11)": {
			[]deployment{{version: "40.2", checksum: sum, staged: true, locked: true}, booted},
			engine.UpToDate(Name, "rpm-ostree has staged version 40.2 (0123456789ab), which is locked: a reboot leaves it out until it is finalized."),
		},
		"a locked one before one that is pending, which a reboot boots": {
			[]deployment{{version: "40.2", staged: true, locked: true}, {version: "40.0", checksum: sum}, booted},
			needing("40.0", "40.1 (0123456789ab.0)", "rpm-ostree boots version 40.0 (0123456789ab) next; it runs after a reboot."),
		},
		"one that is locked further down": {[]deployment{booted, {version: "40.2", staged: true, locked: true}}, upToDate},
		"none at all":                     {nil, notFromOstree},
		"none that is booted":             {[]deployment{{version: "40.2", staged: true}, {version: "40.1"}}, notFromOstree},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, judge(tc.list)); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

// Of a deployment without a version the need is named by its commit, as judge does it.
func TestResumed(t *testing.T) {
	for version, boots := range map[string]string{"40.2": "40.2", "0123456789ab": "0123456789ab", "": "another deployment"} {
		want := needing(version, "40.1 (0123456789ab.0)", "rpm-ostree boots "+boots+" next; it runs after a reboot.")
		before := engine.Report{Engine: Name, State: engine.Needed, Version: version, Running: want.Running}
		if diff := cmp.Diff(want, resumed(before)); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
	}
}

// wellFormed checks that a report fits into the Node.
func wellFormed(t *testing.T, r engine.Report) {
	t.Helper()
	if r.Engine != "rpm-ostree" || r.State == "" || r.Reason == "" || r.Message == "" || !r.Until.IsZero() {
		t.Errorf("incomplete: %+v", r)
	}
	if len(r.Message) > engine.MaxMessageBytes || !utf8.ValidString(r.Message) {
		t.Errorf("message of %d bytes: %q", len(r.Message), r.Message)
	}
	if r.State != engine.Needed && r.Version+r.Running != "" {
		t.Errorf("a version without a need: %+v", r)
	}
	if len(r.Running) > 96 || !utf8.ValidString(r.Running) {
		t.Errorf("running: %q", r.Running)
	}
}
