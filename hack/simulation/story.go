package simulation

import (
	"fmt"
	"strings"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
)

// line formats a record as one line.
func line(r judge.Change) string {
	stamp := r.At.UTC().Format("2006-01-02 15:04:05.000")
	switch {
	case r.Host != "":
		return fmt.Sprintf("%s host %s %s", stamp, r.Name, r.Host)
	case r.Gone:
		return fmt.Sprintf("%s %s is deleted by %s", stamp, r.Name, r.By)
	case r.Policy != nil:
		return fmt.Sprintf("%s policy %s by %s: %s", stamp, r.Name, r.By, ledger(r.Policy))
	}
	return fmt.Sprintf("%s node %s by %s: %s", stamp, r.Name, r.By, node(r))
}

func ledger(p *v1alpha1.RebootPolicy) string {
	var text strings.Builder
	fmt.Fprintf(&text, "limit %d seq %d", p.Status.Limit, p.Status.Seq)
	for _, e := range p.Status.Grants {
		fmt.Fprintf(&text, " %s#%d", e.Node, e.Seq)
	}
	return text.String()
}

func node(r judge.Change) string {
	var text strings.Builder
	fmt.Fprintf(&text, "boot %s cordoned %t", r.Node.Status.NodeInfo.BootID, r.Node.Spec.Unschedulable)
	for _, c := range r.Node.Status.Conditions {
		fmt.Fprintf(&text, " %s=%s(%s)", c.Type, c.Status, c.Reason)
	}
	for _, record := range []string{v1alpha1.AnnotationGrant, v1alpha1.AnnotationProgress} {
		if value, ok := r.Node.Annotations[record]; ok {
			fmt.Fprintf(&text, " %s %s", record, value)
		}
	}
	return text.String()
}
