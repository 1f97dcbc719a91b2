package kernel

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func parse(t *testing.T, text string) release {
	t.Helper()
	r, ok := parseRelease(text)
	if !ok {
		t.Fatalf("%q is not a release", text)
	}
	return r
}

func TestCompareReleases_OrdersTheKernelsOfADistribution(t *testing.T) {
	cases := map[string][]string{
		"Debian": {
			"6.1.0-9-amd64", "6.1.0-10-amd64", "6.1.0-38-amd64", "6.12.9+bpo-amd64", "6.12.43+deb13-amd64", "6.12.43+deb14-amd64",
			"6.12.48+deb13-amd64",
		},
		"Debian's backports, and the next release": {"5.19.0-0.deb11.2-amd64", "6.1.0-0.deb11.7-amd64", "6.1.0-0.deb11.13-amd64", "6.1.0-10-amd64"},
		"Debian's cloud kernel":                    {"6.1.0-9-cloud-amd64", "6.1.0-10-cloud-amd64"},
		"Ubuntu":                                   {"5.15.0-91-generic", "5.15.0-101-generic", "6.5.0-14-generic", "6.11.0-9-generic"},
		"Ubuntu's mainline":                        {"6.7.0-060700rc3-generic", "6.7.0-060700rc12-generic", "6.7.0-060700-generic", "6.7.1-060701-generic"},
		"Fedora": {
			"6.13.9-200.fc41.x86_64", "6.14.0-0.rc3.29.fc42.x86_64", "6.14.0-0.rc10.1.fc42.x86_64", "6.14.0-63.fc42.x86_64",
			"6.14.0-63.fc42.1.x86_64", "6.14.0-63.fc43.x86_64", "6.14.1-1.fc42.x86_64", "6.14.10-1.fc42.x86_64",
		},
		"Red Hat": {
			"4.18.0-513.el8.x86_64", "4.18.0-513.5.1.el8_9.x86_64", "4.18.0-513.18.1.el8_9.x86_64", "5.14.0-362.8.1.el9_3.x86_64",
			"5.14.0-427.el9.x86_64",
		},
		"Red Hat's real-time kernel": {"4.18.0-372.rt7.129.el8.x86_64", "4.18.0-372.rt7.130.el8.x86_64", "4.18.0-372.rt10.1.el8.x86_64"},
		"Oracle":                     {"5.15.0-101.103.2.1.el9uek.x86_64", "5.15.0-200.131.27.el9uek.x86_64"},
		"Amazon":                     {"6.1.61-85.141.amzn2023.x86_64", "6.1.109-118.189.amzn2023.x86_64"},
		"Azure Linux":                {"5.15.137.1-1.cm2", "5.15.153.1-2.cm2", "6.6.51.1-5.azl3"},
		"SUSE":                       {"5.14.21-150500.55.39-default", "6.4.0-150600.23.7-default", "6.4.0-150600.23.25-default"},
		"Arch":                       {"6.6.8-arch1-1", "6.6.8-arch1-2", "6.6.8-arch2-1", "6.7-arch3-1", "6.7.1-arch1-1", "6.10.0-arch1-1"},
		"Flatcar":                    {"6.1.66-flatcar", "6.6.30-flatcar"},
		"COS":                        {"5.15.133+", "6.1.58+"},
		"the kernel's own":           {"6.7-rc1", "6.7-rc8", "6.7-rc10", "6.7", "6.7.1", "6.8-rc1", "6.10-rc1", "6.10", "7.0-rc1"},
	}
	for name, ordered := range cases {
		t.Run(name, func(t *testing.T) {
			for i, older := range ordered {
				for j, newer := range ordered {
					a, b := parse(t, older), parse(t, newer)
					if got := compareReleases(a, b); sign(got) != sign(i-j) {
						t.Errorf("%s compared with %s is %d", older, newer, got)
					}
					if a.flavour != b.flavour {
						t.Errorf("%s is of flavour %q, %s of %q", older, a.flavour, newer, b.flavour)
					}
				}
			}
		})
	}
}

func sign(n int) int { return min(max(n, -1), 1) }

func TestCompareReleases_Equal(t *testing.T) {
	for _, pair := range [][2]string{{"6.7-1", "6.7.0-1"}, {"6.1.0-10-amd64", "6.1.0-010-amd64"}, {"6.1.0_10", "6.1.0-10"}} {
		if got := compareReleases(parse(t, pair[0]), parse(t, pair[1])); got != 0 {
			t.Errorf("%s compared with %s is %d", pair[0], pair[1], got)
		}
	}
}

