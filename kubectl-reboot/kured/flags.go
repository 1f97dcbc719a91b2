package kured

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// kuredFlags holds kured's flags as kured sees them after its start, from its command line and its
// environment.
type kuredFlags struct {
	set *pflag.FlagSet
	// given lists the flags that were set, each once, in order of their first appearance.
	given []given
	// stray lists what kured does not know or ignores, with the reason.
	stray []line

	concurrency      int
	lockReleaseDelay time.Duration
	lockAnnotation   string

	days             []string
	start, end, zone string

	drainTimeout, drainDelay time.Duration
	drainGracePeriod         int
	drainPodSelector         string
	forceReboot              bool

	blockingPods      []string
	prometheus        string
	alerts            *regexp.Regexp // nil if not set
	matchOnly, firing bool
	sentinel          string
	sentinelCommand   string
	rebootCommand     string
	rebootMethod      string
	rebootSignal      int
}

// signalReboot is SIGRTMIN+5, which makes systemd reboot.
const signalReboot = 34 + 5

// defaultSentinel is the file by which Debian and others request a reboot.
const defaultSentinel = "/var/run/reboot-required"

// newKuredFlags returns the flags of kured 1.23 with their defaults. They include all flags since
// 1.15.
func newKuredFlags() *kuredFlags {
	f := &kuredFlags{set: pflag.NewFlagSet(program, pflag.ContinueOnError)}
	f.defineTyped()
	f.set.StringSlice("pre-reboot-node-labels", nil, "")
	f.set.StringSlice("post-reboot-node-labels", nil, "")
	f.set.Bool("annotate-nodes", false, "")
	f.set.Duration("period", time.Hour, "")
	f.set.Duration("lock-ttl", 0, "")
	f.set.Duration("reboot-delay", 0, "")
	f.set.Int("skip-wait-for-delete-timeout", 0, "")
	f.set.Int("metrics-port", 8080, "")
	for name, preset := range map[string]string{
		"ds-namespace": "kube-system", "ds-name": "kured", nodeID: "", "metrics-host": "", "log-format": "text",
		"notify-url": "", "slack-hook-url": "", "slack-username": "kured", "slack-channel": "",
		"message-template-drain": "Draining node %s", "message-template-reboot": "Rebooting node %s",
		"message-template-uncordon": "Node %s rebooted & uncordoned successfully!",
		"prefer-no-schedule-taint":  "",
	} {
		f.set.String(name, preset, "")
	}
	return f
}

// defineTyped defines the flags whose values are evaluated.
func (f *kuredFlags) defineTyped() {
	s := f.set
	s.IntVar(&f.concurrency, "concurrency", 1, "")
	s.DurationVar(&f.lockReleaseDelay, "lock-release-delay", 0, "")
	s.StringVar(&f.lockAnnotation, "lock-annotation", "weave.works/kured-node-lock", "")
	s.StringSliceVar(&f.days, "reboot-days", strings.Split("su,mo,tu,we,th,fr,sa", ","), "")
	s.StringVar(&f.start, "start-time", "0:00", "")
	s.StringVar(&f.end, "end-time", "23:59:59", "")
	s.StringVar(&f.zone, "time-zone", "UTC", "")
	s.DurationVar(&f.drainTimeout, "drain-timeout", 0, "")
	s.DurationVar(&f.drainDelay, "drain-delay", 0, "")
	s.IntVar(&f.drainGracePeriod, "drain-grace-period", -1, "")
	s.StringVar(&f.drainPodSelector, "drain-pod-selector", "", "")
	s.BoolVar(&f.forceReboot, "force-reboot", false, "")
	s.StringArrayVar(&f.blockingPods, "blocking-pod-selector", nil, "")
	s.StringVar(&f.prometheus, "prometheus-url", "", "")
	s.Func("alert-filter-regexp", "", func(value string) (err error) {
		f.alerts, err = regexp.Compile(value)
		return err
	})
	s.BoolVar(&f.matchOnly, "alert-filter-match-only", false, "")
	s.BoolVar(&f.firing, "alert-firing-only", false, "")
	s.StringVar(&f.sentinel, "reboot-sentinel", defaultSentinel, "")
	s.StringVar(&f.sentinelCommand, "reboot-sentinel-command", "", "")
	s.StringVar(&f.rebootCommand, "reboot-command", "/bin/systemctl reboot", "")
	s.StringVar(&f.rebootMethod, "reboot-method", "command", "")
	s.IntVar(&f.rebootSignal, "reboot-signal", signalReboot, "")
}

