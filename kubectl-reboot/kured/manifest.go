package kured

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// DaemonSets reads a stream of YAML or JSON documents, and returns the DaemonSets in it.
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

// object is the little that every document has.
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
		return nil, errors.New("it is no Kubernetes object")
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
