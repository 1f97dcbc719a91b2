package host

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/godbus/dbus/v5"
	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzLabelValue: any text, also one that no decoder has looked at, makes a value that the API server takes.
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

// FuzzReadBelow: wherever a host's file points to, nothing above the host's root is read.
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

// answering is logind's object, which answers every call with the same body.
type answering struct {
	dbus.BusObject
	body []any
}

func (a answering) CallWithContext(context.Context, string, dbus.Flags, ...any) *dbus.Call {
	return &dbus.Call{Body: a.body}
}

// FuzzLogind builds answers of any shape: they are read or refused, and never a reason for a reboot.
func FuzzLogind(f *testing.F) {
	f.Add("shutdown:sleep", "backup", "block", []byte{0})
	f.Add("yes", "challenge", "block", []byte{1})
	f.Add("\xff", "\x00", "block", []byte{2})
	f.Add("shutdown", "", "delay", []byte{3, 4, 5})
	f.Fuzz(func(t *testing.T, what, who, mode string, shape []byte) {
		lock := []any{what, who, "why", mode, uint32(0), uint32(1)}
		// What godbus makes of the types of the wire, which has no nil and no arrays of unequal structures.
		values := []any{
			[][]any{lock},
			what,
			[][]any{lock[:4]},
			[][]any{{uint32(1), who, "why", mode, what, what}},
			[]string{what},
			dbus.MakeVariant(true), dbus.MakeVariant(what), true, lock,
			[]any{},
			[][]any{lock, lock},
			[][]any{},
			[][]any{{}},
			map[string]dbus.Variant{what: dbus.MakeVariant(who)},
			[]dbus.Variant{dbus.MakeVariant(lock)},
			[][]string{{what}},
			[]byte(what), dbus.ObjectPath(what), uint64(1),
			[]map[string]dbus.Variant{{}},
		}
		body := make([]any, 0, len(shape))
		for _, b := range shape {
			body = append(body, values[int(b)%len(values)])
		}
		m := manager{answering{body: body}}
		locks, err := m.blockInhibitors(t.Context())
		for _, lock := range locks {
			if err != nil || mode != "block" && mode != "block-weak" {
				t.Errorf("%#v blocks as %+v, %v", body, lock, err)
			}
		}
		if refusal, err := m.canReboot(t.Context(), respect); err == nil && refusal == nil && (len(body) != 1 || body[0] != "yes") {
			t.Errorf("%#v permits a reboot", body)
		}
		if err := m.alreadyGoingDown(t.Context(), &RefusedError{}); err == nil && len(body) != 1 {
			t.Errorf("%#v goes down", body)
		}
	})
}

// FuzzErrorName: whatever name an error has, what is passed on is a name of D-Bus.
func FuzzErrorName(f *testing.F) {
	for _, name := range []string{"org.freedesktop.DBus.Error.AccessDenied", "", "a b", "\xff", strings.Repeat("a", 256)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := ErrorName(dbus.Error{Name: name})
		if got == "" || len(got) > 255 || strings.ContainsFunc(got, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("%q is reported as %q", name, got)
		}
		if again := ErrorName(dbus.Error{Name: got}); again != got {
			t.Errorf("%q is reported as %q", got, again)
		}
	})
}

// FuzzRefused: whatever error logind answers with, it can be reported.
func FuzzRefused(f *testing.F) {
	f.Add("org.freedesktop.DBus.Error.AccessDenied", "Permission denied", true)
	f.Add("org.freedesktop.DBus.Error.NoReply", "", false)
	f.Add("", "\xff", true)
	f.Fuzz(func(t *testing.T, name, text string, worded bool) {
		answer := dbus.Error{Name: name}
		if worded {
			answer.Body = []any{text}
		}
		if err := refused(answer); err == nil {
			t.Errorf("%#v is no error", answer)
		} else if words := err.Error(); utf8.ValidString(name) && utf8.ValidString(text) && !utf8.ValidString(words) {
			t.Errorf("%#v is reported as %q", answer, words)
		}
	})
}