// carryElsewhere reports flags whose values do not affect the policy.
func carryElsewhere(c *conversion) error {
	for _, f := range elsewhere {
		if f.open {
			c.unconverted(f.name, f.how)
		} else {
			c.unneeded(f.name, f.how)
		}
	}
	return nil
}

const (
	notifies = "spec.notify notifies services of each node, with events Rebooting and Back. Put the address, in the form of shoutrrr, into key url of a Secret, " +
		"and name it there; docs/howto/notifications.md shows how"
	labelled = "your labels are not set. Conditions RebootPermitted and MaintenanceInProgress of the node report the same; with hooks the node is labelled " +
		"reboot-operator.io/before-reboot=true, later after-reboot=true, and your hook may label it"
	served = "the manager serves metrics at --metrics-bind-address, :8443 with TLS, the agents at :8080; kured_reboot_required is reboot_operator_nodes{state=\"reboot_required\"}"
)

var elsewhere = []struct {
	name, how string
	open      bool
}{
	{name: "period", how: "no polling: the agent notices when its host needs a reboot, and the manager acts when a window opens"},
	{name: nodeID, how: "the agent has its node's name from the pod's spec"},
	{name: "annotate-nodes", how: "conditions RebootRequired and MaintenanceInProgress of the node report it with its time; adapt programs that read kured's annotations"},
	{name: "metrics-host", how: served},
	{name: "metrics-port", how: served},
	{name: "log-format", how: "--log-format of the manager and the agent is the same; json is the default"},
	{name: "prefer-no-schedule-taint", open: true, how: "nodes that wait for nothing but their turn get taint reboot-operator.io/reboot-pending by themselves. Take kured's taint off the nodes: kubectl taint node --all NAME-"},
	{name: "pre-reboot-node-labels", open: true, how: labelled},
	{name: "post-reboot-node-labels", open: true, how: labelled},
	{name: "notify-url", open: true, how: notifies},
	{name: "slack-hook-url", open: true, how: notifies},
	{name: "slack-username", open: true, how: notifies},
	{name: "slack-channel", open: true, how: notifies},
	{name: "message-template-drain", open: true, how: notifies},
	{name: "message-template-reboot", open: true, how: notifies},
	{name: "message-template-uncordon", open: true, how: notifies},
}

// given is a flag that was set.
type given struct {
	name string
	// texts holds its settings as written: --period=1h, or KURED_PERIOD=1h. A list may have
	// several.
	texts []string
	// hidden says why the value is unknown, or is empty.
	hidden string
}

// parse parses the arguments like kured: --flag=value, --flag value, and a boolean without a value.
func (f *kuredFlags) parse(args []string) error {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			f.arguments(args)
			return nil
		}
		if !strings.HasPrefix(arg, "-") {
			f.arguments([]string{arg})
			continue
		}
		rest, err := f.parseFlag(arg, args)
		if err != nil {
			return err
		}
		args = rest
	}
	return nil
}

// parseFlag parses one flag, and takes its value from the remaining arguments if necessary.
func (f *kuredFlags) parseFlag(arg string, rest []string) ([]string, error) {
	name, value, hasValue := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	known := f.set.Lookup(name)
	switch {
	case known == nil:
		return f.unknown(arg, hasValue, rest), nil
	case hasValue:
	case known.NoOptDefVal != "": // a boolean
		value = known.NoOptDefVal
	case len(rest) == 0:
		return nil, fmt.Errorf("--%s has no value, and kured does not start without one", name)
	default:
		value, rest = rest[0], rest[1:]
	}
	return rest, f.assign(known, "--"+name, value)
}

