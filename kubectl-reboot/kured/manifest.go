package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// installation is one kured: its DaemonSet, the container in it that is kured, and the ConfigMaps that came along.
type installation struct {
	daemonSet  appsv1.DaemonSet
	container  corev1.Container
	words      []string // the command line after the program, variables filled in
	shell      bool     // the command line stood in a shell script
	configMaps map[string]corev1.ConfigMap
}

// where names the DaemonSet, in one line whatever the manifest calls it.
func (k *installation) where() string {
	name := k.daemonSet.Name
	if k.daemonSet.Namespace != "" {
		name = k.daemonSet.Namespace + "/" + name
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

// object is the little that every document has.
type object struct {
	Kind  string            `json:"kind"`
	Items []json.RawMessage `json:"items"`
}

// documents are what a manifest holds that matters here.
type documents struct {
	daemonSets []appsv1.DaemonSet
	configMaps map[string]corev1.ConfigMap // by namespace/name
}

// findInstallations reads a stream of YAML or JSON documents and finds every kured in it.
func findInstallations(manifest []byte) ([]*installation, error) {
	docs, err := readDocuments(manifest)
	if err != nil {
		return nil, err
	}
	if len(docs.daemonSets) == 0 {
		return nil, errors.New("there is no DaemonSet in the input; give the rendered manifest, such as " +
			"of kubectl -n kube-system get daemonset kured -o yaml, helm template or kubectl kustomize")
	}
	var found []*installation
	var others []string
	for _, daemonSet := range docs.daemonSets {
		k := &installation{daemonSet: daemonSet, configMaps: docs.configMaps}
		if k.findContainer() {
			found = append(found, k)
		} else {
			others = append(others, k.where())
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no DaemonSet in the input runs kured; there are %s", strings.Join(others, ", "))
	}
	return found, nil
}

func readDocuments(manifest []byte) (documents, error) {
	docs := documents{configMaps: map[string]corev1.ConfigMap{}}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for n := 1; ; n++ {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err == nil {
			err = docs.add(raw)
		}
		if err != nil {
			return docs, fmt.Errorf("reading document %d of the input: %w", n, err)
		}
	}
}

func (d *documents) add(raw json.RawMessage) error {
	if len(raw) == 0 || bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return nil
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		return errors.New("it is no Kubernetes object")
	}
	for _, item := range o.Items {
		if err := d.add(item); err != nil {
			return err
		}
	}
	switch o.Kind {
	case "DaemonSet":
		return d.addDaemonSet(raw)
	case "ConfigMap":
		return d.addConfigMap(raw)
	}
	return nil
}

func (d *documents) addDaemonSet(raw json.RawMessage) error {
	var daemonSet appsv1.DaemonSet
	if err := json.Unmarshal(raw, &daemonSet); err != nil {
		return fmt.Errorf("reading a DaemonSet: %w", err)
	}
	d.daemonSets = append(d.daemonSets, daemonSet)
	return nil
}

func (d *documents) addConfigMap(raw json.RawMessage) error {
	var configMap corev1.ConfigMap
	if err := json.Unmarshal(raw, &configMap); err != nil {
		return fmt.Errorf("reading a ConfigMap: %w", err)
	}
	d.configMaps[configMap.Namespace+"/"+configMap.Name] = configMap
	return nil
}
