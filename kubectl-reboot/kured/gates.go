package kured

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const (
	mostBlockingPods = 20   // of gates.blockingPods
	mostLabels       = 32   // of a selector
	mostExpressions  = 8    // of a selector
	mostValues       = 64   // of an expression
	longestQuery     = 4096 // of gates.prometheus[].query
	longestURL       = 2048 // of gates.prometheus[].url
)

// blockingPods converts the selectors of blocking pods. Each of them blocks independently.
func blockingPods(c *conversion) error {
	selectors := c.flags.blockingPods
	if len(selectors) > mostBlockingPods {
		return fmt.Errorf("--blocking-pod-selector is given %d times; a policy takes %d: join some, such as app in (a, b)", len(selectors), mostBlockingPods)
	}
	for _, text := range selectors {
		selector, err := labelSelector(text)
		switch {
		case err != nil:
			return fmt.Errorf("--blocking-pod-selector %q: %w", text, err)
		case len(selector.MatchLabels)+len(selector.MatchExpressions) == 0:
			c.policy.Spec.Pause = &v1alpha1.Pause{Reason: "kured was blocked by every pod: a --blocking-pod-selector was empty"}
			c.carried("blocking-pod-selector", "pause: one that is empty selects every pod, and kured's own is on every node")
			continue
		}
		gatesOf(c).BlockingPods = append(gatesOf(c).BlockingPods, v1alpha1.BlockingPod{PodSelector: selector})
	}
	if c.flags.find("blocking-pod-selector") != nil && !c.reported["blocking-pod-selector"] {
		c.carried("blocking-pod-selector", "gates.blockingPods")
	}
	return nil
}

func gatesOf(c *conversion) *v1alpha1.Gates {
	if c.policy.Spec.Gates == nil {
		c.policy.Spec.Gates = &v1alpha1.Gates{}
	}
	return c.policy.Spec.Gates
}

// labelSelector converts a selector. It keeps both requirements if a key occurs twice.
func labelSelector(text string) (v1alpha1.LabelSelector, error) {
	selector := v1alpha1.LabelSelector{MatchLabels: map[string]string{}}
	requirements, err := labels.ParseToRequirements(text)
	if err != nil {
		return selector, fmt.Errorf("it is not a label selector, so kured is blocked forever: %w", err)
	}
	for _, r := range requirements {
		if _, twice := selector.MatchLabels[r.Key()]; r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals {
			if !twice {
				selector.MatchLabels[r.Key()] = r.ValuesUnsorted()[0]
				continue
			}
		}
		expression, err := requirement(r)
		if err != nil {
			return selector, err
		}
		selector.MatchExpressions = append(selector.MatchExpressions, expression)
	}
	return selector, fits(selector)
}

// fits returns the reason the API server would refuse a selector, or nil.
func fits(s v1alpha1.LabelSelector) error {
	if n := len(s.MatchLabels); n > mostLabels {
		return fmt.Errorf("it has %d labels; a policy takes %d", n, mostLabels)
	}
	if n := len(s.MatchExpressions); n > mostExpressions {
		return fmt.Errorf("it has %d expressions; a policy takes %d", n, mostExpressions)
	}
	for _, e := range s.MatchExpressions {
		if n := len(e.Values); n > mostValues {
			return fmt.Errorf("it has %d values of %s; a policy takes %d", n, e.Key, mostValues)
		}
	}
	return nil
}

// operators maps the operators that a policy's selector supports. It does not support numeric
// comparisons.
var operators = map[selection.Operator]metav1.LabelSelectorOperator{
	selection.Equals: metav1.LabelSelectorOpIn, selection.DoubleEquals: metav1.LabelSelectorOpIn, selection.In: metav1.LabelSelectorOpIn,
	selection.NotEquals: metav1.LabelSelectorOpNotIn, selection.NotIn: metav1.LabelSelectorOpNotIn,
	selection.Exists: metav1.LabelSelectorOpExists, selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
}

func requirement(r labels.Requirement) (v1alpha1.LabelSelectorRequirement, error) {
	operator, found := operators[r.Operator()]
	if !found {
		return v1alpha1.LabelSelectorRequirement{}, fmt.Errorf("a policy cannot compare numbers: %s", r.String())
	}
	return v1alpha1.LabelSelectorRequirement{Key: r.Key(), Operator: operator, Values: r.ValuesUnsorted()}, nil
}

// alerts converts the alert filters. kured queries ALERTS and filters the names itself. The query
// of a policy does both.
func alerts(c *conversion) error {
	filters := []string{"alert-filter-regexp", "alert-filter-match-only", "alert-firing-only"}
	if c.flags.prometheus == "" {
		for _, name := range append(filters, "prometheus-url") {
			c.unneeded(name, "kured only looks at alerts with --prometheus-url")
		}
		return nil
	}
	query := alertQuery(c.flags.alerts, c.flags.matchOnly, c.flags.firing)
	switch {
	case strings.Contains(c.flags.prometheus, "@"):
		return errors.New("--prometheus-url contains a name or a password, which a policy may not: remove them and convert again, and put them into " +
			"a Secret for secretRef of the gate")
	case strings.ContainsAny(c.flags.prometheus, "?#"):
		return errors.New("--prometheus-url has a ? or #, which the address of a server must not have: remove it and convert again")
	case !regexp.MustCompile(`^https?://[^/]+`).MatchString(c.flags.prometheus) || len(c.flags.prometheus) > longestURL:
		return fmt.Errorf("--prometheus-url %q must begin with http:// or https:// and name a host; it blocks kured forever", c.flags.prometheus)
	case len(query) > longestQuery:
		return fmt.Errorf("--alert-filter-regexp has %d characters; shorten it, a policy takes queries of %d", len(c.flags.alerts.String()), longestQuery)
	}
	gatesOf(c).Prometheus = []v1alpha1.PrometheusGate{{Name: "alerts", URL: c.flags.prometheus, Query: query}}
	c.carried("prometheus-url", "gates.prometheus: any result of "+query+" blocks, and so does a server that does not answer")
	for _, name := range filters {
		if c.flags.find(name) != nil {
			c.carried(name, "part of the query")
		}
	}
	return nil
}

// alertQuery returns a query for the alerts that block. A regular expression in Prometheus must
// match the whole name, and in kured any part of it.
func alertQuery(names *regexp.Regexp, matchOnly, firing bool) string {
	query := ""
	if names != nil {
		operator := "!~"
		if matchOnly {
			operator = "=~"
		}
		query = "alertname" + operator + strconv.Quote(".*(?:"+names.String()+").*")
	}
	if firing {
		if query != "" {
			query += ","
		}
		query += `alertstate="firing"`
	}
	if query == "" {
		return "ALERTS"
	}
	return "ALERTS{" + query + "}"
}
