package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
)

const flatcar = `NAME="Flatcar Container Linux by Kinvolk"
ID=flatcar
ID_LIKE=coreos
VERSION=4081.2.0
VERSION_ID=4081.2.0
BUILD_ID=2024-11-18-1742
PRETTY_NAME="Flatcar Container Linux by Kinvolk 4081.2.0 (Oklo)"
FLATCAR_BOARD="amd64-usr"
`

// newRoot creates files below a temporary folder. A content that begins with "->" is a symbolic
// link.
func newRoot(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if target, isLink := strings.CutPrefix(content, "->"); isLink {
			must(t, os.Symlink(target, path))
			continue
		}
		must(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return root
}

func TestReadOSRelease(t *testing.T) {
	cases := map[string]struct {
		files map[string]string
		want  OSRelease
	}{
		"Flatcar": {
			map[string]string{
				"etc/os-release": "->../usr/lib/os-release", "usr/lib/os-release": flatcar,
				"usr/share/flatcar/update.conf": "SERVER=https://public.update.flatcar-linux.net/v1/update/\nGROUP=stable\n",
			},
			OSRelease{ID: "flatcar", Version: "4081.2.0", Group: "stable"},
		},
		"an administrator's group overrules the system's": {
			map[string]string{
				"usr/lib/os-release":            flatcar,
				"usr/share/flatcar/update.conf": "GROUP=stable\n",
				"etc/flatcar/update.conf":       "REBOOT_STRATEGY=off\nGROUP=beta\n",
			},
			OSRelease{ID: "flatcar", Version: "4081.2.0", Group: "beta"},
		},
		"an administrator's file without a group leaves the system's": {
			map[string]string{
				"usr/lib/os-release":            flatcar,
				"usr/share/flatcar/update.conf": "GROUP=stable\n",
				"etc/flatcar/update.conf":       "REBOOT_STRATEGY=off\n",
			},
			OSRelease{ID: "flatcar", Version: "4081.2.0", Group: "stable"},
		},
		"CoreOS": {
			map[string]string{
				"etc/os-release":               "ID=coreos\nVERSION_ID=1688.5.3\n",
				"usr/share/coreos/update.conf": "GROUP=alpha",
			},
			OSRelease{ID: "coreos", Version: "1688.5.3", Group: "alpha"},
		},
		"/etc comes before /usr/lib": {
			map[string]string{"etc/os-release": "ID=a\nVERSION_ID=1\n", "usr/lib/os-release": "ID=b\nVERSION_ID=2\n"},
			OSRelease{ID: "a", Version: "1"},
		},
		"an absolute link counts from the host's root": {
			map[string]string{"etc/os-release": "->/etc/static/os-release", "etc/static/os-release": "->/nix/os-release", "nix/os-release": "ID=nixos\n"},
			OSRelease{ID: "nixos"},
		},
		"a link cannot leave the host's root": {
			map[string]string{"etc/os-release": "->../../../../../../usr/lib/os-release", "usr/lib/os-release": "ID=inside\n"},
			OSRelease{ID: "inside"},
		},
		"VERSION without VERSION_ID": {
			map[string]string{"etc/os-release": "ID=x\nVERSION='1 (One)'\n"}, OSRelease{ID: "x", Version: "1 (One)"},
		},
		"a rolling release has no version": {
			map[string]string{"etc/os-release": "ID=arch\n"}, OSRelease{ID: "arch"},
		},
		"no ID means linux": {map[string]string{"etc/os-release": ""}, OSRelease{ID: "linux"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ReadOSRelease(newRoot(t, tc.files))
			must(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("os-release (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadOSRelease_OfThisMachine(t *testing.T) {
	release, err := ReadOSRelease("/")
	must(t, err)
	if release.ID == "" {
		t.Errorf("os-release %+v", release)
	}
}

func TestReadOSRelease_FailsWithoutOne(t *testing.T) {
	if _, err := ReadOSRelease(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	endless := newRoot(t, map[string]string{"etc/os-release": "->/etc/os-release"})
	if _, err := ReadOSRelease(endless); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("error %v", err)
	}
}

func TestParseAssignments(t *testing.T) {
	cases := map[string]struct {
		content string
		want    map[string]string
	}{
		"plain":                              {"A=b", map[string]string{"A": "b"}},
		"double quotes (behaviour 53)":       {`A="b c"`, map[string]string{"A": "b c"}},
		"single quotes (behaviour 53)":       {`A='b c'`, map[string]string{"A": "b c"}},
		"escapes in double quotes":           {`A="\$\"\\x\y"`, map[string]string{"A": `$"\x\y`}},
		"no escapes in single quotes":        {`A='\"'`, map[string]string{"A": `\"`}},
		"escapes without quotes":             {`A=b\ c`, map[string]string{"A": "b c"}},
		"a quote without its partner":        {`A="b`, map[string]string{"A": `"b`}},
		"a lone quote":                       {`A="`, map[string]string{"A": `"`}},
		"different quotes":                   {`A="b'`, map[string]string{"A": `"b'`}},
		"empty quotes":                       {`A=""`, map[string]string{"A": ""}},
		"a backslash at the end":             {`A=b\`, map[string]string{"A": `b\`}},
		"the last one wins":                  {"A=b\nA=c\n", map[string]string{"A": "c"}},
		"comments and stray lines":           {"# A=b\n\nstray\n=c\nA B=c\n", map[string]string{}},
		"line ends of another system":        {"A=b\r\nC=d\r\n", map[string]string{"A": "b", "C": "d"}},
		"an equals sign in the value":        {"A=b=c", map[string]string{"A": "b=c"}},
		"white space around the assignment ": {"  A=b  ", map[string]string{"A": "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, parseAssignments(tc.content)); diff != "" {
				t.Errorf("assignments (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLabelValue_Behaviour53(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"a version":   {"4081.2.0", "4081.2.0"},
		"nothing":     {"", ""},
		"a name":      {"22.04.5 LTS (Jammy Jellyfish)", "22.04.5_LTS_Jammy_Jellyfish"},
		"quotes":      {`"4081.2.0"`, "4081.2.0"},
		"a plus sign": {"4081.2.0+2024-11-18", "4081.2.0_2024-11-18"},
		"characters that a label may not end with": {"-._a-._", "a"},
		"nothing is left":                          {"-._ ()", ""},
		"other scripts":                            {"Версия 3", "3"},
		"bytes that are not UTF-8":                 {"a\xffb", "a_b"},
		"exactly 63 bytes":                         {strings.Repeat("a", 63), strings.Repeat("a", 63)},
		"more than 63 bytes":                       {strings.Repeat("a", 64), strings.Repeat("a", 63)},
		"cut at a character that ends":             {strings.Repeat("a", 62) + ".a", strings.Repeat("a", 62)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, LabelValue(tc.text)); diff != "" {
				t.Errorf("label value (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzOSRelease checks that any os-release is read as assignments, and turns their values into
// labels.
func FuzzOSRelease(f *testing.F) {
	f.Add(flatcar)
	f.Add(`VERSION_ID="`)
	f.Add("VERSION_ID='\\'\\\n\xff=")
	f.Add("VERSION_ID=" + strings.Repeat("(9", 100))
	f.Fuzz(func(t *testing.T, content string) {
		for key, value := range parseAssignments(content) {
			if !isName(key) || len(value) > len(content) {
				t.Errorf("assignment %q=%q", key, value)
			}
		}
	})
}

// FuzzLabelValue shows that any text, even invalid UTF-8, becomes a label value that the API server
// accepts.
func FuzzLabelValue(f *testing.F) {
	for _, text := range []string{"", `"4230.2.0"`, "_.-", "\xff\x00a", "Ubuntu 24.04.1 LTS (Noble Numbat)", "ä", "a\u2028b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		label := LabelValue(text)
		if problems := validation.IsValidLabelValue(label); len(problems) > 0 {
			t.Errorf("%q became %q: %v", text, label, problems)
		}
		if again := LabelValue(label); again != label {
			t.Errorf("%q became %q", label, again)
		}
		if len(validation.IsValidLabelValue(text)) == 0 && label != text {
			t.Errorf("%q was fit and became %q", text, label)
		}
	})
}

// FuzzReadBelow shows that a file of the host never leads to a file outside the host's root.
func FuzzReadBelow(f *testing.F) {
	for _, target := range []string{"../usr/lib/os-release", "/usr/lib/os-release", "../../secret", "/../../secret", "os-release", "", "../../root/../secret"} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		top := t.TempDir()
		root := filepath.Join(top, "root")
		for _, dir := range []string{"etc", "usr/lib"} {
			must(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
		}
		must(t, os.WriteFile(filepath.Join(top, "secret"), []byte("secret"), 0o600))
		must(t, os.WriteFile(filepath.Join(root, "usr/lib/os-release"), []byte("ID=x"), 0o600))
		if err := os.Symlink(target, filepath.Join(root, "etc/os-release")); err != nil {
			t.Skip("no target of a symbolic link")
		}
		if content, err := readBelow(root, "/etc/os-release"); err == nil && content != "ID=x" {
			t.Errorf("%q led to %q", target, content)
		}
	})
}
