// Package kured turns DaemonSets of kured into RebootPolicies, and reports what it could not carry over. docs/migrate.md has
// the steps around it.
package kured

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// Convert writes a RebootPolicy as YAML for each kured among the DaemonSets, and a report for people of what became of each
// setting. It returns an error, and no policy at all, where one of them cannot be converted: half a manifest may not be applied.
func Convert(daemonSets []appsv1.DaemonSet) (policies, report string, err error) {
	found, err := findInstallations(daemonSets)
	if err != nil {
		return "", "", err
	}
	var text, reports bytes.Buffer
	names := map[string]bool{}
	for _, k := range found {
		c, err := convert(k)
		if err != nil {
			return "", "", fmt.Errorf("%s: %w", k.where(), err)
		}
		c.policy.Name = onlyName
		if len(found) > 1 {
			c.policy.Name = policyName(k, names)
			c.report.leave("there are several kureds", "a node that two policies select is not rebooted: "+
				"let each node fall under one nodeSelector, or give one policy the higher spec.priority. Control-plane nodes must all fall under the same")
		}
		if err := c.write(&text); err != nil {
			return "", "", err
		}
		c.writeReport(&reports)
	}
	return text.String(), reports.String(), nil
}

// findInstallations finds every kured among the DaemonSets.
func findInstallations(daemonSets []appsv1.DaemonSet) ([]*installation, error) {
	var found []*installation
	var others []string
	for _, daemonSet := range daemonSets {
		k := &installation{daemonSet: daemonSet}
		if k.findContainer() {
			found = append(found, k)
		} else {
			others = append(others, k.where())
		}
	}
	switch {
	case len(daemonSets) == 0:
		return nil, errors.New("there is no DaemonSet; give the rendered manifest, such as of helm template or kubectl kustomize")
	case len(found) == 0:
		return nil, fmt.Errorf("no DaemonSet runs kured; there are %s", strings.Join(others, ", "))
	}
	return found, nil
}
