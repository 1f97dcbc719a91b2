package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/reboot-operator/reboot-operator/agent/engine/rpmostree"
	"github.com/reboot-operator/reboot-operator/agent/engine/sentinel"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

// Values of --identity.
const (
	// identityNode makes the agent act as the node, by constrained impersonation (Kubernetes 1.36
	// and later).
	identityNode = "node"
	// identityServiceAccount makes it act as the ServiceAccount, which then needs permissions for
	// Nodes and pods.
	identityServiceAccount = "serviceaccount"
)

// options are the checked flags and environment variables.
type options struct {
	node                string
	self                types.NamespacedName
	engines             string
	requireEngineSender bool
	drive               bool
	drivePeriod         time.Duration
	driveTimeout        time.Duration
	bus                 string
	hostRoot            string
	sentinelFiles       []string // defaults to those of the engine
	bootIDFile          string
	identity            string
	probes              string
	metrics             string
	printVersion        bool // print the version and exit
	log                 lifecycle.Log
}

// parse reads the command line and the environment. It returns flag.ErrHelp after writing the
// requested usage.
func parse(args []string, env func(string) string, usage io.Writer) (options, error) {
	o := options{self: types.NamespacedName{Namespace: env("POD_NAMESPACE"), Name: env("POD_NAME")}}
	flags := o.flags(env)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(usage)
			flags.PrintDefaults()
		}
		return options{}, err
	}
	if o.printVersion {
		return o, nil
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, o.check()
}

func (o *options) flags(env func(string) string) *flag.FlagSet {
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // so that an error is one line without the usage
	flags.StringVar(&o.node, "node-name", env("NODE_NAME"), "Name of this host's Node (default $NODE_NAME).")
	flags.StringVar(&o.engines, "engines", enginesAuto, "Update engines to read, a comma-separated list of "+strings.Join(engineNames, ", ")+" and auto: every engine found on the host except kernel, also later.")
	flags.BoolVar(&o.requireEngineSender, "require-engine-sender", false, "Ignore StatusUpdate signals that the update engine did not send, such as the usual test signal.")
	flags.BoolVar(&o.drive, "rpm-ostree-drive", false, "Make rpm-ostree look for upgrades and stage them, unless the host's AutomaticUpdatePolicy does.")
	flags.DurationVar(&o.drivePeriod, "rpm-ostree-drive-period", rpmostree.DefaultPeriod, "How often to look for an upgrade; up to a tenth is added at random.")
	flags.DurationVar(&o.driveTimeout, "rpm-ostree-drive-timeout", rpmostree.DefaultLimit, "How long an upgrade may take before it is cancelled.")
	flags.StringVar(&o.bus, "dbus-address", cmp.Or(env("DBUS_SYSTEM_BUS_ADDRESS"), "unix:path=/run/dbus/system_bus_socket"), "D-Bus address of the host's system bus.")
	flags.StringVar(&o.hostRoot, "host-root", "/", "Path at which the host's file system is mounted.")
	flags.Func("sentinel-file", "File of the host that asks for a reboot while it exists, below --host-root; may be given several times (default "+strings.Join(sentinel.Defaults, " and ")+").", o.addSentinelFile)
	flags.StringVar(&o.bootIDFile, "boot-id-file", "/proc/sys/kernel/random/boot_id", "File with the host's boot ID.")
	flags.StringVar(&o.identity, "identity", identityNode, "Identity for writes to the Node and its pods: node (constrained impersonation) or serviceaccount (its own rights).")
	flags.StringVar(&o.probes, "health-probe-bind-address", ":8081", "Address at which /healthz and /readyz are served; 0 turns them off.")
	flags.StringVar(&o.metrics, "metrics-bind-address", "0", "Address at which metrics are served, in plain HTTP; 0 turns them off.")
	flags.BoolVar(&o.printVersion, "version", false, "Print the version and exit.")
	config.RegisterFlags(flags)
	o.log.Bind(flags)
	return flags
}

func (o *options) addSentinelFile(path string) error {
	if strings.HasPrefix(path, "/var/run/") { // a link to /run, which would lead out of --host-root
		path = strings.TrimPrefix(path, "/var")
	}
	switch {
	case !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/":
		return fmt.Errorf("%q is not an absolute path of a file", path)
	case slices.Contains(o.sentinelFiles, path):
		return fmt.Errorf("%s is named twice", path)
	}
	o.sentinelFiles = append(o.sentinelFiles, path)
	return nil
}

// check returns an error of one sentence if the options are invalid.
func (o *options) check() error {
	if o.node == "" {
		return errors.New("--node-name is needed if NODE_NAME is not set: it names the Node of this host")
	}
	if problems := validation.IsDNS1123Subdomain(o.node); len(problems) > 0 {
		return fmt.Errorf("--node-name %q cannot be the name of a Node: %s", o.node, problems[0])
	}
	if o.identity != identityNode && o.identity != identityServiceAccount {
		return fmt.Errorf("--identity %q is neither %s nor %s", o.identity, identityNode, identityServiceAccount)
	}
	if _, err := host.SocketOf(o.bus, "/"); err != nil {
		return fmt.Errorf("--dbus-address %q is not a D-Bus address such as unix:path=/run/dbus/system_bus_socket: %w", o.bus, err)
	}
	for name, path := range map[string]string{"--host-root": o.hostRoot, "--boot-id-file": o.bootIDFile} {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("%s %q is not an absolute path", name, path)
		}
	}
	if err := o.checkEngines(); err != nil {
		return err
	}
	if len(o.sentinelFiles) > 0 && !slices.Contains(o.engineList(), sentinel.Name) {
		return fmt.Errorf("--sentinel-file needs %s or auto in --engines: without it nothing looks for the file", sentinel.Name)
	}
	return o.checkDrive()
}

func (o *options) checkEngines() error {
	named := map[string]bool{}
	for name := range strings.SplitSeq(o.engines, ",") {
		switch {
		case name != enginesAuto && !slices.Contains(engineNames, name):
			return fmt.Errorf("--engines: unknown engine %q; the engines are auto, %s", name, strings.Join(engineNames, ", "))
		case named[name]:
			return fmt.Errorf("--engines: %s is named twice", name)
		}
		named[name] = true
	}
	return nil
}

func (o *options) checkDrive() error {
	switch {
	case o.drivePeriod <= 0:
		return fmt.Errorf("--rpm-ostree-drive-period %s is not above zero", o.drivePeriod)
	case o.driveTimeout <= 0:
		return fmt.Errorf("--rpm-ostree-drive-timeout %s is not above zero", o.driveTimeout)
	case o.drive && !slices.Contains(o.engineList(), rpmostree.Name):
		return fmt.Errorf("--rpm-ostree-drive needs %s or auto in --engines: without it nothing detects what is staged", rpmostree.Name)
	}
	return nil
}
