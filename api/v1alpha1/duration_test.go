package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const day = 24 * time.Hour

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30d": 30 * day, "1d12h": 36 * time.Hour, "0d": 0, "0s": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "1.5h": 90 * time.Minute,
		"720h": 30 * day, "720h0m0s": 30 * day, "1h1h": 2 * time.Hour, "-1h": -time.Hour, "65535d": 65535 * day,
	} {
		if got, err := v1alpha1.ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "d", "30", "1w", "-1d", "1d-2h", "2 days", "1.5d", "1dd", "1D", "12h1d", "65536d", "9999999999d", "99999999999999999999d", "9999999999h", "65535d2500000h",
	} {
		if got, err := v1alpha1.ParseDuration(text); err == nil || err.Error() != fmt.Sprintf("%q is not a duration such as 90s, 6h, 2d or 1d12h", text) {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}

func TestDuration_IsWrittenAsEveryVersionReadsIt(t *testing.T) {
	for text, want := range map[string]string{`"30d"`: `"720h0m0s"`, `"720h"`: `"720h0m0s"`, `"0s"`: `"0s"`, `"1d12h"`: `"36h0m0s"`} {
		var d v1alpha1.Duration
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got, err := json.Marshal(d); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{`"1w"`, `""`, `3600`, `null`} {
		if err := json.Unmarshal([]byte(text), new(v1alpha1.Duration)); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}

var _ = Describe("Durations in a spec", func() {
	// specs has each field that is a duration, in a spec that needs nothing else.
	specs := map[string]string{
		"spec.deadline":                    "deadline: %q",
		"spec.maxUptime":                   "maxUptime: %q",
		"spec.autoscaler.grace":            "autoscaler: {grace: %q}",
		"spec.concurrency.spacing":         "concurrency: {spacing: %q}",
		"spec.concurrency.firstBatch.soak": "concurrency: {firstBatch: {soak: %q}}",
		"spec.drain.timeout":               "drain: {timeout: %q}",
		"spec.drain.leadTime":              "drain: {leadTime: %q}",
		"spec.drain.gracePeriod":           "drain: {gracePeriod: %q}",
		"spec.drain.volumeDetachTimeout":   "drain: {volumeDetachTimeout: %q}",
		"spec.drain.rules[].gracePeriod":   "drain: {rules: [{podSelector: {matchLabels: {a: b}}, gracePeriod: %q}]}",
		"spec.hooks.timeout":               "hooks: {timeout: %q}",
		"spec.nodeConditions[].for":        "nodeConditions: [{type: KernelDeadlock, for: %q}]",
		"spec.reboot.timeout":              "reboot: {timeout: %q}",
		"spec.reboot.settle":               "reboot: {settle: %q}",
		"spec.rings[].soak":                "rings: [{name: a, nodeSelector: {}, soak: %q}]",
		"spec.windows[].duration":          `windows: [{name: w, start: "22:00", duration: %q}]`,
	}
	// sentences returns the message with which the CRD refuses each of these fields.
	sentences := func() map[string]string {
		found := map[string]string{}
		eachField("", crdSchema(), func(path string, s schema) {
			for _, v := range s.Validations {
				if strings.Contains(v.Rule, "duration(") {
					found[strings.TrimPrefix(path, ".")] = v.Message
				}
			}
		})
		return found
	}

	It("are all listed here", func() {
		Expect(slices.Sorted(maps.Keys(sentences()))).To(Equal(slices.Sorted(maps.Keys(specs))))
	})

	for _, text := range []string{"1d", "24h", "0d24h", "23h59m60s", "23h59m59s1000ms"} {
		It("may all be "+text, func(ctx SpecContext) {
			Expect(v1alpha1.ParseDuration(text)).To(Equal(day))
			for path, spec := range specs {
				Expect(tryCreate(ctx, "p", fmt.Sprintf(spec, text))).To(Succeed(), path)
			}
		})
	}

	for _, text := range []string{
		"", "d", "30", "1w", "1.5d", "1.5h", "-1h", "-1d", "1d-1h", "1d 12h", "12h1d", "1d1d", "1D", "P1D", "24h0m0.5s",
		"9999d", "9999999999d", "99999999999999999999d", "9999999999h", "99999d99999d", "9999d99999h9999999m999999999s",
	} {
		It(fmt.Sprintf("may not be %q", text), func(ctx SpecContext) {
			for path, sentence := range sentences() {
				err := tryCreate(ctx, "p", fmt.Sprintf(specs[path], text))
				Expect(err).To(And(Satisfy(apierrors.IsInvalid), MatchError(ContainSubstring(sentence))), path)
				Expect(err).NotTo(MatchError(ContainSubstring("evaluating rule")), path)
			}
		})
	}

	DescribeTable("end at the bound", func(ctx SpecContext, path, longest, sentence string) {
		Expect(tryCreate(ctx, "p", fmt.Sprintf(specs[path], longest))).To(Succeed())
		Expect(tryCreate(ctx, "p", fmt.Sprintf(specs[path], longest+"1ms"))).To(MatchError(ContainSubstring(sentence)))
	},
		Entry("of a week", "spec.concurrency.spacing", "6d24h", "spacing must be a duration of at least 1m and at most 7d, such as 10m, 2h or 1d"),
		Entry("of a month", "spec.rings[].soak", "30d", "soak must be a duration of at most 30d, such as 30m or 1d"),
		Entry("of a year", "spec.deadline", "365d", "deadline must be a duration of at least 1h and at most 365d, such as 14d"),
		Entry("of ten years", "spec.maxUptime", "3650d", "maxUptime must be a duration of at least 24h and at most 3650d, such as 30d"),
	)

	It("are listed with days and without", func(ctx SpecContext) {
		for name, maxUptime := range map[string]string{"with-days": "30d", "without-days": "720h"} {
			policy := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"maxUptime": maxUptime}}}
			policy.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RebootPolicy"))
			policy.SetName(name)
			Expect(admin.Create(ctx, policy)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, policy)).To(Succeed()) })
		}
		var policies v1alpha1.RebootPolicyList
		Expect(admin.List(ctx, &policies)).To(Succeed())
		read := map[string]time.Duration{}
		for _, p := range policies.Items {
			if p.Spec.MaxUptime != nil {
				read[p.Name] = p.Spec.MaxUptime.Duration
			}
		}
		Expect(read).To(Equal(map[string]time.Duration{"with-days": 30 * day, "without-days": 30 * day}))
	})
})
