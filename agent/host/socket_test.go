package host

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSocketOf(t *testing.T) {
	cases := map[string]struct{ address, root, want string }{
		"the socket of today":           {"unix:path=/run/rpm-ostree-transaction.sock", "", "/run/rpm-ostree-transaction.sock"},
		"below the host's root":         {"unix:path=/run/rpm-ostree-transaction.sock", "/host", "/host/run/rpm-ostree-transaction.sock"},
		"the root itself":               {"unix:path=/run/a", "/", "/run/a"},
		"with the server's name":        {"unix:path=/run/a,guid=0123456789abcdef0123456789abcdef", "/host", "/host/run/a"},
		"the server's name first":       {"unix:guid=0123456789abcdef0123456789abcdef,path=/run/a", "/host", "/host/run/a"},
		"escaped":                       {"unix:path=/run/a%20b", "/host", "/host/run/a b"},
		"an abstract socket of before":  {"unix:abstract=/tmp/dbus-a,guid=0", "/host", "@/tmp/dbus-a"},
		"no way out of the host's root": {"unix:path=/../../etc/a", "/host", "/host/etc/a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := SocketOf(tc.address, tc.root)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("socket (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSocketOf_RefusesWhatIsNoSocketOfThisHost(t *testing.T) {
	cases := map[string]struct{ address, want string }{
		"nothing":               {"", `address "" is no socket of this host`},
		"another host":          {"tcp:host=198.51.100.1,port=1", `address "tcp:host=198.51.100.1,port=1" is no socket of this host`},
		"a program":             {"unixexec:path=/bin/sh", `address "unixexec:path=/bin/sh" is no socket of this host`},
		"a choice":              {"unix:path=/a;tcp:host=b", `address "unix:path=/a;tcp:host=b" is no socket of this host`},
		"no path":               {"unix:", `address "unix:" names no socket`},
		"an empty path":         {"unix:path=", `address "unix:path=" names no socket`},
		"a relative path":       {"unix:path=a", `address "unix:path=a" names no socket`},
		"a folder to listen in": {"unix:tmpdir=/tmp", `address "unix:tmpdir=/tmp" names no socket`},
		"a bad escape":          {"unix:path=/a%zz", `address "unix:path=/a%zz" cannot be read`},
		"the end of a C string": {"unix:path=/a%00b", `address "unix:path=/a%00b" cannot be read`},
		"without end":           {strings.Repeat("x", 1<<20), `address "` + strings.Repeat("x", 128) + `" is no socket of this host`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := SocketOf(tc.address, "/host")
			if err == nil {
				t.Fatalf("found %q", got)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzSocketOf checks that a socket is below the root, or abstract.
func FuzzSocketOf(f *testing.F) {
	f.Add("unix:path=/run/rpm-ostree-transaction.sock")
	f.Add("unix:abstract=a,guid=b")
	f.Add("unix:path=/../..")
	f.Add("unix:path=%2f%2e%2e")
	f.Add("tcp:host=a;unix:path=/b")
	f.Fuzz(func(t *testing.T, address string) {
		socket, err := SocketOf(address, "/host")
		if err != nil {
			return
		}
		if !strings.HasPrefix(address, "unix:") || strings.ContainsRune(socket, 0) {
			t.Errorf("%q is %q", address, socket)
		}
		if !strings.HasPrefix(socket, "@") && socket != "/host" && !strings.HasPrefix(socket, "/host/") {
			t.Errorf("%q leaves the root: %q", address, socket)
		}
	})
}
