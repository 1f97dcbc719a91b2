package v1alpha1_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// fields counts how often each path of a spec was seen, such as windows[].start.
type fields map[string]int

// add counts a path and all paths within its value.
func (f fields) add(path string, value any) {
	f[path]++
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			f.add(strings.TrimPrefix(path+"."+name, "."), inner)
		}
	case []any:
		for _, inner := range value {
			f.add(path+"[]", inner)
		}
	}
}

var index = regexp.MustCompile(`\[\d+\]`)

// addCauses counts the fields that the API server refuses, according to its error.
func (f fields) addCauses(err error) {
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Details == nil {
		return
	}
	for _, cause := range status.ErrStatus.Details.Causes {
		f[strings.TrimPrefix(index.ReplaceAllString(cause.Field, "[]"), "spec.")]++
	}
}

// has reports whether the field, or a field within it, was seen.
func (f fields) has(path string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(f)), func(name string) bool {
		return name == path || strings.HasPrefix(name, path+".") || strings.HasPrefix(name, path+"[")
	})
}

// without returns the fields of the schema that were not seen.
func (f fields) without(schema fields) []string {
	var missing []string
	for path := range schema {
		if !f.has(path) {
			missing = append(missing, path)
		}
	}
	slices.Sort(missing)
	return missing
}

// specFields returns the fields of the CRD's spec that hold a value. A selector counts as one value,
// and so does a list of strings.
func specFields() fields {
	GinkgoHelper()
	found := fields{}
	crdSchema().Properties["spec"].walk("", found)
	return found
}

