package kured

import (
	"encoding/csv"
	"errors"
	"flag"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// kuredFlags are kured's flags as kured itself would have them after its start.
type kuredFlags struct {
	set *flag.FlagSet

	concurrency      int
	lockReleaseDelay time.Duration
	lockAnnotation   string

	days             list
	start, end, zone string

	drainTimeout, drainDelay, rebootDelay time.Duration
	drainGracePeriod                      int
	drainPodSelector                      string
	forceReboot                           bool

	blockingPods       list
	prometheus         string
	alerts             pattern
	matchOnly, firing  bool
	sentinel           string
	sentinelCommand    string
	rebootCommand      string
	rebootMethod       string
	rebootSignal       int
	skipWaitForDeleted int
}

// signalReboot is SIGRTMIN+5, by which systemd is asked to reboot.
const signalReboot = 34 + 5

// defaultSentinel is where Debian and others report that they want a reboot.
const defaultSentinel = "/var/run/reboot-required"

// newKuredFlags are the flags of kured 1.23 with their defaults. Those of 1.15 and later are among them.
func newKuredFlags() *kuredFlags {
	f := &kuredFlags{set: flag.NewFlagSet(program, flag.ContinueOnError)}
	f.days = list{values: strings.Split("su,mo,tu,we,th,fr,sa", ","), commas: true}
	f.defineTyped()
	f.set.Var(&list{commas: true}, "pre-reboot-node-labels", "")
	f.set.Var(&list{commas: true}, "post-reboot-node-labels", "")
	f.set.Bool("annotate-nodes", false, "")
	f.set.Duration("period", time.Hour, "")
	f.set.Duration("lock-ttl", 0, "")
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

// defineTyped defines the flags whose values are looked at.
func (f *kuredFlags) defineTyped() {
	s := f.set
	s.IntVar(&f.concurrency, "concurrency", 1, "")
	s.DurationVar(&f.lockReleaseDelay, "lock-release-delay", 0, "")
	s.StringVar(&f.lockAnnotation, "lock-annotation", "weave.works/kured-node-lock", "")
	s.Var(&f.days, "reboot-days", "")
	s.StringVar(&f.start, "start-time", "0:00", "")
	s.StringVar(&f.end, "end-time", "23:59:59", "")
	s.StringVar(&f.zone, "time-zone", "UTC", "")
	s.DurationVar(&f.drainTimeout, "drain-timeout", 0, "")
	s.DurationVar(&f.drainDelay, "drain-delay", 0, "")
	s.DurationVar(&f.rebootDelay, "reboot-delay", 0, "")
	s.IntVar(&f.drainGracePeriod, "drain-grace-period", -1, "")
	s.StringVar(&f.drainPodSelector, "drain-pod-selector", "", "")
	s.BoolVar(&f.forceReboot, "force-reboot", false, "")
	s.IntVar(&f.skipWaitForDeleted, "skip-wait-for-delete-timeout", 0, "")
	s.Var(&f.blockingPods, "blocking-pod-selector", "")
	s.StringVar(&f.prometheus, "prometheus-url", "", "")
	s.Var(&f.alerts, "alert-filter-regexp", "")
	s.BoolVar(&f.matchOnly, "alert-filter-match-only", false, "")
	s.BoolVar(&f.firing, "alert-firing-only", false, "")
	s.StringVar(&f.sentinel, "reboot-sentinel", defaultSentinel, "")
	s.StringVar(&f.sentinelCommand, "reboot-sentinel-command", "", "")
	s.StringVar(&f.rebootCommand, "reboot-command", "/bin/systemctl reboot", "")
	s.StringVar(&f.rebootMethod, "reboot-method", "command", "")
	s.IntVar(&f.rebootSignal, "reboot-signal", signalReboot, "")
}

// list is a flag that may be given several times. The first time replaces the default, the next ones add.
type list struct {
	values  []string
	commas  bool // each value is a line of comma-separated ones
	changed bool
}

// String is the values, separated by commas.
func (l *list) String() string { return strings.Join(l.values, ",") }

// Set adds one value, or a line of them.
func (l *list) Set(value string) error {
	values := []string{value}
	if l.commas {
		line, err := csv.NewReader(strings.NewReader(value)).Read()
		if err != nil && !errors.Is(err, io.EOF) { // an empty line has no value
			return err
		}
		values = line
	}
	if !l.changed {
		l.values, l.changed = nil, true
	}
	l.values = slices.Concat(l.values, values)
	return nil
}

// pattern is a regular expression; nil until it is set.
type pattern struct{ *regexp.Regexp }

// String is the expression as written.
func (p *pattern) String() string {
	if p.Regexp == nil {
		return ""
	}
	return p.Regexp.String()
}

// Set compiles the expression.
func (p *pattern) Set(value string) (err error) {
	p.Regexp, err = regexp.Compile(value)
	return err
}
