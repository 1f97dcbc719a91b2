package kured

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// A real API server must accept every policy that the converter writes, without dropping a field.
func TestPoliciesAreAccepted(t *testing.T) {
	env := embedded.StartServerFor(t)
	api, err := testenv.NewClient(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	accept := func(t rapid.TB, policies string) {
		for _, policy := range documentsOf(t, policies) {
			if err := api.Create(ctx, policy, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				t.Fatalf("%v\n%s", err, policies)
			}
		}
	}
	for name, file := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			policies, _ := convertFile(t, file)
			accept(t, policies)
		})
	}
	t.Run("as many selectors as a policy takes, and one more", func(t *testing.T) {
		requirements := func(n int) string { return "--drain-pod-selector=" + strings.TrimSuffix(strings.Repeat("a,", n), ",") }
		blocking := func(n int) []string { return slices.Repeat([]string{"--blocking-pod-selector=a"}, n) }
		c, err := convert(makeInstallation(append(blocking(20), requirements(50))...))
		if err != nil {
			t.Fatal(err)
		}
		c.policy.Name = "most"
		var text bytes.Buffer
		if err := c.write(&text); err != nil {
			t.Fatal(err)
		}
		accept(t, text.String())
		for want, flags := range map[string][]string{"given 21 times; a policy takes 20": blocking(21), "has 51 requirements; a policy takes 50": {requirements(51)}} {
			if _, err := convert(makeInstallation(flags...)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q in it", err, want)
			}
		}
	})
	t.Run("any flags", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			c, err := convert(makeInstallation(rapid.SliceOfN(rapid.Custom(drawFlag), 0, 12).Draw(t, "flags")...))
			if err != nil {
				if text := err.Error(); strings.Contains(text, "\n") || !strings.HasPrefix(text, "--") {
					t.Fatalf("not one sentence about a flag: %v", err)
				}
				t.Skip(err)
			}
			c.kured.daemonSet.Name = rapid.SampledFrom([]string{"kured", "on", "123", "1e3", "null", "a\nspec: {}", ""}).Draw(t, "name")
			c.policy.Name = policyName(c.kured, map[string]bool{})
			var text bytes.Buffer
			if err := c.write(&text); err != nil {
				t.Fatal(err)
			}
			accept(t, text.String())
		})
	})
}

// drawFlag draws a flag with one of its interesting values.
func drawFlag(t *rapid.T) string {
	durations := []string{"0", "-1s", "1ns", "1.5s", "90s", "1h1ms", "167h59m59.5s", "168h", "300h"}
	selectors := []string{"", "a=b", "a=b,a=c", "a in (b,c),!d,e,f!=g", "x.y/z notin (1)", "a,b,c,d,e,f,g,h", "a=", "=b", "a>1"}
	values := map[string][]string{
		"concurrency": {"-1", "0", "1", "50", "1001", "5000000000"}, "lock-release-delay": durations, "drain-timeout": durations,
		"drain-grace-period": {"-5", "0", "1", "604801"}, "drain-pod-selector": selectors, "blocking-pod-selector": selectors,
		"force-reboot": {"true", "false"}, "prometheus-url": {"", "http://p", "https://p:9090/x?y=z", "p:9090", "http://" + strings.Repeat("p", 2050)},
		"alert-filter-regexp":     {"", "^A$", `a"b\.c`, "ünï\tcode", strings.Repeat("A|", 2100), "("},
		"alert-filter-match-only": {"true", "false"}, "alert-firing-only": {"true", "false"},
		"start-time": {"0:00", "9am", "22:00", "23:59", "23:59:59", "12:00:01"}, "end-time": {"0:00", "6:00", "5pm", "23:59", "23:59:59", "12:00:01"},
		"reboot-days": {"", "mon", "sa,su", "0,1,2,3,4,5,6"}, "time-zone": {"", "UTC", "Local", "Europe/Berlin", "Etc/GMT+12", "EST5EDT", "posix/UTC", "no/where"},
	}
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(values))).Draw(t, "flag")
	return "--" + name + "=" + rapid.SampledFrom(values[name]).Draw(t, "value")
}

func documentsOf(t rapid.TB, text string) []client.Object {
	var documents []client.Object
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		var o unstructured.Unstructured
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			if len(documents) == 0 {
				t.Fatalf("nothing was written")
			}
			return documents
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		documents = append(documents, &o)
	}
}
