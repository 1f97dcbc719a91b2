package sentinel

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Reports that the tests want.
var (
	noFile = engine.Report{
		Engine: "sentinel", State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate,
		Message: "Neither /run/reboot-required nor /run/reboot-needed exists on the host.",
	}
	noRun = engine.Report{
		Engine: "sentinel", State: engine.Unknown, Reason: v1alpha1.ReasonEngineUnreachable,
		Message: "The host's /run cannot be read: no such file or directory.",
	}
	present = needed("/run/reboot-required exists on the host.")
)

func needed(message string) engine.Report {
	return engine.Report{
		Engine: "sentinel", State: engine.Needed, Reason: v1alpha1.ReasonSentinelPresent, Message: message,
	}
}

func TestReport(t *testing.T) {
	cases := map[string]struct {
		seen observation
		want engine.Report
	}{
		"no file is no need":             {observation{files: Defaults}, noFile},
		"a file is one (behaviour 12)":   {observation{present: Defaults[:1]}, present},
		"what cannot be read is unknown": {observation{unreadable: "no such file or directory", folder: "/run"}, noRun},
		"a file is a need beside a folder that cannot be read": {
			observation{unreadable: "no such file or directory", folder: "/run", present: Defaults[:1]}, needed(present.Message + " " + noRun.Message),
		},
		"the message names the packages":        {observation{present: Defaults[:1], packages: []string{"libc6", "dbus"}}, needed("/run/reboot-required exists on the host, because of libc6, dbus.")},
		"packages without the file are no need": {observation{files: Defaults, packages: []string{"libc6"}}, noFile},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.seen.report()); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessage_NamesAsManyPackagesAsThereIsRoomFor(t *testing.T) {
	names := func(n, size int) []string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("p%0*d", size-1, i))
		}
		return names
	}
	cases := map[string]struct {
		packages []string
		end      string
	}{
		"one":       {names(1, 3), "because of p00."},
		"sixteen":   {names(16, 3), "p14, p15."},
		"seventeen": {names(17, 3), "p14, p15 and 1 more."},
		"too long":  {names(40, 40), " and 36 more."},
		"very long": {names(3, 64), "p000000000000000000000000000000000000000000000000000000000000002."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := message(Defaults[:1], tc.packages)
			if !strings.HasSuffix(got, tc.end) || len(got) > engine.MaxMessageBytes {
				t.Errorf("%d bytes: %q, want an end of %q", len(got), got, tc.end)
			}
		})
	}
}

func TestAppendPackages(t *testing.T) {
	cases := map[string]struct {
		content string
		want    []string
	}{
		"empty":                     {"", nil},
		"one, without a line break": {"dbus", []string{"dbus"}},
		"Ubuntu's": {
			"linux-image-6.8.0-45-generic\nlinux-base\nlibc6\nlibc6\n", []string{"linux-image-6.8.0-45-generic", "linux-base", "libc6"},
		},
		"Debian's":                          {"linux-image-6.12.43+deb13-cloud-amd64\n", []string{"linux-image-6.12.43+deb13-cloud-amd64"}},
		"with an architecture or a version": {"libc6:amd64\nopenssl=3.0.17-1~deb12u3\n", []string{"libc6:amd64", "openssl=3.0.17-1~deb12u3"}},
		"white space around it":             {" dbus \r\n\n\t\nlibc6", []string{"dbus", "libc6"}},
		"sentences are no packages":         {"*** System restart required ***\nRebooted.  All is well\ndbus", []string{"dbus"}},
		"nor is anything that is not text":  {"\xff\x00\n\u202edbus\nd\x00bus\n", nil},
		"nor options and paths":             {"-rf\n/etc/passwd\n..\n", nil},
		"nor what has no end":               {strings.Repeat("x", 65) + "\n", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, appendPackages(nil, tc.content)); diff != "" {
				t.Errorf("packages (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzAppendPackages(f *testing.F) {
	f.Add("linux-image-6.8.0-45-generic\nlinux-base\nlibc6\nlibc6\n")
	f.Add("*** System restart required ***\n")
	f.Add("\xff\n-\n" + strings.Repeat("x", 65))
	f.Fuzz(func(t *testing.T, content string) {
		packages := appendPackages(nil, content)
		got := observation{present: Defaults[:1], packages: packages}.report()
		if len(got.Message) > engine.MaxMessageBytes || !utf8.ValidString(got.Message) || strings.ContainsAny(got.Message, "\n\x00") {
			t.Errorf("message of %d bytes: %q", len(got.Message), got.Message)
		}
		again := appendPackages(nil, strings.Join(packages, "\n"))
		if diff := cmp.Diff(packages, again); diff != "" {
			t.Errorf("packages do not read as themselves (-want +got):\n%s", diff)
		}
	})
}
