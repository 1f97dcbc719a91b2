package rpmostree

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/godbus/dbus/v5"
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

// A locked deployment is a need if a FleetLock client finalizes it. The need names the client.
func TestJudge_LockedDeploymentOfAFleetLockClient(t *testing.T) {
	booted := deployment{version: "40.1", checksum: sum, booted: true}
	locked := deployment{version: "40.2", checksum: sum, staged: true, locked: true}
	want := needing("40.2", "40.1 (0123456789ab.0)",
		"rpm-ostree has staged version 40.2 (0123456789ab); Zincati finalizes it and reboots when the operator permits it.")
	want.Client = "Zincati"
	for name, tc := range map[string]struct {
		list []deployment
		want engine.Report
	}{
		"locked": {[]deployment{locked, booted}, want},
		"a locked deployment before a pending one": {[]deployment{locked, {version: "40.0", checksum: sum}, booted}, want},
		"nothing is staged":                        {[]deployment{booted}, upToDate},
		"the staged deployment is unlocked":        {[]deployment{{version: "40.2", checksum: sum, staged: true}, booted}, needing("40.2", "40.1 (0123456789ab.0)", "rpm-ostree has staged version 40.2 (0123456789ab); it runs after a reboot.")},
		"no deployment is booted yet":              {[]deployment{locked}, notFromOstree},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, judge(tc.list, "Zincati")); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			if tc.want.Client == "" {
				return
			}
			before := engine.Report{State: engine.Needed, Version: "40.2", Client: "Zincati"}
			if got := resumed(before); got.Client != "Zincati" || got.State != engine.Needed {
				t.Errorf("after a restart: %+v", got)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	booted := deployment{version: "40.1", checksum: sum, booted: true}
	cases := map[string]struct {
		list []deployment
		want engine.Report
	}{
		"only the booted deployment":                {[]deployment{booted}, upToDate},
		"the booted deployment before the rollback": {[]deployment{booted, {version: "40.0"}}, upToDate},
		"a staged deployment": {
			[]deployment{{version: "40.2", checksum: sum, staged: true}, booted, {version: "40.0"}},
			needing("40.2", "40.1 (0123456789ab.0)", "rpm-ostree has staged version 40.2 (0123456789ab); it runs after a reboot."),
		},
		"a pending deployment that is not staged": {
			[]deployment{{version: "40.0", checksum: sum}, booted},
			needing("40.0", "40.1 (0123456789ab.0)", "rpm-ostree boots version 40.0 (0123456789ab) next; it runs after a reboot."),
		},
		"the same version with other packages": {
			[]deployment{{version: "40.1", checksum: strings.Repeat("f", 64), staged: true}, booted},
			needing("40.1", "40.1 (0123456789ab.0)", "rpm-ostree has staged version 40.1 (ffffffffffff); it runs after a reboot."),
		},
		"a deployment without a version": {
			[]deployment{{checksum: sum, staged: true}, booted},
			needing("0123456789ab", "40.1 (0123456789ab.0)", "rpm-ostree has staged commit 0123456789ab; it runs after a reboot."),
		},
		"a deployment without a checksum": {
			[]deployment{{version: "40.2", staged: true}, booted},
			needing("40.2", "40.1 (0123456789ab.0)", "rpm-ostree has staged version 40.2; it runs after a reboot."),
		},
		"a deployment without a version and a checksum": {
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
		"a locked deployment (behaviour 11)": {
			[]deployment{{version: "40.2", checksum: sum, staged: true, locked: true}, booted},
			engine.UpToDate(Name, "rpm-ostree has staged version 40.2 (0123456789ab), which is locked: a reboot leaves it out until it is finalized."),
		},
		"a locked one before one that is pending, which a reboot boots": {
			[]deployment{{version: "40.2", staged: true, locked: true}, {version: "40.0", checksum: sum}, booted},
			needing("40.0", "40.1 (0123456789ab.0)", "rpm-ostree boots version 40.0 (0123456789ab) next; it runs after a reboot."),
		},
		"a locked deployment further down": {[]deployment{booted, {version: "40.2", staged: true, locked: true}}, upToDate},
		"no deployments":                   {nil, notFromOstree},
		"no booted deployment":             {[]deployment{{version: "40.2", staged: true}, {version: "40.1"}}, notFromOstree},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, judge(tc.list, "")); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

// The need of a deployment without a version is named by its commit, as in judge.
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

// properties is the dictionary with which rpm-ostree reports a deployment.
type properties = map[string]dbus.Variant

// sum is a checksum.
var sum = strings.Repeat("0123456789abcdef", 4)

func variants(values map[string]any) properties {
	e := properties{}
	for key, value := range values {
		e[key] = dbus.MakeVariant(value)
	}
	return e
}

func TestDecodeDeployments(t *testing.T) {
	full := map[string]any{
		"id": "fedora-coreos-" + sum + ".0", "osname": "fedora-coreos", "serial": int32(3), "checksum": sum,
		"version": "40.20240512.3.0", "timestamp": uint64(1), "origin": "fedora:fedora/x86_64/coreos/stable",
		"booted": false, "staged": true, "finalization-locked": true, "pinned": false, "unlocked": "none",
		"packages": []string{}, "base-commit-meta": variants(map[string]any{"a": int32(1)}),
	}
	cases := map[string]struct {
		value   any
		want    []deployment
		ignored string
	}{
		"none": {[]properties{}, nil, ""},
		"a staged and locked one before the booted one": {
			[]properties{variants(full), variants(map[string]any{"booted": true, "version": "39.1", "checksum": sum})},
			[]deployment{
				{version: "40.20240512.3.0", checksum: sum, serial: 3, staged: true, locked: true},
				{version: "39.1", checksum: sum, booted: true},
			},
			"",
		},
		"missing properties are false or unknown": {[]properties{{}}, []deployment{{}}, ""},
		"empty texts are unknown": {
			[]properties{variants(map[string]any{"version": "", "checksum": ""})}, []deployment{{}}, "",
		},
		"a version of RHEL CoreOS": {
			[]properties{variants(map[string]any{"version": "416.94.202406172220-0"})}, []deployment{{version: "416.94.202406172220-0"}}, "",
		},
		"the longest version": {
			[]properties{variants(map[string]any{"version": strings.Repeat("9", 64)})}, []deployment{{version: strings.Repeat("9", 64)}}, "",
		},
		"a version without end is left out": {
			[]properties{variants(map[string]any{"version": strings.Repeat("9", 1<<20), "staged": true})},
			[]deployment{{staged: true}},
			`"` + strings.Repeat("9", 64) + `" is not a version`,
		},
		"a sentence is not a version": {
			[]properties{variants(map[string]any{"version": "1. Reported by me"})}, []deployment{{}}, `"1. Reported by me" is not a version`,
		},
		"bytes are not a version": {
			[]properties{variants(map[string]any{"version": "\xff"})}, []deployment{{}}, `"\xff" is not a version`,
		},
		"dots are not a version": {[]properties{variants(map[string]any{"version": "..."})}, []deployment{{}}, `"..." is not a version`},
		"a short checksum is left out": {
			[]properties{variants(map[string]any{"checksum": sum[1:]})}, []deployment{{}}, `"` + sum[1:] + `" is not a checksum`,
		},
		"a checksum in capitals is left out, and so is a bad version": {
			[]properties{variants(map[string]any{"checksum": strings.ToUpper(sum), "version": "a b"})},
			[]deployment{{}},
			`"a b" is not a version` + "\n" + `"` + strings.ToUpper(sum) + `" is not a checksum`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ignored, err := decodeDeployments(dbus.MakeVariant(tc.value))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(deployment{})); diff != "" {
				t.Errorf("deployments (-want +got):\n%s", diff)
			}
			message := ""
			if ignored != nil {
				message = ignored.Error()
			}
			if diff := cmp.Diff(tc.ignored, message); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeDeployments_RefusesInvalidLists(t *testing.T) {
	one := func(key string, value any) []properties {
		return []properties{{}, variants(map[string]any{key: value})}
	}
	cases := map[string]struct {
		value any
		want  string
	}{
		"text":                   {"text", "type s instead of aa{sv}"},
		"a dictionary":           {properties{}, "type a{sv} instead of aa{sv}"},
		"dictionaries of text":   {[]map[string]string{}, "type aa{ss} instead of aa{sv}"},
		"texts":                  {[]string{"a"}, "type as instead of aa{sv}"},
		"booted as text":         {one("booted", "true"), "deployment 1: booted is of type s"},
		"booted as a number":     {one("booted", int32(1)), "deployment 1: booted is of type i"},
		"a variant in a variant": {one("booted", dbus.MakeVariant(true)), "deployment 1: booted is of type v"},
		"staged as a list":       {one("staged", []bool{true}), "deployment 1: staged is of type ab"},
		"locked as a number":     {one("finalization-locked", uint64(1)), "deployment 1: finalization-locked is of type t"},
		"version as a number":    {one("version", 40.1), "deployment 1: version is of type d"},
		"checksum as bytes":      {one("checksum", []byte(sum)), "deployment 1: checksum is of type ay"},
		"version as a path":      {one("version", dbus.ObjectPath("/")), "deployment 1: version is of type o"},
		"several booted at once": {[]properties{variants(map[string]any{"booted": true}), variants(map[string]any{"booted": true})}, "2 deployments are booted at once"},
		"several errors at once": {one("staged", "a"), "deployment 1: staged is of type s"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, _, err := decodeDeployments(dbus.MakeVariant(tc.value))
			if err == nil {
				t.Fatalf("decoded as %+v", got)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// fuzzEntries builds dictionaries from the relevant keys and values of any type. Two bytes of shape
// are a key and a value. A key beyond the last one begins another dictionary.
func fuzzEntries(number int64, text string, flag bool, shape []byte) []properties {
	keys := []string{"version", "checksum", "booted", "staged", "finalization-locked", "id"}
	values := []any{
		text, flag, number, int32(number), uint64(number), float64(number), []byte(text),
		[]string{text},
		dbus.MakeVariant(text),
		dbus.MakeVariant(flag),
		struct{ A string }{text},
		properties{"booted": dbus.MakeVariant(flag)},
		dbus.ObjectPath("/"), sum, true,
	}
	entries := []properties{{}}
	for i := 0; i+1 < len(shape); i += 2 {
		key := int(shape[i]) % (len(keys) + 1)
		if key == len(keys) {
			entries = append(entries, properties{})
			continue
		}
		entries[len(entries)-1][keys[key]] = dbus.MakeVariant(values[int(shape[i+1])%len(values)])
	}
	return entries
}

// FuzzDecodeDeployments checks that decoded deployments give a report that fits into the Node, and
// that a need has its fields.
func FuzzDecodeDeployments(f *testing.F) {
	f.Add(int64(1), "40.1", true, []byte{})
	f.Add(int64(1), "40.1", true, []byte{0, 0, 1, 13, 3, 14, 6, 0, 2, 14, 0, 0})
	f.Add(int64(1), "40.1", true, []byte{0, 0, 3, 14, 4, 14, 6, 0, 2, 14})
	f.Add(int64(1), "\xff\x00", false, []byte{0, 0, 1, 0, 6, 0, 2, 1})
	f.Add(int64(-1), strings.Repeat("9", 100), true, []byte{2, 14, 6, 0, 2, 14})
	f.Add(int64(65), "a b", true, []byte{2, 9, 3, 3, 5, 11})
	f.Fuzz(func(t *testing.T, number int64, text string, flag bool, shape []byte) {
		list, _, err := decodeDeployments(dbus.MakeVariant(fuzzEntries(number, text, flag, shape)))
		if err != nil {
			return
		}
		booted := 0
		for _, d := range list {
			if d.booted {
				booted++
			}
			if d.version != "" && !engine.IsVersion(d.version) || d.checksum != "" && !isChecksum(d.checksum) {
				t.Errorf("decoded %+v", d)
			}
		}
		report := judge(list, "")
		wellFormed(t, report)
		needed := booted == 1 && !list[0].booted && !list[0].locked
		if got := report.State == "Needed"; got != needed {
			t.Errorf("needed is %v of %+v", got, list)
		}
	})
}
