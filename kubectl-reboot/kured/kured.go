// Package kured converts DaemonSets of kured to RebootPolicies, and reports what it could not
// convert. docs/migrate.md describes the whole migration.
package kured

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Convert returns a RebootPolicy in YAML for each kured among the DaemonSets, and a report of what
// became of each setting. If one of them cannot be converted it returns no policies at all, so that
// nobody applies half of them.
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
		return nil, errors.New("found no DaemonSet; pass the rendered manifest, such as the output of helm template or kubectl kustomize")
	case len(found) == 0:
		return nil, fmt.Errorf("no DaemonSet runs kured; there are %s", strings.Join(others, ", "))
	}
	return found, nil
}

// DaemonSets returns the DaemonSets in a stream of YAML or JSON documents.
func DaemonSets(manifest []byte) ([]appsv1.DaemonSet, error) {
	var found []appsv1.DaemonSet
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for n := 1; ; n++ {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err == nil {
			found, err = appendDaemonSets(found, raw)
		}
		if err != nil {
			return nil, fmt.Errorf("reading document %d of the input: %w", n, err)
		}
	}
}

// object holds the fields that every document has.
type object struct {
	Kind  string            `json:"kind"`
	Items []json.RawMessage `json:"items"`
}

func appendDaemonSets(found []appsv1.DaemonSet, raw json.RawMessage) ([]appsv1.DaemonSet, error) {
	if len(raw) == 0 || bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return found, nil
	}
	var o object
	err := json.Unmarshal(raw, &o)
	if err != nil {
		return nil, errors.New("it is not a Kubernetes object")
	}
	for _, item := range o.Items {
		if found, err = appendDaemonSets(found, item); err != nil {
			return nil, err
		}
	}
	if o.Kind != "DaemonSet" {
		return found, nil
	}
	var daemonSet appsv1.DaemonSet
	if err := json.Unmarshal(raw, &daemonSet); err != nil {
		return nil, fmt.Errorf("reading a DaemonSet: %w", err)
	}
	return append(found, daemonSet), nil
}
