package kured

import (
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
)

const (
	longestDrain = 168 * time.Hour // of drain.timeout
	longestLead  = 24 * time.Hour  // of drain.leadTime
	longestGrace = 168 * time.Hour // of drain.gracePeriod
	mostRules    = 50              // of drain.rules
)

// drain converts the drain. kured drains like kubectl drain --force --delete-emptydir-data
// --ignore-daemonsets.
func drain(c *conversion) error {
	d := &v1alpha1.Drain{UnmanagedPods: v1alpha1.PodDisposalDelete}
	c.policy.Spec.Drain = d
	c.report.carry("kured drains by force", "drain.unmanagedPods: Delete. Pods without a controller are deleted for good; Block, the default, keeps them and reports them")
	drainTimeout(c, d)
	if c.flags.forceReboot {
		d.OnTimeout = v1alpha1.DrainTimeoutReboot
		c.carried("force-reboot", "drain.onTimeout: Reboot. A drain that fails, because the API server does not answer or forbids it, is still given up")
	} else {
		c.unneeded("force-reboot", "drain.onTimeout is Abort by default")
	}
	gracePeriod(c, d)
	leadTime(c, d)
	c.unconverted("reboot-delay", "the reboot follows the drain; drain.volumeDetachTimeout waits for volumes, and a rule with action WaitCompleted for pods")
	c.unconverted("skip-wait-for-delete-timeout", "a drain waits for pods until drain.timeout; with drain.onTimeout: Reboot the node is then rebooted anyway; a rule with action Skip does not wait at all")
	return drainSelector(c, d)
}

func drainTimeout(c *conversion, d *v1alpha1.Drain) {
	timeout, how := bounded(c.flags.drainTimeout, longestDrain)
	if timeout <= 0 {
		timeout, how = longestDrain, ", the longest there is. kured waits forever; a shorter time, such as 20m, backs off from a node that cannot be drained and lets the others go first"
	}
	d.Timeout = &v1alpha1.Duration{Duration: timeout}
	c.carried("drain-timeout", fmt.Sprintf("drain.timeout: %s%s", moment.Short(d.Timeout.Duration), how))
}

func leadTime(c *conversion, d *v1alpha1.Drain) {
	lead, longest := bounded(c.flags.drainDelay, longestLead)
	if lead <= 0 {
		c.unneeded("drain-delay", "by default a drain begins at once")
		return
	}
	d.LeadTime = &v1alpha1.Duration{Duration: lead}
	c.carried("drain-delay", fmt.Sprintf("drain.leadTime: %s%s. The node is cordoned during that time", moment.Short(lead), longest))
}

func gracePeriod(c *conversion, d *v1alpha1.Drain) {
	if c.flags.drainGracePeriod < 0 {
		c.unneeded("drain-grace-period", "by default each pod uses its own")
		return
	}
	seconds := min(max(c.flags.drainGracePeriod, 1), math.MaxInt32)
	grace, longest := bounded(time.Duration(seconds)*time.Second, longestGrace)
	d.GracePeriod = &v1alpha1.Duration{Duration: grace}
	c.carried("drain-grace-period", fmt.Sprintf("drain.gracePeriod: %s%s. It is a maximum: pods that request less keep theirs", moment.Short(grace), longest))
}

// drainSelector converts the selector of pods to drain. kured skips pods that miss any requirement,
// so the negation of each requirement becomes a rule with action Skip.
func drainSelector(c *conversion, d *v1alpha1.Drain) error {
	requirements, err := labels.ParseToRequirements(c.flags.drainPodSelector)
	if err != nil {
		return fmt.Errorf("--drain-pod-selector %q is not a label selector, so kured drains nothing: %w", c.flags.drainPodSelector, err)
	}
	if len(requirements) == 0 {
		c.unneeded("drain-pod-selector", "it selects every pod, as the policy does")
		return nil
	}
	for _, r := range requirements {
		turned, err := requirement(r)
		if err != nil {
			return fmt.Errorf("--drain-pod-selector %q: %w", c.flags.drainPodSelector, err)
		}
		turned.Operator = opposite[turned.Operator]
		misses := v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelSelectorRequirement{turned}}
		if err := fits(misses); err != nil {
			return fmt.Errorf("--drain-pod-selector %q: %w", c.flags.drainPodSelector, err)
		}
		d.Rules = append(d.Rules, v1alpha1.DrainRule{PodSelector: misses, Action: v1alpha1.DrainSkip})
	}
	if len(d.Rules) > mostRules {
		return fmt.Errorf("--drain-pod-selector has %d requirements; a policy takes %d rules", len(d.Rules), mostRules)
	}
	c.carried("drain-pod-selector", "drain.rules: pods that miss one of its requirements are skipped, and stay until the reboot ends them")
	return nil
}

var opposite = map[metav1.LabelSelectorOperator]metav1.LabelSelectorOperator{
	metav1.LabelSelectorOpIn: metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpNotIn: metav1.LabelSelectorOpIn,
	metav1.LabelSelectorOpExists: metav1.LabelSelectorOpDoesNotExist, metav1.LabelSelectorOpDoesNotExist: metav1.LabelSelectorOpExists,
}
