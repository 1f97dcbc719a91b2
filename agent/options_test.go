package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
)

func TestParse(t *testing.T) {
	defaults := func(change func(*options)) options {
		o := options{
			node: "n1", engines: "auto", bus: "unix:path=/run/dbus/system_bus_socket", hostRoot: "/",
			bootIDFile: "/proc/sys/kernel/random/boot_id", identity: "node", probes: ":8081", metrics: "0",
			drivePeriod: time.Hour, driveTimeout: time.Hour,
		}
		change(&o)
		return o
	}
	cases := map[string]struct {
		args []string
		env  map[string]string
		want options
	}{
		"only the name of the node": {[]string{"--node-name=n1"}, nil, defaults(func(*options) {})},
		"the pod's environment": {
			nil,
			map[string]string{"NODE_NAME": "n1", "POD_NAME": "p", "POD_NAMESPACE": "s", "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/b"},
			defaults(func(o *options) { o.bus, o.self = "unix:path=/b", types.NamespacedName{Namespace: "s", Name: "p"} }),
		},
		"a flag wins over the environment": {
			[]string{"--node-name", "n1", "--dbus-address", "unix:path=/c"},
			map[string]string{"NODE_NAME": "n2", "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/b"},
			defaults(func(o *options) { o.bus = "unix:path=/c" }),
		},
		"everything": {
			[]string{
				"--node-name=n1", "--engines=update-engine,sentinel", "--require-engine-sender", "--host-root=/host", "--boot-id-file=/b",
				"--sentinel-file=/var/run/a", "--sentinel-file=/var/lib/b", "--rpm-ostree-drive-period=2h", "--rpm-ostree-drive-timeout=30m",
				"--identity=serviceaccount", "--health-probe-bind-address=0", "--metrics-bind-address=:9", "--log-level=debug",
			},
			nil,
			defaults(func(o *options) {
				o.engines, o.requireEngineSender, o.hostRoot, o.bootIDFile = "update-engine,sentinel", true, "/host", "/b"
				o.identity, o.probes, o.metrics = "serviceaccount", "0", ":9"
				o.drivePeriod, o.driveTimeout = 2*time.Hour, 30*time.Minute
				o.sentinelFiles = []string{"/run/a", "/var/lib/b"}
			}),
		},
		"--rpm-ostree-drive with auto": {
			[]string{"--node-name=n1", "--rpm-ostree-drive"}, nil, defaults(func(o *options) { o.drive = true }),
		},
		"--rpm-ostree-drive with the engine named": {
			[]string{"--node-name=n1", "--rpm-ostree-drive", "--engines=sentinel,rpm-ostree"},
			nil,
			defaults(func(o *options) { o.drive, o.engines = true, "sentinel,rpm-ostree" }),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parse(tc.args, func(key string) string { return tc.env[key] }, &bytes.Buffer{})
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(options{}), cmpopts.IgnoreFields(options{}, "log")); diff != "" {
				t.Errorf("parse (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEngineList(t *testing.T) {
	type engines struct{ Run, Named []string }
	cases := map[string]engines{
		"auto":                            {Run: []string{"update-engine", "cos-update-engine", "rpm-ostree", "bootc", "sentinel"}},
		"auto,kernel":                     {Run: engineNames, Named: []string{"kernel"}},
		"sentinel,auto":                   {Run: []string{"update-engine", "cos-update-engine", "rpm-ostree", "bootc", "sentinel"}, Named: []string{"sentinel"}},
		"kernel,sentinel":                 {Run: []string{"sentinel", "kernel"}, Named: []string{"sentinel", "kernel"}},
		"update-engine":                   {Run: []string{"update-engine"}, Named: []string{"update-engine"}},
		strings.Join(engineNames, ","):    {Run: engineNames, Named: engineNames},
		"cos-update-engine,update-engine": {Run: []string{"update-engine", "cos-update-engine"}, Named: []string{"update-engine", "cos-update-engine"}},
	}
	for flag, want := range cases {
		t.Run(flag, func(t *testing.T) {
			o, err := parse([]string{"--node-name=n1", "--engines=" + flag}, func(string) string { return "" }, &bytes.Buffer{})
			if err != nil {
				t.Fatal(err)
			}
			got := engines{Run: o.engineList()}
			for _, name := range got.Run {
				if o.isNamed(name) {
					got.Named = append(got.Named, name)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("engines (-want +got):\n%s", diff)
			}
		})
	}
}

// An engine that --engines does not name may be absent. --sentinel-file declares that engine
// sentinel is on the host.
func TestMayBeAbsent(t *testing.T) {
	for args, want := range map[string]bool{
		"":                                      true,
		"--sentinel-file=/run/a":                false,
		"--sentinel-file=/run/a --engines=auto": false,
		"--engines=sentinel":                    false,
		"--engines=auto,kernel":                 true,
	} {
		o, err := parse(append([]string{"--node-name=n1"}, strings.Fields(args)...), func(string) string { return "" }, &bytes.Buffer{})
		if err != nil {
			t.Fatal(err)
		}
		if got := o.mayBeAbsent("sentinel"); got != want {
			t.Errorf("%q: sentinel may be absent: %v, want %v", args, got, want)
		}
	}
}

// TestRun_BadFlags shows that invalid flags give one clear line and the exit code for usage errors.
func TestRun_BadFlags(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"no node":                                 {nil, "--node-name is needed if NODE_NAME is not set: it names the Node of this host"},
		"an invalid name of a node":               {[]string{"--node-name=N_1"}, `--node-name "N_1" cannot be the name of a Node: a lowercase RFC 1123 subdomain`},
		"an unknown flag":                         {[]string{"--bogus"}, "flag provided but not defined: -bogus"},
		"a flag without value":                    {[]string{"--node-name"}, "flag needs an argument: -node-name"},
		"an argument":                             {[]string{"--node-name=n1", "now"}, `unexpected argument "now"`},
		"an unknown identity":                     {[]string{"--node-name=n1", "--identity=me"}, `--identity "me" is neither node nor serviceaccount`},
		"an invalid bus address":                  {[]string{"--node-name=n1", "--dbus-address=/run/x"}, `--dbus-address "/run/x" is not a D-Bus address`},
		"no transport":                            {[]string{"--node-name=n1", "--dbus-address=:x"}, `--dbus-address ":x" is not a D-Bus address`},
		"a relative root":                         {[]string{"--node-name=n1", "--host-root=host"}, `--host-root "host" is not an absolute path`},
		"a relative boot ID":                      {[]string{"--node-name=n1", "--boot-id-file=b"}, `--boot-id-file "b" is not an absolute path`},
		"an unknown engine":                       {[]string{"--node-name=n1", "--engines=apt"}, `--engines: unknown engine "apt"; the engines are auto, update-engine, cos-update-engine, rpm-ostree, bootc, sentinel, kernel`},
		"no engine":                               {[]string{"--node-name=n1", "--engines="}, `--engines: unknown engine ""; the engines are auto, update-engine, cos-update-engine, rpm-ostree, bootc, sentinel, kernel`},
		"an engine twice":                         {[]string{"--node-name=n1", "--engines=sentinel,sentinel"}, "--engines: sentinel is named twice"},
		"auto twice":                              {[]string{"--node-name=n1", "--engines=auto,kernel,auto"}, "--engines: auto is named twice"},
		"an invalid path of a file":               {[]string{"--node-name=n1", "--sentinel-file=/"}, `invalid value "/" for flag -sentinel-file: "/" is not an absolute path of a file`},
		"a file twice":                            {[]string{"--node-name=n1", "--sentinel-file=/run/a", "--sentinel-file=/run/a"}, `invalid value "/run/a" for flag -sentinel-file: /run/a is named twice`},
		"a file twice, by its link":               {[]string{"--node-name=n1", "--sentinel-file=/run/a", "--sentinel-file=/var/run/a"}, `invalid value "/var/run/a" for flag -sentinel-file: /run/a is named twice`},
		"a sentinel file without engine sentinel": {[]string{"--node-name=n1", "--sentinel-file=/run/a", "--engines=update-engine,rpm-ostree"}, "--sentinel-file needs sentinel or auto in --engines"},
		"no period":                               {[]string{"--node-name=n1", "--rpm-ostree-drive-period=0s"}, "--rpm-ostree-drive-period 0s is not above zero"},
		"no time":                                 {[]string{"--node-name=n1", "--rpm-ostree-drive-timeout=-1h"}, "--rpm-ostree-drive-timeout -1h0m0s is not above zero"},
		"--rpm-ostree-drive without the engine":   {[]string{"--node-name=n1", "--rpm-ostree-drive", "--engines=sentinel"}, "--rpm-ostree-drive needs rpm-ostree or auto in --engines"},
		"a bad log level":                         {[]string{"--node-name=n1", "--log-level=loud"}, `invalid value "loud" for flag -log-level`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			code := run(tc.args, func(string) string { return "" }, io.Discard, &stderr)
			line := stderr.String()
			if code != 2 || !strings.HasPrefix(line, "agent: "+tc.want) || strings.Count(line, "\n") != 1 {
				t.Errorf("exit code %d, stderr %q", code, line)
			}
		})
	}
}

func TestRun_Help(t *testing.T) {
	var stderr bytes.Buffer
	if code := run([]string{"--help"}, func(string) string { return "" }, io.Discard, &stderr); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, name := range []string{"-node-name", "-kubeconfig", "-log-level", "-require-engine-sender"} {
		if !strings.Contains(stderr.String(), name) {
			t.Errorf("the usage does not mention %s", name)
		}
	}
	if _, err := parse([]string{"-h"}, func(string) string { return "" }, &stderr); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("parse: %v", err)
	}
}

// --version needs neither the name of a Node nor a cluster.
func TestRun_Version(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run([]string{"--version"}, func(string) string { return "" }, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
		t.Errorf("exit code %d, stderr %q", code, stderr.String())
	}
	if got := stdout.String(); !strings.HasPrefix(got, "agent dev (go") || strings.Count(got, "\n") != 1 {
		t.Errorf("stdout %q", got)
	}
}
