package kernel

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// needs is the report of a host that runs one kernel and has a newer one.
func needs(installed, running string) engine.Report {
	return engine.Report{
		Engine: "kernel", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: installed,
		Running: running, Message: "Kernel " + installed + " is installed, and " + running + " is running.",
	}
}

// upToDate is the report of a host that runs the newest kernel there is.
func upToDate(running string) engine.Report {
	return engine.Report{
		Engine: "kernel", State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate,
		Message: "Kernel " + running + " is running, and no newer one of its kind is installed.",
	}
}

var (
	noKernel  = engine.Unreachable(Name, "No kernel is found in the host's /usr/lib/modules, /lib/modules or /boot.")
	noRelease = engine.Unreachable(Name, "The host's kernels cannot be read: the running one's release: it is no version.")
)

func TestReport(t *testing.T) {
	cases := map[string]struct {
		running   string
		installed []string
		want      engine.Report
	}{
		"the newest one runs":               {"6.1.0-10-amd64", []string{"6.1.0-9-amd64", "6.1.0-10-amd64"}, upToDate("6.1.0-10-amd64")},
		"a newer one is installed":          {"6.1.0-9-amd64", []string{"6.1.0-10-amd64", "6.1.0-9-amd64"}, needs("6.1.0-10-amd64", "6.1.0-9-amd64")},
		"the newest of several is reported": {"6.1.0-8-amd64", []string{"6.1.0-9-amd64", "6.1.0-11-amd64", "6.1.0-10-amd64"}, needs("6.1.0-11-amd64", "6.1.0-8-amd64")},
		"the running one was removed":       {"6.1.0-9-amd64", []string{"6.1.0-10-amd64"}, needs("6.1.0-10-amd64", "6.1.0-9-amd64")},
		"another flavour is no successor":   {"6.1.0-9-amd64", []string{"6.1.0-9-amd64", "6.1.0-10-cloud-amd64"}, upToDate("6.1.0-9-amd64")},
		"within a flavour": {
			"6.1.0-9-cloud-amd64",
			[]string{"6.1.0-9-cloud-amd64", "6.1.0-10-cloud-amd64", "6.1.0-11-amd64"},
			needs("6.1.0-10-cloud-amd64", "6.1.0-9-cloud-amd64"),
		},
		"the next release of a distribution is one": {
			"6.13.9-200.fc41.x86_64",
			[]string{"6.13.9-200.fc41.x86_64", "6.14.0-63.fc42.x86_64"},
			needs("6.14.0-63.fc42.x86_64", "6.13.9-200.fc41.x86_64"),
		},
		"a release after its candidate": {"6.7.0-rc8", []string{"6.7.0-rc8", "6.7.0"}, needs("6.7.0", "6.7.0-rc8")},
		"a candidate of the next one":   {"6.7.0", []string{"6.7.0", "6.8.0-rc1"}, needs("6.8.0-rc1", "6.7.0")},
		"older ones only":               {"6.1.0-10-amd64", []string{"6.1.0-9-amd64"}, upToDate("6.1.0-10-amd64")},
		"the same by another name":      {"6.7-1", []string{"6.7.0-1"}, upToDate("6.7-1")},
		"none is installed":             {"6.1.0-10-amd64", nil, noKernel},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := observation{running: parse(t, tc.running)}
			for _, text := range tc.installed {
				o.installed = append(o.installed, parse(t, text))
			}
			if diff := cmp.Diff(tc.want, report(o, nil)); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}