func (f *kuredFlags) arguments(args []string) {
	for _, arg := range args {
		f.stray = append(f.stray, line{subject: strconv.Quote(arg), how: "an argument, which kured ignores: was it meant for a flag?"})
	}
}

// unknown records an unknown flag. It takes the next argument for its value unless that is a flag.
func (f *kuredFlags) unknown(arg string, hasValue bool, rest []string) []string {
	if !hasValue && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		arg += " " + rest[0]
		rest = rest[1:]
	}
	f.stray = append(f.stray, line{subject: arg, how: "not a flag of kured that this program knows: look up what it does in your version"})
	return rest
}

// assign sets a flag, or returns an error that says that kured would not start with this value.
func (f *kuredFlags) assign(known *pflag.Flag, by, value string) error {
	if err := known.Value.Set(value); err != nil {
		return fmt.Errorf("%s is %q, with which kured does not start: %w", by, value, err)
	}
	if secrets[known.Name] {
		value = "(not shown)"
	}
	f.note(given{name: known.Name, texts: []string{by + "=" + value}})
	return nil
}

// note keeps the last setting of a flag, or all settings of a list.
func (f *kuredFlags) note(g given) {
	before := f.find(g.name)
	if before == nil {
		f.given = append(f.given, g)
		return
	}
	if _, ok := f.set.Lookup(g.name).Value.(pflag.SliceValue); ok {
		g.texts = slices.Concat(before.texts, g.texts)
	}
	*before = g
}

// find returns a flag that was set, or nil.
func (f *kuredFlags) find(name string) *given {
	for i := range f.given {
		if f.given[i].name == name {
			return &f.given[i]
		}
	}
	return nil
}

const environmentPrefix = "KURED_"

// takeEnvironment sets flags from KURED_ variables. Up to 1.16.1 a flag on the command line
// overrides its variable. Since 1.16.2 the variable overrides the flag, or adds to it if it is a
// list.
func (f *kuredFlags) takeEnvironment(k *installation) error {
	v := k.variables()
	variableWins := !k.olderThan("1.16.2")
	names := map[string]bool{}
	var err error
	f.set.VisitAll(func(known *pflag.Flag) {
		variable := environmentPrefix + strings.ToUpper(strings.ReplaceAll(known.Name, "-", "_"))
		names[variable] = true
		if err == nil && (variableWins || f.find(known.Name) == nil) {
			err = f.takeVariable(known, variable, v, variableWins)
		}
	})
	for _, name := range slices.Sorted(maps.Keys(v.values)) {
		if strings.HasPrefix(name, environmentPrefix) && !names[name] {
			f.stray = append(f.stray, line{subject: name, how: "not a variable of kured that this program knows: look up what it does in your version"})
		}
	}
	for _, source := range v.sources {
		f.stray = append(f.stray, line{
			subject: "envFrom " + source,
			how:     "it may set KURED_ variables, which the manifest does not have: look into it yourself, and put what is set into env",
		})
	}
	return err
}

func (f *kuredFlags) takeVariable(known *pflag.Flag, variable string, v variables, wins bool) error {
	if hidden, found := v.hidden[variable]; found {
		f.note(given{name: known.Name, texts: []string{variable}, hidden: hidden})
		return nil
	}
	value, found := v.values[variable]
	if !found {
		return nil
	}
	if known.Name == "blocking-pod-selector" && wins {
		f.stray = append(f.stray, line{subject: variable, how: "kured has ignored it since 1.16.2, so nothing is carried over; the policy's field is gates.blockingPods"})
		return nil
	}
	return f.assign(known, variable, value)
}
