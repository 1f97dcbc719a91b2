package kured

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// conversion converts one kured to a policy. Each step reads flags, sets its part of the policy,
// and reports what became of each flag.
type conversion struct {
	kured  *installation
	flags  *kuredFlags
	policy v1alpha1.RebootPolicy
	// comments maps fields of the spec to the comments above them.
	comments map[string][]string
	report   outcomes
	reported map[string]bool
}

// convert returns a policy that does what the kured does, as far as a policy can.
func convert(k *installation) (*conversion, error) {
	if k.scripted {
		return nil, errors.New("a shell script starts kured, and scripts cannot be converted: copy the manifest, put kured and its flags into command, and convert the copy")
	}
	flags := newKuredFlags()
	if err := flags.parse(k.args); err != nil {
		return nil, err
	}
	if err := flags.takeEnvironment(k); err != nil {
		return nil, err
	}
	c := &conversion{kured: k, flags: flags, comments: map[string][]string{}, reported: map[string]bool{}}
	// The policy grants nothing yet, because kured may still run and two coordinators must not act
	// at once.
	c.policy.Spec.Mode = v1alpha1.ModeDryRun
	c.comments["mode"] = []string{"Only decides and reports. Set Enforce once kured is removed and the last part of the report is settled."}
	for _, step := range []func(*conversion) error{
		nodeSelector, concurrency, schedule, drain, blockingPods, alerts, detect, reboot, carryElsewhere,
	} {
		if err := step(c); err != nil {
			return nil, err
		}
	}
	c.end()
	return c, nil
}

// end reports the settings that no step has reported, so that none is dropped silently.
func (c *conversion) end() {
	for _, g := range c.flags.given {
		if !c.reported[g.name] {
			c.unconverted(g.name, "this program knows the flag but does not convert it")
		}
	}
	for _, g := range c.flags.given {
		if g.hidden != "" && g.name != nodeID {
			c.report.leave(strings.Join(g.texts, " "), "its value comes from "+g.hidden+", which the manifest does not have: "+
				"the policy does not contain it. Put --"+g.name+"=VALUE on the command line and convert again")
		}
	}
	c.report.open = append(c.report.open, c.flags.stray...)
}

// isSet reports whether a flag is set to a known value.
func (c *conversion) isSet(name string) bool {
	g := c.flags.find(name)
	return g != nil && g.hidden == ""
}

// isDefault reports whether a flag has its default value.
func (c *conversion) isDefault(name string) bool {
	f := c.flags.set.Lookup(name)
	return f.Value.String() == f.DefValue
}

// nodeID is a flag that every manifest sets from the pod's spec.
const nodeID = "node-id"

// secrets lists flags whose values may contain credentials.
var secrets = map[string]bool{"notify-url": true, "slack-hook-url": true}

// written formats a flag for the report.
func (c *conversion) written(name string) string {
	if g := c.flags.find(name); g != nil {
		return strings.Join(g.texts, " ")
	}
	return fmt.Sprintf("--%s is not set, which is %s", name, c.flags.set.Lookup(name).DefValue)
}

// carried, unneeded and unconverted report what became of a flag. The last two ignore flags that
// are not set.
func (c *conversion) carried(name, how string) { c.note(&c.report.carried, name, how) }

func (c *conversion) unneeded(name, why string) {
	if c.flags.find(name) != nil {
		c.note(&c.report.unneeded, name, why)
	}
}

func (c *conversion) unconverted(name, why string) {
	if c.isDefault(name) {
		c.unneeded(name, "kured's default, which asks for nothing")
		return
	}
	c.note(&c.report.open, name, why)
}

// note ignores flags whose value is unknown, because end reports them. The exception is nodeID,
// whose value is never in the manifest.
func (c *conversion) note(part *[]line, name, how string) {
	c.reported[name] = true
	if g := c.flags.find(name); g == nil || g.hidden == "" || name == nodeID {
		*part = append(*part, line{c.written(name), how})
	}
}

var notInName = regexp.MustCompile(`[^a-z0-9.-]+`)

// onlyName is the policy's name for the only kured of a cluster. The commands in docs/migrate.md
// use it.
const onlyName = "workers"

// policyName derives a valid policy name from the DaemonSet's name, with its namespace if the name
// is taken.
func policyName(k *installation, taken map[string]bool) string {
	name := cleanName(k.daemonSet.Name)
	if taken[name] {
		name = cleanName(k.daemonSet.Namespace + "-" + k.daemonSet.Name)
	}
	for n := len(taken) + 1; taken[name]; n++ {
		name = fmt.Sprintf("%s-%d", program, n)
	}
	taken[name] = true
	return name
}

func cleanName(name string) string {
	name = notInName.ReplaceAllString(strings.ToLower(name), "-")
	if len(name) > 63 {
		name = name[:63]
	}
	if name = strings.Trim(name, "-."); name == "" {
		return program
	}
	return name
}