// crdSchema returns the schema of a RebootPolicy in the CRD.
func crdSchema() schema {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "crd", "bases", "reboot-operator.io_rebootpolicies.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	Expect(yaml.Unmarshal(text, &crd)).To(Succeed())
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

type schema struct {
	Description string            `json:"description"`
	Enum        []string          `json:"enum"`
	Required    []string          `json:"required"`
	Properties  map[string]schema `json:"properties"`
	Items       *schema           `json:"items"`
	Validations []struct {
		Rule    string `json:"rule"`
		Message string `json:"message"`
	} `json:"x-kubernetes-validations"`
}

// eachField calls check for a field and all fields within it, except those that Kubernetes describes.
func eachField(path string, s schema, check func(path string, s schema)) {
	check(path, s)
	if s.Items != nil {
		eachField(path+"[]", *s.Items, check)
	}
	for name, inner := range s.Properties {
		if !slices.Contains([]string{".apiVersion", ".kind", ".metadata", ".status.conditions"}, path+"."+name) {
			eachField(path+"."+name, inner, check)
		}
	}
}

func (s schema) walk(path string, found fields) {
	_, selector := s.Properties["matchLabels"]
	switch {
	case s.Items != nil && len(s.Items.Properties) > 0:
		s.Items.walk(path+"[]", found)
	case len(s.Properties) == 0 || selector:
		found[path]++
	default:
		for name, inner := range s.Properties {
			inner.walk(strings.TrimPrefix(path+"."+name, "."), found)
		}
	}
}

var _ = Describe("What kubectl explain shows", func() {
	// wholeLine matches a line that ends with a sentence or introduces a list.
	wholeLine := regexp.MustCompile(`^$|[.:]$`)

	It("breaks no line within a sentence", func() {
		eachField("", crdSchema(), func(path string, s schema) {
			for line := range strings.SplitSeq(s.Description, "\n") {
				Expect(line).To(MatchRegexp(wholeLine.String()), path)
			}
		})
	})

	It("has at most three sentences for a field of the spec, and one example", func() {
		aside := regexp.MustCompile(`(?m)^(- |Example: ).*$`) // the values of the field, and the example
		eachField(".spec", crdSchema().Properties["spec"], func(path string, s schema) {
			prose := aside.ReplaceAllString(s.Description, "")
			Expect(len(regexp.MustCompile(`\.(\s|$)`).FindAllString(prose, -1))).To(BeNumerically("<=", 3), "%s: %s", path, s.Description)
			Expect(strings.Count(s.Description, "Example: ")).To(BeNumerically("<=", 1), path)
		})
	})

	It("says what the absence of each field of the spec means", func() {
		eachField(".spec", crdSchema().Properties["spec"], func(path string, s schema) {
			if _, selector := s.Properties["matchLabels"]; selector { // Kubernetes describes its fields
				return
			}
			for name, inner := range s.Properties {
				if !slices.Contains(s.Required, name) && !strings.Contains(path, ".matchExpressions") {
					Expect(inner.Description).To(MatchRegexp(`\nDefaults to |\nIf (the list|\w+) is absent`), path+"."+name)
				}
			}
		})
	})

	It("gives an example of each field of the spec that holds a value", func() {
		eachField(".spec", crdSchema().Properties["spec"], func(path string, s schema) {
			_, selector := s.Properties["matchLabels"]
			if section := len(s.Properties) > 0 && !selector; !section && !strings.HasSuffix(path, "[]") {
				Expect(s.Description).To(MatchRegexp(`For example|Example: |such as `), path)
			}
		})
	})

	It("has at most 25 words in a sentence", func() {
		eachField("", crdSchema(), func(path string, s schema) {
			for _, sentence := range regexp.MustCompile(`[.:]\s+`).Split(s.Description, -1) {
				Expect(len(strings.Fields(sentence))).To(BeNumerically("<=", 25), "%s: %s", path, sentence)
			}
		})
	})

	It("states the defaults that the accessors apply", func() {
		var spec v1alpha1.RebootPolicySpec
		limit, drain, reboot := spec.MaxUnavailableOrDefault(), spec.DrainOrDefault(), spec.RebootOrDefault()
		first := v1alpha1.FirstBatch{}.NodesOrDefault()
		for path, want := range map[string]any{
			"mode": spec.ModeOrDefault(), "concurrency.maxUnavailable": limit.String(), "concurrency.firstBatch.nodes": first.String(), "concurrency.pendingTaint": spec.PendingTaintOrDefault(), "reboot.settle": reboot.SettleOrDefault(), "maxFailures": spec.MaxFailuresOrDefault(),
			"drain.timeout": drain.TimeoutOrDefault(), "drain.onTimeout": drain.OnTimeoutOrDefault(), "drain.loadBalancers": drain.LoadBalancersOrDefault(), "drain.emptyDirData": drain.EmptyDirDataOrDefault(),
			"drain.unmanagedPods": drain.UnmanagedPodsOrDefault(), "drain.closedBudgets": drain.ClosedBudgetsOrDefault(), "drain.volumeDetachTimeout": drain.VolumeDetachTimeoutOrDefault(),
			"drain.rules.action": v1alpha1.DrainRule{}.ActionOrDefault(), "reboot.timeout": reboot.TimeoutOrDefault(),
			"reboot.inhibitors": reboot.InhibitorsOrDefault(), "reboot.coordinators": reboot.CoordinatorsOrDefault(),
			"reboot.sessions": reboot.SessionsOrDefault(), "nodeConditions.status": v1alpha1.NodeConditionNeed{}.StatusOrDefault(),
			"hooks.timeout": spec.HooksOrDefault().TimeoutOrDefault(), "autoscaler.grace": spec.AutoscalerGraceOrDefault(),
			"windows.timeZone": v1alpha1.Window{}.TimeZoneOrDefault(), "blackouts.timeZone": v1alpha1.Blackout{}.TimeZoneOrDefault(),
			"gates.prometheus.failurePolicy": v1alpha1.PrometheusGate{}.FailurePolicyOrDefault(),
		} {
			of := crdSchema().Properties["spec"]
			for name := range strings.SplitSeq(path, ".") {
				if of.Items != nil {
					of = *of.Items
				}
				of = of.Properties[name]
			}
			stated := regexp.MustCompile(`(?m)^Defaults to (\w+)`).FindStringSubmatch(of.Description)
			Expect(stated).NotTo(BeNil(), path)
			if duration, err := time.ParseDuration(stated[1]); err == nil {
				Expect(duration).To(Equal(want), path)
				continue
			}
			Expect(stated[1]).To(Equal(fmt.Sprint(want)), path)
		}
	})

	It("lists the values of a field, and what each does or means", func() {
		eachField("", crdSchema(), func(path string, s schema) {
			values, format := s.Enum, "\n- %s: "
			switch {
			case strings.HasSuffix(path, "[]"): // the list names them
				return
			case path == ".spec.windows[].days":
				values, format = s.Items.Enum, "%s"
			case s.Items != nil:
				values = s.Items.Enum
			}
			for _, value := range values {
				Expect(s.Description).To(ContainSubstring(format, value), path)
			}
		})
	})
})
