package command_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/hack/fleettest"
)

// policyFile writes a manifest with policies that have the given specs.
func policyFile(specs ...string) string {
	GinkgoHelper()
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n")
	for i, spec := range specs {
		text.WriteString("---\napiVersion: reboot-operator.io/v1alpha1\nkind: RebootPolicy\nmetadata: {name: checked-" + string(rune('a'+i)) + "}\nspec: " + spec + "\n")
	}
	path := filepath.Join(GinkgoT().TempDir(), "policy.yaml")
	Expect(os.WriteFile(path, []byte(text.String()), 0o600)).To(Succeed())
	return path
}

var _ = Describe("check", func() {
	DescribeTable("finds what is wrong with a policy before it is applied", func(spec, want string, problem bool) {
		p := newPool(1, paused)
		free := fleettest.Node("checked-n1", "")
		free.Labels = map[string]string{"checked": "yes"}
		Expect(api.Create(context.Background(), &free)).To(Succeed())
		DeferCleanup(func() { Expect(api.Delete(context.Background(), &free)).To(Succeed()) })
		stdout, _, err := run([]string{"check", "-f", policyFile(strings.ReplaceAll(spec, "POOL", p.policy))})
		Expect(stdout).To(ContainSubstring(strings.ReplaceAll(want, "POOL", p.policy)))
		Expect(err != nil).To(Equal(problem))
		Expect(fails("status", "checked-a")).To(HavePrefix("error: policy"), "it writes nothing")
	},
		Entry("nothing", `{nodeSelector: {matchLabels: {checked: "yes"}}}`, "1 policy checked: specs and selectors. Nothing is wrong.\n", false),
		Entry("what the API server refuses", `{nodeSelector: {matchLabels: {checked: "yes"}}, concurrency: {maxUnavailable: 101%}}`, "maxUnavailable", true),
		Entry("a duration that only the API server refuses", `{nodeSelector: {matchLabels: {checked: "yes"}}, reboot: {settle: 1.5h}}`, "settle must be a duration of at most 24h", true),
		Entry("a duration with days", `{nodeSelector: {matchLabels: {checked: "yes"}}, maxUptime: 30d}`, "1 policy checked: specs and selectors. Nothing is wrong.\n", false),
		Entry("a window that never opens", `{nodeSelector: {matchLabels: {checked: "yes"}}, windows: [{name: night, start: "22:00", duration: 1h}], blackouts: [{name: all, from: "2020-01-01", to: "2099-01-01"}]}`, "no window of policy checked-a opens within 400 days", true),
		Entry("a window that is too short", `{nodeSelector: {matchLabels: {checked: "yes"}}, windows: [{name: night, start: "22:00", duration: 1m}]}`, "the longest window of policy checked-a lasts 1m0s", false),
		Entry("a selector that matches nothing", `{nodeSelector: {matchLabels: {pool: nobody}}}`, "policy checked-a selects no node", false),
		Entry("a conflict", `{nodeSelector: {matchLabels: {example.com/pool: POOL}}}`, "policy checked-a and POOL select ", true),
		Entry("a gate that does not compile", `{nodeSelector: {matchLabels: {checked: "yes"}}, gates: {objects: [{apiVersion: v1, kind: ConfigMap, namespace: default, name: a, expression: "object.status =="}]}}`, "does not compile", true),
		Entry("a query that is not PromQL", `{nodeSelector: {matchLabels: {checked: "yes"}}, gates: {prometheus: [{name: slo, url: "http://prometheus:9090", query: "sum(rate(errors[5m])"}]}}`, "spec.gates.prometheus[0].query is not valid PromQL: 1:21: parse error: unclosed left parenthesis", true),
		Entry("a query that is PromQL", `{nodeSelector: {matchLabels: {checked: "yes"}}, gates: {prometheus: [{name: slo, url: "http://prometheus:9090", query: "sum(rate(errors[5m])) > 1"}]}}`, "1 policy checked: specs and selectors. Nothing is wrong.\n", false),
		Entry("a rule that can never match", `{nodeSelector: {matchLabels: {checked: "yes"}}, drain: {rules: [{podSelector: {matchLabels: {app: db}}}, {podSelector: {matchLabels: {app: db, tier: one}}, action: Skip}]}}`, "spec.drain.rules[1] can never match, because rules[0] matches its pods first", false),
		Entry("a rule with expressions that can never match", `{nodeSelector: {matchLabels: {checked: "yes"}}, drain: {rules: [{podSelector: {matchExpressions: [{key: app, operator: In, values: [db]}]}}, {podSelector: {matchExpressions: [{key: app, operator: In, values: [web]}]}}, {podSelector: {matchExpressions: [{key: tier, operator: Exists}, {key: app, operator: In, values: [db]}]}}]}}`, "0 problems, 1 warning.", false),
		Entry("a limit of zero", `{nodeSelector: {matchLabels: {checked: "yes"}}, concurrency: {maxUnavailable: 0}}`, "policy checked-a grants nothing", true),
	)

	It("checks what a file shows without a cluster, and the policies of the cluster", func() {
		stdout, _, err := run([]string{"check", "--context=gone", "-f", policyFile(`{nodeSelector: {matchLabels: {checked: "yes"}}, concurrency: {shared: in-the-cluster}}`)})
		Expect(err).NotTo(HaveOccurred(), stdout)
		Expect(stdout).To(And(MatchRegexp(`^! Policies +selectors, rings, conflicts, shared limits and the API server's own validation were not checked: .*refused`),
			ContainSubstring("\n1 policy checked: specs and selectors. 0 problems, 1 warning.\n")))
		p := newPool(1, paused)
		Expect(ok("check", p.policy)).To(Equal("1 policy checked: specs and selectors. Nothing is wrong.\nThe running cluster was not checked. To do that: kubectl reboot doctor --kubeconfig=" + admin + "\n"))
		stored := func(limit string) string {
			path := filepath.Join(GinkgoT().TempDir(), "stored.yaml")
			Expect(os.WriteFile(path, []byte("apiVersion: reboot-operator.io/v1alpha1\nkind: RebootPolicy\nmetadata: {name: "+p.policy+
				"}\nspec: {nodeSelector: {matchLabels: {example.com/pool: "+p.policy+"}}, concurrency: {maxUnavailable: "+limit+"}}\n"), 0o600)).To(Succeed())
			return path
		}
		Expect(ok("check", "-f", stored("2"))).To(Equal("1 policy checked: specs and selectors. Nothing is wrong.\nThe running cluster was not checked. To do that: kubectl reboot doctor --kubeconfig="+admin+"\n"), "a policy that exists")
		stdout, _, err = run([]string{"check", "-f", stored("101%")})
		Expect(err).To(HaveOccurred())
		Expect(stdout).To(ContainSubstring("maxUnavailable"))
		Expect(p.get().Spec.Pause).NotTo(BeNil(), "it writes nothing")
		Expect(fails("check", "-f", policyFile())).To(HaveSuffix("does not contain a RebootPolicy\n"))
		Expect(fails("check", "-f", policyFile(`{nodeSelector: {matchLabels: {checked: "yes"}}, windowz: []}`))).To(ContainSubstring("windowz"))
		Expect(fails("check", "-f", policyFile(`{maxUptime: 4w}`))).To(ContainSubstring(`"4w" is not a duration such as 90s, 6h, 2d or 1d12h`))
	})

	It("reads standard input", func() {
		newPool(1, paused)
		stdout, _, _ := run([]string{"check", "-f", "-"}, func(c *call) {
			c.in = strings.NewReader("apiVersion: reboot-operator.io/v1alpha1\nkind: RebootPolicy\nmetadata: {name: piped}\nspec: {nodeSelector: {matchLabels: {pool: nobody}}}\n")
		})
		Expect(stdout).To(ContainSubstring("policy piped selects no node"))
	})
})
