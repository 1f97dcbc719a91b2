package prometheus_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/hack/fleet"
)

const namespace = "reboot-operator-system"

// monitor holds the used parts of a ServiceMonitor or a PodMonitor.
type monitor struct {
	APIVersion, Kind string
	Metadata         metav1.ObjectMeta
	Spec             struct {
		Selector            metav1.LabelSelector
		Endpoints           []endpoint
		PodMetricsEndpoints []endpoint
	}
}

type endpoint struct {
	Port, Scheme, Path, BearerTokenFile string
	TLSConfig                           struct{ InsecureSkipVerify bool }
	Relabelings, MetricRelabelings      []relabeling
}

type relabeling struct {
	SourceLabels                            []string
	TargetLabel, Regex, Replacement, Action string
}

// job is a scrape_config.
type job struct {
	Name              string            `json:"job_name"`
	Scheme            string            `json:"scheme,omitempty"`
	Path              string            `json:"metrics_path,omitempty"`
	Authorization     map[string]string `json:"authorization,omitempty"`
	TLS               map[string]bool   `json:"tls_config,omitempty"`
	Discovery         []map[string]any  `json:"http_sd_configs"`
	Relabelings       []map[string]any  `json:"relabel_configs,omitempty"`
	MetricRelabelings []map[string]any  `json:"metric_relabel_configs,omitempty"`
}

// jobOf converts a monitor with one endpoint like the Prometheus operator: to a scrape_config, with
// targets from a URL and a token from a file.
func jobOf(m monitor, targets, token string) job {
	e := append(m.Spec.Endpoints, m.Spec.PodMetricsEndpoints...)[0]
	j := job{
		Name: strings.ToLower(m.Kind) + "/" + m.Metadata.Namespace + "/" + m.Metadata.Name + "/0", Scheme: e.Scheme, Path: e.Path,
		Discovery: []map[string]any{{"url": targets, "refresh_interval": "1s"}}, TLS: map[string]bool{"insecure_skip_verify": e.TLSConfig.InsecureSkipVerify},
		Relabelings: relabel(e.Relabelings), MetricRelabelings: relabel(e.MetricRelabelings),
	}
	if e.BearerTokenFile != "" {
		j.Authorization = map[string]string{"credentials_file": token}
	}
	return j
}

func relabel(all []relabeling) (configs []map[string]any) {
	for _, r := range all {
		config := map[string]any{}
		for key, value := range map[string]string{"target_label": r.TargetLabel, "regex": r.Regex, "replacement": r.Replacement, "action": r.Action} {
			if value != "" {
				config[key] = value
			}
		}
		if len(r.SourceLabels) > 0 {
			config["source_labels"] = r.SourceLabels
		}
		configs = append(configs, config)
	}
	return configs
}

// target is one entry of an HTTP service discovery.
type target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// discover serves the pods that a monitor selects as targets, with the labels that the Prometheus
// operator adds.
func discover(t *testing.T, f *fleet.Fleet, m monitor) string {
	t.Helper()
	selects, port := podsOf(t, f, m)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		found := []target{}
		for _, metrics := range fleet.MetricsTargets(f) {
			if !selects.Matches(labels.Set(metrics.Pod.Labels)) || !has(metrics.Pod, port) {
				continue
			}
			found = append(found, target{Targets: []string{metrics.Address}, Labels: map[string]string{
				"namespace": metrics.Pod.Namespace, "pod": metrics.Pod.Name, "container": metrics.Pod.Spec.Containers[0].Name, "endpoint": port,
				"__meta_kubernetes_pod_node_name": metrics.Pod.Spec.NodeName,
			}})
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(found); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// podsOf returns the selector of a monitor's pods and their port. A ServiceMonitor selects them
// through its Service.
func podsOf(t *testing.T, f *fleet.Fleet, m monitor) (labels.Selector, string) {
	t.Helper()
	if m.Kind == "PodMonitor" {
		return labels.SelectorFromSet(m.Spec.Selector.MatchLabels), m.Spec.PodMetricsEndpoints[0].Port
	}
	services, err := f.Cluster.Client().CoreV1().Services(m.Metadata.Namespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: labels.FormatLabels(m.Spec.Selector.MatchLabels),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range services.Items {
		for _, port := range service.Spec.Ports {
			if len(services.Items) == 1 && port.Name == m.Spec.Endpoints[0].Port {
				return labels.SelectorFromSet(service.Spec.Selector), port.TargetPort.String()
			}
		}
	}
	t.Fatalf("%s selects no Service with port %q: %v", m.Kind, m.Spec.Endpoints[0].Port, services.Items)
	return nil, ""
}

func has(pod *corev1.Pod, port string) bool {
	for _, p := range pod.Spec.Containers[0].Ports {
		if p.Name == port {
			return true
		}
	}
	return false
}

// account creates Prometheus' ServiceAccount and returns the file of its token. If bound, it may
// read metrics.
func account(t *testing.T, f *fleet.Fleet, dir, name string, bound bool) string {
	t.Helper()
	client := f.Cluster.Client()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := client.CoreV1().ServiceAccounts(corev1.NamespaceDefault).Create(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}, metav1.CreateOptions{})
	must(err)
	if bound {
		_, err = client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reboot-operator-metrics-reader"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: corev1.NamespaceDefault}},
		}, metav1.CreateOptions{})
		must(err)
	}
	token, err := f.Cluster.Token(t.Context(), corev1.NamespaceDefault, name, nil)
	must(err)
	file := filepath.Join(dir, name+".token")
	must(os.WriteFile(file, []byte(token), 0o600))
	return file
}

// configuration returns a prometheus.yml with the rules and some jobs, which scrapes every second.
func configuration(t *testing.T, jobs ...job) string {
	t.Helper()
	text, err := yaml.Marshal(map[string]any{
		"global":     map[string]string{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{"rules.yaml"}, "scrape_configs": jobs,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
