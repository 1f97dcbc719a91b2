package kured

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// conversion makes a policy of a kured. Each step reads flags, writes its part of the policy, and reports what became of each
// flag.
type conversion struct {
	kured  *installation
	flags  *kuredFlags
	policy v1alpha1.RebootPolicy
	// comments stand above the fields of the spec, by their names.
	comments map[string][]string
	report   outcomes
	reported map[string]bool
}

// convert makes a policy that does what the kured does, as far as a policy can.
func convert(k *installation) (*conversion, error) {
	if k.scripted {
		return nil, errors.New("a shell script starts kured, and scripts are not read: in a copy of the manifest, put kured and its flags into command, and convert that")
	}
	flags := newKuredFlags()
	if err := flags.parse(k.args); err != nil {
		return nil, err
	}
	if err := flags.takeEnvironment(k); err != nil {
		return nil, err
	}
	c := &conversion{kured: k, flags: flags, comments: map[string][]string{}, reported: map[string]bool{}}
	// It grants nothing yet, because kured may still run and two coordinators must not act at once.
	c.policy.Spec.Mode = v1alpha1.ModeDryRun
	c.comments["mode"] = []string{"Decides and reports, reboots nothing. Enforce, once kured is gone and the report's last part is settled."}
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

// end reports what no step has reported, so that no setting is dropped without a report.
func (c *conversion) end() {
	for _, g := range c.flags.given {
		if !c.reported[g.name] {
			c.unconverted(g.name, "this program knows the flag and does nothing with it")
		}
	}
	for _, g := range c.flags.given {
		if g.hidden != "" && g.name != nodeID {
			c.report.leave(strings.Join(g.texts, " "), "its value comes from "+g.hidden+", which the manifest does not have: "+
				"the policy is made without it. Put --"+g.name+"=VALUE on the command line and convert again")
		}
	}
	c.report.open = append(c.report.open, c.flags.stray...)
}

// isSet reports whether a flag was set, to a value that is known.
func (c *conversion) isSet(name string) bool {
	g := c.flags.find(name)
	return g != nil && g.hidden == ""
}

// isDefault reports whether a flag has the value it has when it is not set.
func (c *conversion) isDefault(name string) bool {
	f := c.flags.set.Lookup(name)
	return f.Value.String() == f.DefValue
}

// nodeID is the flag that every manifest sets from the pod's spec.
const nodeID = "node-id"

// secrets are flags whose values may hold credentials.
var secrets = map[string]bool{"notify-url": true, "slack-hook-url": true}

// written is a flag as the report quotes it.
func (c *conversion) written(name string) string {
	if g := c.flags.find(name); g != nil {
		return strings.Join(g.texts, " ")
	}
	return fmt.Sprintf("--%s is not set, which is %s", name, c.flags.set.Lookup(name).DefValue)
}

// carried, unneeded and unconverted report what became of a flag. The last two do not report a flag that is not set.
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

// note does not report a flag whose value is not known: end does. The exception is nodeID, whose value is never in the manifest.
func (c *conversion) note(part *[]line, name, how string) {
	c.reported[name] = true
	if g := c.flags.find(name); g == nil || g.hidden == "" || name == nodeID {
		*part = append(*part, line{c.written(name), how})
	}
}

var notInName = regexp.MustCompile(`[^a-z0-9.-]+`)

// onlyName is the name of the policy of a cluster's only kured, which the commands of docs/migrate.md use.
const onlyName = "workers"

// policyName is the DaemonSet's, shortened to what a policy may have, with its namespace where the name is taken.
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