func TestFlavour(t *testing.T) {
	cases := map[string]string{
		"6.1.0-10-amd64":                   "amd64",
		"6.1.0-10-cloud-amd64":             "cloud-amd64",
		"6.1.0-10-rt-amd64":                "rt-amd64",
		"6.1.0-10-686":                     "",
		"6.1.0-10-686-pae":                 "pae",
		"6.5.0-rc4-amd64":                  "amd64",
		"6.5.0-1010-aws":                   "aws",
		"6.14.0-63.fc42.x86_64":            "x86",
		"6.14.0-63.fc42.x86_64+debug":      "x86-debug",
		"5.14.0-362.8.1.el9_3.aarch64+64k": "aarch64-64k",
		"5.15.0-101.103.2.1.el9uek.x86_64": "uek-x86",
		"6.5.1-1.el9.elrepo.x86_64":        "elrepo-x86",
		"4.18.0-372.rt7.129.el8.x86_64":    "rt-x86",
		"6.6.8-zen1-1-zen":                 "zen-zen",
		"6.1.68-1-lts":                     "lts",
		"6.6.8-talos":                      "talos",
		"6.1.58+":                          "",
		// These are kernels of the same version on a Raspberry Pi. None of them is newer than
		// another.
		"6.1.21+":     "",
		"6.1.21-v7+":  "v7",
		"6.1.21-v7l+": "v7l",
		"6.1.21-v8+":  "v8",
	}
	for text, want := range cases {
		t.Run(text, func(t *testing.T) {
			if got := parse(t, text).flavour; got != want {
				t.Errorf("flavour %q, want %q", got, want)
			}
		})
	}
}

func TestParseRelease_RefusesInvalidReleases(t *testing.T) {
	for _, text := range []string{
		"", "6", "6.", ".6.1", "updates", "extramodules-6.6-ARCH", "0-rescue-3f2a", "6.1.0 10", "6.1.0\n", "6.1/0", "6.1.0-\xff",
		"6.1.0-ä", "..", "6.1.0-" + strings.Repeat("1", 64),
	} {
		if r, ok := parseRelease(text); ok {
			t.Errorf("%q was read as %+v", text, r)
		}
	}
}

func TestCompareReleases_IsAnOrder(t *testing.T) {
	texts := rapid.StringMatching(`[0-9]{1,2}(\.[0-9]{1,2}){1,2}([-.+_](rc[0-9]?|fc[0-9]|el9_1|[0-9]{1,2}|amd64|arch1|x|64k)){0,4}`)
	rapid.Check(t, func(t *rapid.T) {
		var r [3]release
		for i := range r {
			r[i], _ = parseRelease(texts.Draw(t, "release"))
		}
		a, b, c := r[0], r[1], r[2]
		if compareReleases(a, a) != 0 || sign(compareReleases(a, b)) != -sign(compareReleases(b, a)) {
			t.Fatalf("%s and %s: %d, %d", a.text, b.text, compareReleases(a, b), compareReleases(b, a))
		}
		if compareReleases(a, b) <= 0 && compareReleases(b, c) <= 0 && compareReleases(a, c) > 0 {
			t.Fatalf("%s <= %s <= %s, and yet not %s <= %s", a.text, b.text, c.text, a.text, c.text)
		}
	})
}

func FuzzParseRelease(f *testing.F) {
	f.Add("6.1.0-10-cloud-amd64", "6.1.0-9-cloud-amd64")
	f.Add("6.14.0-0.rc3.29.fc42.x86_64", "6.14.0-63.fc42.x86_64")
	f.Add("6.7-rc1", "6.7")
	f.Add("\xff", "6..1")
	f.Fuzz(func(t *testing.T, a, b string) {
		one, ok := parseRelease(a)
		other, ok2 := parseRelease(b)
		if !ok || !ok2 {
			return
		}
		if compareReleases(one, one) != 0 || sign(compareReleases(one, other)) != -sign(compareReleases(other, one)) {
			t.Errorf("%q and %q have no order", a, b)
		}
		r := report(observation{running: one, installed: []release{other}}, nil)
		if r.Message == "" || len(r.Message) > 256 || !utf8.ValidString(r.Message) || one.text != a {
			t.Errorf("%q and %q: message of %d bytes: %q", a, b, len(r.Message), r.Message)
		}
	})
}
