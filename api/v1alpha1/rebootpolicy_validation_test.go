package v1alpha1_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// tryCreate creates a policy with a YAML spec in a dry run.
func tryCreate(ctx SpecContext, name, spec string) error {
	GinkgoHelper()
	policy := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte("spec: {"+spec+"}"), &policy.Object)).To(Succeed())
	policy.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RebootPolicy"))
	policy.SetName(name)
	strict := client.WithFieldValidation(admin, "Strict")
	return strict.Create(ctx, policy, client.DryRunAll)
}

var _ = Describe("spec", func() {
	accepted, refused := fields{}, fields{}
	accepts := func(ctx SpecContext, spec string) {
		Expect(tryCreate(ctx, "p", spec)).To(Succeed())
		var value map[string]any
		Expect(yaml.Unmarshal([]byte("{"+spec+"}"), &value)).To(Succeed())
		accepted.add("", value)
	}
	refuses := func(ctx SpecContext, spec, sentence string) {
		err := tryCreate(ctx, "p", spec)
		Expect(err).To(And(Satisfy(apierrors.IsInvalid), MatchError(ContainSubstring(sentence))))
		refused.addCauses(err)
	}

	It("may be empty", func(ctx SpecContext) { accepts(ctx, "") })

	It("refuses an unknown field", func(ctx SpecContext) {
		Expect(tryCreate(ctx, "p", "maxUnavailable: 1")).To(MatchError(ContainSubstring(`unknown field "spec.maxUnavailable"`)))
	})

	It("needs a name that fits a label and a condition", func(ctx SpecContext) {
		Expect(tryCreate(ctx, strings.Repeat("p", 63), "")).To(Succeed())
		Expect(tryCreate(ctx, strings.Repeat("p", 64), "")).To(
			MatchError(ContainSubstring("the name of a RebootPolicy may have at most 63 characters")))
	})

	Describe("nodeSelector", func() {
		DescribeTable("accepts", accepts,
			Entry("none of it", "nodeSelector: {}"),
			Entry("labels", "nodeSelector: {matchLabels: {pool: a}}"),
			Entry("a label that must be absent", "nodeSelector: {matchExpressions: [{key: pool, operator: DoesNotExist}]}"),
			Entry("values", "nodeSelector: {matchExpressions: [{key: pool, operator: In, values: [a, b]}]}"),
		)
		const sentence = "operator must be In or NotIn, with values, or Exists or DoesNotExist, without values"
		DescribeTable("refuses", refuses,
			Entry("an unknown operator", "nodeSelector: {matchExpressions: [{key: pool, operator: Is, values: [a]}]}", sentence),
			Entry("In without values", "nodeSelector: {matchExpressions: [{key: pool, operator: In}]}", sentence),
			Entry("Exists with values", "nodeSelector: {matchExpressions: [{key: pool, operator: Exists, values: [a]}]}", sentence),
		)
	})

	// Every selector is tested, so that none is forgotten. A selector with an impossible label could
	// not be evaluated.
	Describe("labels in selectors", func() {
		var accepted, refused []any
		for where, selector := range map[string]string{
			"nodeSelector":               "nodeSelector: {%s}",
			"a rule's podSelector":       "drain: {rules: [{podSelector: {%s}}]}",
			"a rule's namespaceSelector": "drain: {rules: [{podSelector: {matchLabels: {a: b}}, namespaceSelector: {%s}}]}",
			"a gate's podSelector":       "gates: {blockingPods: [{podSelector: {%s}}]}",
			"a gate's namespaceSelector": "gates: {blockingPods: [{podSelector: {matchLabels: {a: b}}, namespaceSelector: {%s}}]}",
		} {
			long, key := strings.Repeat("v", 63), strings.Repeat("k", 63)
			for _, labels := range []string{
				`matchLabels: {a: "", example.com/b_C.d: v-1_2.3, ` + key + ": " + long + "}",
				"matchExpressions: [{key: " + strings.Repeat("d", 253) + "/" + key + ", operator: In, values: [a, " + long + "]}]",
			} {
				accepted = append(accepted, Entry(where+": "+labels[:16], fmt.Sprintf(selector, labels)))
			}
			for labels, sentence := range map[string]string{
				`matchLabels: {a: "b c"}`:                                     "must be a label value",
				`matchLabels: {a: -b}`:                                        "must be a label value",
				`matchLabels: {a: "` + long + `v"}`:                           "Too long: may not be",
				"matchLabels: {a: }":                                          `matchLabels must not be empty: remove it, or write a label without a value as node-role.kubernetes.io/worker: ""`,
				`matchLabels: {"a b": c}`:                                     "keys of matchLabels must be label keys, such as kubernetes.io/os",
				`matchLabels: {"": c}`:                                        "keys of matchLabels must be label keys, such as kubernetes.io/os",
				"matchLabels: {" + key + "k: c}":                              "keys of matchLabels must be label keys, such as kubernetes.io/os",
				"matchLabels: {" + strings.Repeat("d", 254) + "/k: c}":        "keys of matchLabels must be label keys, such as kubernetes.io/os",
				`matchExpressions: [{key: "a b", operator: Exists}]`:          "key must be a label key, such as kubernetes.io/os",
				`matchExpressions: [{key: a, operator: In, values: ["b c"]}]`: "must be a label value",
			} {
				refused = append(refused, Entry(where+": "+labels, fmt.Sprintf(selector, labels), sentence))
			}
		}
		DescribeTable("accepts", append([]any{accepts}, accepted...)...)
		DescribeTable("refuses", append([]any{refuses}, refused...)...)
	})

	Describe("priority and mode", func() {
		DescribeTable("accepts", accepts,
			Entry("a negative priority", "priority: -1000000"),
			Entry("a high priority", "priority: 1000000"),
			Entry("Enforce", "mode: Enforce"),
			Entry("DryRun", "mode: DryRun"),
		)
		DescribeTable("refuses", refuses,
			Entry("a priority beyond the range", "priority: 1000001", "should be less than or equal to 1000000"),
			Entry("an unknown mode", "mode: Dry", `Unsupported value: "Dry": supported values: "Enforce", "DryRun"`),
		)
	})

	Describe("pause", func() {
		DescribeTable("accepts", accepts,
			Entry("a pause without end", "pause: {}"),
			Entry("reason and end", `pause: {reason: Black Friday, until: "2026-12-01T00:00:00Z"}`),
		)
		DescribeTable("refuses", refuses,
			Entry("a date instead of a time", `pause: {until: "2026-12-01"}`, "must be of type date-time"),
			Entry("lower-case letters in a time", `pause: {until: "2026-12-01t00:00:00z"}`, "until must be a time, such as 2026-12-27T00:00:00Z"),
			Entry("a time zone that does not exist", `pause: {until: "2026-12-01T00:00:00+25:00"}`, "until must be a time, such as 2026-12-27T00:00:00Z"),
			Entry("a text that is too long", `pause: {reason: "`+strings.Repeat("a", 257)+`"}`, "Too long: may not be"),
		)
	})

	Describe("autoscaler", func() {
		const sentence = "grace must be a duration of at most 24h, such as 15m or 1h; 0s does not wait"
		DescribeTable("accepts", accepts,
			Entry("nothing", "autoscaler: {}"),
			Entry("a grace", "autoscaler: {grace: 30m}"),
			Entry("no grace", "autoscaler: {grace: 0s}"),
			Entry("the longest", "autoscaler: {grace: 24h}"),
		)
		DescribeTable("refuses", refuses,
			Entry("more than a day", "autoscaler: {grace: 25h}", sentence),
			Entry("a negative grace", "autoscaler: {grace: -15m}", sentence),
			Entry("text", "autoscaler: {grace: a while}", sentence),
		)
	})

	Describe("concurrency.spacing", func() {
		const sentence = "spacing must be a duration of at least 1m and at most 7d"
		DescribeTable("accepts", accepts,
			Entry("the shortest", "concurrency: {spacing: 1m}"),
			Entry("the longest", "concurrency: {spacing: 168h}"),
		)
		DescribeTable("refuses", refuses,
			Entry("less than answers of gates count", "concurrency: {spacing: 59s}", sentence),
			Entry("more than a week", "concurrency: {spacing: 169h}", sentence),
			Entry("text", "concurrency: {spacing: a while}", sentence),
		)
	})

	Describe("concurrency.shared", func() {
		DescribeTable("accepts", accepts,
			Entry("another policy", "concurrency: {shared: workers}"),
			Entry("its own limit in addition", "concurrency: {shared: workers-2, maxUnavailable: 1}"),
		)
		DescribeTable("refuses", refuses,
			Entry("a name that no policy can have", "concurrency: {shared: Workers}", "shared must be the name of a RebootPolicy"),
			Entry("a name that is too long", "concurrency: {shared: "+strings.Repeat("w", 64)+"}", "spec.concurrency.shared: Too long"),
		)
		It("refuses the policy itself", func(ctx SpecContext) {
			Expect(tryCreate(ctx, "workers", "concurrency: {shared: workers}")).To(MatchError(ContainSubstring("spec.concurrency.shared must name another RebootPolicy")))
		})
	})

	Describe("rings", func() {
		const canary = "nodeSelector: {matchLabels: {stage: canary}}"
		var names []string
		for name := range strings.FieldsSeq("a b c d e f g h i j") {
			names = append(names, "{name: "+name+", "+canary+"}, ")
		}
		ten := "rings: [" + strings.Join(names, "")
		DescribeTable("accepts", accepts,
			Entry("rings with every field", "rings: [{name: canary, "+canary+", maxUnavailable: 1, soak: 24h}, {name: rest, nodeSelector: {}, maxUnavailable: 25%, soak: 0s}]"),
			Entry("ten", ten+"]"),
		)
		DescribeTable("refuses", refuses,
			Entry("a ring after one that selects all nodes", "rings: [{name: a, "+canary+"}, {name: all, nodeSelector: {}}, {name: b, "+canary+"}]", "only the last ring may have an empty nodeSelector"),
			Entry("a ring after one with empty lists", "rings: [{name: all, nodeSelector: {matchLabels: {}, matchExpressions: []}}, {name: b, "+canary+"}]", "only the last ring may have an empty nodeSelector"),
			Entry("two of one name", "rings: [{name: a, "+canary+"}, {name: a, "+canary+"}]", "Duplicate value"),
			Entry("an empty name", "rings: [{name: '', "+canary+"}]", "such as canary"),
			Entry("no name", "rings: [{"+canary+"}]", "spec.rings[0].name: Required"),
			Entry("no selector", "rings: [{name: a}]", "spec.rings[0].nodeSelector: Required"),
			Entry("a selector that no label can match", "rings: [{name: a, nodeSelector: {matchLabels: {'a b': c}}}]", "keys of matchLabels must be label keys"),
			Entry("eleven", ten+"{name: k, "+canary+"}]", "must have at most 10 items"),
			Entry("a negative soak", "rings: [{name: a, "+canary+", soak: -1h}]", "soak must be a duration of at most 30d"),
			Entry("a soak of more than a month", "rings: [{name: a, "+canary+", soak: 721h}]", "soak must be a duration of at most 30d"),
			Entry("a limit below 0", "rings: [{name: a, "+canary+", maxUnavailable: -1}]", "maxUnavailable must be a number of nodes"),
			Entry("a limit above the most", "rings: [{name: a, "+canary+", maxUnavailable: 1001}]", "maxUnavailable must be a number of nodes"),
			Entry("a limit without a unit", "rings: [{name: a, "+canary+", maxUnavailable: '5'}]", "maxUnavailable must be a number of nodes"),
			Entry("a limit with a fraction", "rings: [{name: a, "+canary+", maxUnavailable: 33.3%}]", "maxUnavailable must be a number of nodes"),
		)
	})

	Describe("maxUptime", func() {
		const sentence = "maxUptime must be a duration of at least 24h and at most 3650d"
		DescribeTable("accepts", accepts,
			Entry("the shortest uptime", "maxUptime: 24h"),
			Entry("the longest uptime", "maxUptime: 3650d"),
		)
		DescribeTable("refuses", refuses,
			Entry("an uptime of less than a day", "maxUptime: 23h59m59s", sentence),
			Entry("no uptime", "maxUptime: 0s", sentence),
			Entry("an uptime below zero", "maxUptime: -720h", sentence),
			Entry("an uptime of more than ten years", "maxUptime: 87601h", sentence),
			Entry("text instead of an uptime", "maxUptime: a month", sentence),
		)
	})

	Describe("concurrency.pendingTaint", func() {
		DescribeTable("accepts", accepts, Entry("none", "concurrency: {pendingTaint: None}"), Entry("the default", "concurrency: {pendingTaint: PreferNoSchedule}"))
		DescribeTable("refuses", refuses, Entry("an effect that keeps pods off", "concurrency: {pendingTaint: NoSchedule}", `supported values: "PreferNoSchedule", "None"`))
	})

	Describe("concurrency.firstBatch", func() {
		const nodes, soak = "nodes must be a number of nodes from 1 to 1000, or a percentage from 1% to 100%", "soak must be a duration of at least 1m and at most 7d"
		DescribeTable("accepts", accepts,
			Entry("a soak", "concurrency: {firstBatch: {soak: 1m}}"),
			Entry("a number", "concurrency: {maxUnavailable: 10%, firstBatch: {nodes: 1000, soak: 168h}}"),
			Entry("a percentage", "concurrency: {firstBatch: {nodes: 5%, soak: 30m}}"),
		)
		DescribeTable("refuses", refuses,
			Entry("no soak", "concurrency: {firstBatch: {nodes: 1}}", "soak: Required value"),
			Entry("no node", "concurrency: {firstBatch: {nodes: 0, soak: 30m}}", nodes),
			Entry("a percentage of 0", "concurrency: {firstBatch: {nodes: 0%, soak: 30m}}", nodes),
			Entry("too many nodes", "concurrency: {firstBatch: {nodes: 1001, soak: 30m}}", nodes),
			Entry("too many percent", "concurrency: {firstBatch: {nodes: 101%, soak: 30m}}", nodes),
			Entry("text instead of a number", "concurrency: {firstBatch: {nodes: one, soak: 30m}}", nodes),
			Entry("a soak that is too short", "concurrency: {firstBatch: {soak: 59s}}", soak),
			Entry("a soak that is too long", "concurrency: {firstBatch: {soak: 169h}}", soak),
		)
	})

	Describe("nodeConditions", func() {
		const rule, refused = "for must be a duration of at least 1m and at most 7d", "type must not be Ready or a condition that this operator writes"
		eleven := make([]string, 11)
		for i := range eleven {
			eleven[i] = fmt.Sprintf("{type: C%d, for: 1m}", i)
		}
		DescribeTable("accepts", accepts,
			Entry("the shortest time", "nodeConditions: [{type: KernelDeadlock, for: 1m}]"),
			Entry("both statuses, and a type with a prefix", `nodeConditions: [{type: KernelDeadlock, status: "True", for: 168h}, {type: example.com/GPUHealthy, status: "False", for: 10m}]`),
			Entry("none", "nodeConditions: []"),
		)
		DescribeTable("refuses", refuses,
			Entry("no time", "nodeConditions: [{type: KernelDeadlock}]", "for: Required value"),
			Entry("a time that is too short", "nodeConditions: [{type: KernelDeadlock, for: 59s}]", rule),
			Entry("a time that is too long", "nodeConditions: [{type: KernelDeadlock, for: 169h}]", rule),
			Entry("text instead of a time", "nodeConditions: [{type: KernelDeadlock, for: a while}]", rule),
			Entry("an unknown status", `nodeConditions: [{type: KernelDeadlock, status: Unknown, for: 10m}]`, `supported values: "True", "False"`),
			Entry("a condition twice", `nodeConditions: [{type: A, for: 10m}, {type: A, status: "False", for: 10m}]`, "Duplicate value"),
			Entry("no type", "nodeConditions: [{for: 10m}]", "type: Required value"),
			Entry("a type that no condition has", "nodeConditions: [{type: kernel deadlock, for: 10m}]", "type must be the type of a Node condition"),
			Entry("eleven", "nodeConditions: ["+strings.Join(eleven, ", ")+"]", "must have at most 10 items"),
			Entry("Ready", "nodeConditions: [{type: Ready, status: 'False', for: 10m}]", refused),
			Entry("RebootRequired", "nodeConditions: [{type: RebootRequired, for: 10m}]", refused),
			Entry("RebootPermitted", "nodeConditions: [{type: RebootPermitted, for: 10m}]", refused),
			Entry("RebootFailed", "nodeConditions: [{type: RebootFailed, for: 10m}]", refused),
			Entry("DrainInProgress", "nodeConditions: [{type: DrainInProgress, for: 10m}]", refused),
			Entry("Drained", "nodeConditions: [{type: Drained, for: 10m}]", refused),
			Entry("MaintenanceInProgress", "nodeConditions: [{type: MaintenanceInProgress, for: 10m}]", refused),
			Entry("MaintenancePlanned", "nodeConditions: [{type: MaintenancePlanned, for: 10m}]", refused),
		)
	})

	Describe("urgent", func() {
		const until = `until: "2026-12-02T06:00:00Z"`
		DescribeTable("accepts", accepts,
			Entry("one thing to ignore", `urgent: {all: {`+until+`, reason: CVE-2026-12345, ignore: [Windows]}}`),
			Entry("nothing", "urgent: {}"),
			Entry("requests of nodes", "urgent: {requested: {ignore: [Windows, Blackouts]}}"),
			Entry("overdue nodes", "deadline: 336h, urgent: {overdue: {ignore: [Windows]}}"),
			Entry("all fields", `urgent: {all: {`+until+`, reason: CVE-2026-12345, ignore: [Windows, Blackouts, Pause]}}`),
		)
		DescribeTable("refuses", refuses,
			Entry("no end", `urgent: {all: {reason: CVE, ignore: [Windows]}}`, "spec.urgent.all.until: Required value"),
			Entry("a date instead of a time", `urgent: {all: {until: "2026-12-01", reason: CVE, ignore: [Windows]}}`, "must be of type date-time"),
			Entry("lower-case letters in a time", `urgent: {all: {until: "2026-12-01t00:00:00z", reason: CVE, ignore: [Windows]}}`, "until must be a time, such as 2026-12-02T06:00:00Z"),
			Entry("overdue nodes without a deadline", "urgent: {overdue: {ignore: [Windows]}}", "urgent.overdue needs deadline: without one no node is overdue"),
			Entry("a pause for requests", "urgent: {requested: {ignore: [Windows, Pause]}}", `supported values: "Windows", "Blackouts"`),
			Entry("only blackouts for requests", "urgent: {requested: {ignore: [Blackouts]}}", "ignore must be [Windows] or [Windows, Blackouts]"),
			Entry("requests that ignore nothing", "urgent: {requested: {}}", "spec.urgent.requested.ignore: Required value"),
			Entry("overdue nodes that ignore nothing", "deadline: 336h, urgent: {overdue: {ignore: []}}", "should have at least 1 items"),
			Entry("no reason", `urgent: {all: {`+until+`, ignore: [Windows]}}`, "spec.urgent.all.reason: Required value"),
			Entry("an empty reason", `urgent: {all: {`+until+`, reason: " ", ignore: [Windows]}}`, "reason must not be empty"),
			Entry("a text that is too long", `urgent: {all: {`+until+`, ignore: [Windows], reason: "`+strings.Repeat("a", 257)+`"}}`, "Too long: may not be"),
			Entry("nothing to ignore", `urgent: {all: {`+until+`, reason: CVE, ignore: []}}`, "should have at least 1 items"),
			Entry("a value twice", `urgent: {all: {`+until+`, reason: CVE, ignore: [Pause, Pause]}}`, "Duplicate value"),
			Entry("something that cannot be ignored", `urgent: {all: {`+until+`, reason: CVE, ignore: [Concurrency]}}`, `supported values: "Windows", "Blackouts", "Pause"`),
		)
	})

	Describe("deadline", func() {
		const sentence = "deadline must be a duration of at least 1h and at most 365d"
		DescribeTable("accepts", accepts,
			Entry("the shortest", "deadline: 1h"),
			Entry("the longest", "deadline: 365d"),
		)
		DescribeTable("refuses", refuses,
			Entry("less than an hour", "deadline: 59m59s", sentence),
			Entry("more than a year", "deadline: 8761h", sentence),
			Entry("a time below zero", "deadline: -336h", sentence),
		)
	})

	Describe("concurrency.maxUnavailable", func() {
		maxUnavailable := func(value string) string { return "concurrency: {maxUnavailable: " + value + "}" }
		const sentence = "maxUnavailable must be a number of nodes from 0 to 1000, or a percentage from 0% to 100%"
		DescribeTable("accepts", accepts,
			Entry("none", maxUnavailable("0")),
			Entry("one", maxUnavailable("1")),
			Entry("very many", maxUnavailable("1000")),
			Entry("0%", maxUnavailable("0%")),
			Entry("a percentage", maxUnavailable("25%")),
			Entry("all", maxUnavailable("100%")),
			Entry("topologyKey", "concurrency: {topologyKey: topology.kubernetes.io/zone}"),
		)
		DescribeTable("refuses", refuses,
			Entry("less than 0", maxUnavailable("-1"), sentence),
			Entry("more than a ledger holds", maxUnavailable("1001"), sentence),
			Entry("a number as text", maxUnavailable(`"1"`), sentence),
			Entry("more than all", maxUnavailable("101%"), sentence),
			Entry("a fraction", maxUnavailable("2.5%"), sentence),
			Entry("less than 0%", maxUnavailable("-5%"), sentence),
			Entry("text", maxUnavailable("all"), sentence),
			Entry("nothing", maxUnavailable(`""`), sentence),
		)
	})

	Describe("concurrency.topologyKey", func() {
		const sentence = "topologyKey must be a label key, such as topology.kubernetes.io/zone"
		topologyKey := func(value string) string { return "concurrency: {topologyKey: " + value + "}" }
		DescribeTable("accepts", accepts,
			Entry("a well-known label", topologyKey("topology.kubernetes.io/zone")),
			Entry("a label without a domain", topologyKey("rack")),
			Entry("none", topologyKey(`""`)),
			Entry("the longest", topologyKey(strings.Repeat("d", 253)+"/"+strings.Repeat("k", 63))),
		)
		DescribeTable("refuses", refuses,
			Entry("a key with a space", topologyKey(`"the zone"`), sentence),
			Entry("two slashes", topologyKey("a/b/c"), sentence),
			Entry("a label with its value", topologyKey("zone=a"), sentence),
			Entry("a name that is too long", topologyKey(strings.Repeat("k", 64)), sentence),
			Entry("a domain that is too long", topologyKey(strings.Repeat("d", 254)+"/a"), sentence),
			Entry("a list", topologyKey("[zone]"), "must be of type string"),
		)
	})

	Describe("windows (behaviour 34)", func() {
		window := func(fields string) string { return "windows: [{name: w, " + fields + "}]" }
		const (
			startSentence    = "start must be a time of day as HH:MM, from 00:00 to 23:59"
			durationSentence = "duration must be more than 0 and at most 7d, such as 90m or 6h"
			zoneSentence     = "timeZone must be an IANA name, such as UTC or Europe/Berlin"
			weeksSentence    = "weeksOfMonth must be 1 to 5, or -1 for the last"
		)
		DescribeTable("accepts", accepts,
			Entry("every day", window(`start: "00:00", duration: 1h`)),
			Entry("the last minute", window(`start: "23:59", duration: 1m`)),
			Entry("a whole week", window(`start: "12:00", duration: 168h`)),
			Entry("several units", window(`start: "12:00", duration: 1h30m`)),
			Entry("some days in a zone", window(`days: [Mon, Sun], start: "22:00", duration: 6h, timeZone: Europe/Berlin`)),
			Entry("a zone with three parts", window(`start: "22:00", duration: 6h, timeZone: America/Argentina/Buenos_Aires`)),
			Entry("a fixed zone", window(`start: "22:00", duration: 6h, timeZone: Etc/GMT+12`)),
			Entry("weeks of the month", window(`days: [Tue], weeksOfMonth: [1, 5, -1], start: "02:00", duration: 4h`)),
			Entry("two windows", `windows: [{name: a, start: "02:00", duration: 4h}, {name: b, start: "12:00", duration: 4h}]`),
		)
		DescribeTable("refuses", refuses,
			Entry("no start", window(`duration: 1h`), "spec.windows[0].start: Required value"),
			Entry("24:00", window(`start: "24:00", duration: 1h`), startSentence),
			Entry("a minute that does not exist", window(`start: "10:60", duration: 1h`), startSentence),
			Entry("seconds", window(`start: "22:00:00", duration: 1h`), startSentence),
			Entry("one digit", window(`start: "9:00", duration: 1h`), startSentence),
			Entry("an English time", window(`start: "10 pm", duration: 1h`), startSentence),
			Entry("no duration", window(`start: "10:00"`), "spec.windows[0].duration: Required value"),
			Entry("no time at all", window(`start: "10:00", duration: 0s`), durationSentence),
			Entry("a negative duration", window(`start: "10:00", duration: -1h`), durationSentence),
			Entry("more than a week", window(`start: "10:00", duration: 168h1s`), durationSentence),
			Entry("more than a week, with days", window(`start: "10:00", duration: 7d1s`), durationSentence),
			Entry("a bare number", window(`start: "10:00", duration: "60"`), durationSentence),
			Entry("a duration that is too long to parse", window(`start: "10:00", duration: 99999999999999999999h`), durationSentence),
			Entry("an unknown zone", window(`start: "10:00", duration: 1h, timeZone: Mars/Base`), zoneSentence),
			Entry("a zone in lower case", window(`start: "10:00", duration: 1h, timeZone: europe/berlin`), zoneSentence),
			Entry("the zone Local", window(`start: "10:00", duration: 1h, timeZone: Local`), zoneSentence),
			Entry("an offset as time zone", window(`start: "10:00", duration: 1h, timeZone: "02:00"`), zoneSentence),
			Entry("a signed offset as time zone", window(`start: "10:00", duration: 1h, timeZone: "+02:00"`), zoneSentence),
			Entry("a zone with a path", window(`start: "10:00", duration: 1h, timeZone: posix/Europe/Berlin`), zoneSentence),
			Entry("a path", window(`start: "10:00", duration: 1h, timeZone: ../UTC`), zoneSentence),
			Entry("an empty zone", window(`start: "10:00", duration: 1h, timeZone: ""`), zoneSentence),
			Entry("an unknown day", window(`days: [Monday], start: "10:00", duration: 1h`),
				`Unsupported value: "Monday": supported values: "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"`),
			Entry("a day twice", window(`days: [Mon, Mon], start: "10:00", duration: 1h`), "Duplicate value"),
			Entry("a sixth week", window(`weeksOfMonth: [6], start: "10:00", duration: 1h`), weeksSentence),
			Entry("a zeroth week", window(`weeksOfMonth: [0], start: "10:00", duration: 1h`), weeksSentence),
			Entry("the last week but one", window(`weeksOfMonth: [-2], start: "10:00", duration: 1h`), weeksSentence),
			Entry("no name", `windows: [{start: "10:00", duration: 1h}]`, "spec.windows[0].name: Required value"),
			Entry("a name with a capital letter", `windows: [{name: Night, start: "10:00", duration: 1h}]`, "such as weeknights"),
			Entry("one name twice", `windows: [{name: a, start: "02:00", duration: 4h}, {name: a, start: "12:00", duration: 4h}]`,
				"Duplicate value"),
		)
	})

	Describe("blackouts", func() {
		blackout := func(fields string) string { return "blackouts: [{name: b, " + fields + "}]" }
		const noDate = "from must be a date as YYYY-MM-DD, or as MM-DD for every year"
		const sentence = "to must be after from, because it is the first day on which reboots may start again"
		DescribeTable("accepts", accepts,
			Entry("one day", blackout(`from: "2026-12-24", to: "2026-12-25"`)),
			Entry("a turn of the year in a zone", blackout(`from: "2026-12-19", to: "2027-01-04", timeZone: Europe/Berlin, reason: holidays`)),
			Entry("every year, across the turn of the year", blackout(`from: "12-20", to: "01-06"`)),
			Entry("a leap day, every leap year", blackout(`from: "02-29", to: "03-01"`)),
			Entry("a leap day", blackout(`from: "2028-02-29", to: "2028-03-01"`)),
		)
		DescribeTable("refuses", refuses,
			Entry("no day", blackout(`from: "2026-12-24", to: "2026-12-24"`), sentence),
			Entry("days in reverse order", blackout(`from: "2027-01-04", to: "2026-12-19"`), sentence),
			Entry("a date that does not exist", blackout(`from: "2026-02-30", to: "2026-12-25"`), noDate),
			Entry("a day that does not exist in any year", blackout(`from: "02-30", to: "12-25"`), noDate),
			Entry("a month that does not exist", blackout(`from: "00-10", to: "12-25"`), noDate),
			Entry("a leap day in another year", blackout(`from: "2027-02-29", to: "2027-03-01"`), noDate),
			Entry("a time of day", blackout(`from: "2026-12-24T00:00:00Z", to: "2026-12-25"`), noDate),
			Entry("a whole year", blackout(`from: "12-24", to: "12-24"`), sentence),
			Entry("a year in only one of from and to", blackout(`from: "12-24", to: "2026-12-25"`), "from and to must both have a year, or neither"),
			Entry("a name with a capital letter", `blackouts: [{name: Freeze, from: "2026-12-24", to: "2026-12-25"}]`, "such as year-end"),
			Entry("a text that is too long", blackout(`from: "2026-12-24", to: "2026-12-25", reason: "`+strings.Repeat("a", 257)+`"`), "Too long: may not be"),
			Entry("a German date", blackout(`from: "24.12.2026", to: "2026-12-25"`), noDate),
			Entry("no end", blackout(`from: "2026-12-24"`), "spec.blackouts[0].to: Required value"),
			Entry("an unknown zone", blackout(`from: "2026-12-24", to: "2026-12-25", timeZone: Mars/Base`),
				"timeZone must be an IANA name, such as UTC or Europe/Berlin"),
			Entry("an empty zone", blackout(`from: "2026-12-24", to: "2026-12-25", timeZone: ""`),
				"timeZone must be an IANA name, such as UTC or Europe/Berlin"),
			Entry("an offset as time zone", blackout(`from: "2026-12-24", to: "2026-12-25", timeZone: "01:00"`),
				"timeZone must be an IANA name, such as UTC or Europe/Berlin"),
		)
	})

	Describe("drain", func() {
		drain := func(fields string) string { return "drain: {" + fields + "}" }
		rule := func(fields string) string { return "drain: {rules: [{" + fields + "}]}" }
		const (
			timeoutSentence  = "timeout must be a duration of more than 0 and at most 7d, such as 20m or 2h"
			selectorSentence = "podSelector must not be empty: give it matchLabels or matchExpressions"
			graceSentence    = "gracePeriod works only with action Evict or Delete"
		)
		DescribeTable("accepts", accepts,
			Entry("nothing", drain("")),
			Entry("everything", drain("timeout: 20m, onTimeout: Reboot, gracePeriod: 60s, emptyDirData: Block, unmanagedPods: Delete, closedBudgets: Wait, volumeDetachTimeout: 5m")),
			Entry("a lead time", drain("leadTime: 2m")),
			Entry("nodes out of load balancers", drain("loadBalancers: Exclude")),
			Entry("no lead time", drain("leadTime: 0s")),
			Entry("no wait for volumes", drain("volumeDetachTimeout: 0s")),
			Entry("a rule by labels", rule("podSelector: {matchLabels: {app: db}}, namespaceSelector: {}, action: Evict, order: 10")),
			Entry("a rule by expressions", rule("podSelector: {matchExpressions: [{key: app, operator: Exists}]}, action: WaitCompleted")),
			Entry("a rule that skips", rule("podSelector: {matchLabels: {keep: \"true\"}}, action: Skip")),
			Entry("a rule that deletes", rule("podSelector: {matchLabels: {stuck: ok}}, action: Delete, gracePeriod: 30s")),
			Entry("a grace period where eviction is the default", rule("podSelector: {matchLabels: {stuck: ok}}, gracePeriod: 30s, order: -1000")),
		)
		DescribeTable("refuses", refuses,
			Entry("no timeout at all", drain("timeout: 0s"), timeoutSentence),
			Entry("more than a week", drain("timeout: 169h"), timeoutSentence),
			Entry("an unknown value for onTimeout", drain("onTimeout: Force"), `Unsupported value: "Force": supported values: "Abort", "Reboot"`),
			Entry("a grace period of 0, which loses data", drain("gracePeriod: 0s"), "gracePeriod must be a duration of at least 1s and at most 7d"),
			Entry("a number of seconds for a grace period", drain("gracePeriod: 120"), "spec.drain.gracePeriod in body must be of type string"),
			Entry("an unknown value for emptyDirData", drain("emptyDirData: Keep"), `Unsupported value: "Keep": supported values: "Delete", "Block"`),
			Entry("an unknown policy for closed budgets", drain("closedBudgets: Ignore"), `Unsupported value: "Ignore": supported values: "Try", "Wait"`),
			Entry("an unknown value for unmanagedPods", drain("unmanagedPods: Evict"), `Unsupported value: "Evict": supported values: "Delete", "Block"`),
			Entry("an unknown value for loadBalancers", drain("loadBalancers: Remove"), `Unsupported value: "Remove": supported values: "Exclude", "Ignore"`),
			Entry("a lead time of days", drain("leadTime: 25h"), "leadTime must be a duration of at most 24h, such as 30s or 2m"),
			Entry("a negative lead time", drain("leadTime: -2m"), "leadTime must be a duration of at most 24h, such as 30s or 2m"),
			Entry("a negative wait", drain("volumeDetachTimeout: -5m"), "volumeDetachTimeout must be a duration of at most 7d, such as 5m; 0s does not wait"),
			Entry("a rule without pods", rule("action: Skip"), "spec.drain.rules[0].podSelector: Required value"),
			Entry("a rule for every pod", rule("podSelector: {}, action: Skip"), selectorSentence),
			Entry("a rule for every pod, with an empty map", rule("podSelector: {matchLabels: {}}"), selectorSentence),
			Entry("an invalid selector", rule("podSelector: {matchExpressions: [{key: app, operator: Like}]}"),
				"operator must be In or NotIn, with values, or Exists or DoesNotExist, without values"),
			Entry("an invalid namespace selector", rule("podSelector: {matchLabels: {a: b}}, namespaceSelector: {matchExpressions: [{key: app, operator: In}]}"),
				"operator must be In or NotIn, with values, or Exists or DoesNotExist, without values"),
			Entry("an invalid eighth expression", rule("podSelector: {matchExpressions: ["+strings.Repeat("{key: app, operator: Exists}, ", 7)+"{key: app, operator: In}]}"),
				"operator must be In or NotIn, with values, or Exists or DoesNotExist, without values"),
			Entry("nine expressions", rule("podSelector: {matchExpressions: ["+strings.Repeat("{key: app, operator: Exists}, ", 9)+"]}"),
				"podSelector.matchExpressions: Too many: 9: must have at most 8 items"),
			Entry("an unknown action", rule("podSelector: {matchLabels: {a: b}}, action: Kill"),
				`Unsupported value: "Kill": supported values: "Evict", "WaitCompleted", "Skip", "Delete"`),
			Entry("a grace period for pods that stay", rule("podSelector: {matchLabels: {a: b}}, action: Skip, gracePeriod: 5s"), graceSentence),
			Entry("a grace period for pods that complete", rule("podSelector: {matchLabels: {a: b}}, action: WaitCompleted, gracePeriod: 5s"), graceSentence),
			Entry("a rule with a grace period of 0", rule("podSelector: {matchLabels: {a: b}}, gracePeriod: 0s"), "gracePeriod must be a duration of at least 1s and at most 7d"),
			Entry("an order beyond the range", rule("podSelector: {matchLabels: {a: b}}, order: 1001"), "should be less than or equal to 1000"),
		)
	})

	Describe("reboot and maxFailures", func() {
		DescribeTable("accepts", accepts,
			Entry("nothing", "reboot: {}"),
			Entry("everything", "reboot: {timeout: 30m, inhibitors: Ignore, coordinators: Ignore, sessions: Wait, settle: 90s}, maxFailures: 1"),
			Entry("no settling", "reboot: {settle: 0s}"),
			Entry("a day of settling", "reboot: {settle: 24h}"),
		)
		DescribeTable("refuses", refuses,
			Entry("no time for a reboot", "reboot: {timeout: 0s}", "timeout must be a duration of more than 0 and at most 7d, such as 30m or 2h"),
			Entry("a text instead of a duration", "reboot: {timeout: soon}", "timeout must be a duration of more than 0 and at most 7d, such as 30m or 2h"),
			Entry("another value for inhibitors", "reboot: {inhibitors: Wait}", `Unsupported value: "Wait": supported values: "Block", "Ignore"`),
			Entry("another value for sessions", "reboot: {sessions: Block}", `Unsupported value: "Block": supported values: "Ignore", "Wait"`),
			Entry("another value for coordinators", "reboot: {coordinators: ignore}", `Unsupported value: "ignore": supported values: "Block", "Ignore"`),
			Entry("more than a day of settling", "reboot: {settle: 25h}", "settle must be a duration of at most 24h, such as 90s or 5m"),
			Entry("a number for a duration", "reboot: {settle: 60}", "spec.reboot.settle in body must be of type string"),
			Entry("no failure at all", "maxFailures: 0", "should be greater than or equal to 1"),
		)
	})

	Describe("notify", func() {
		DescribeTable("accepts", accepts,
			Entry("everything", "notify: [{secretRef: {name: slack}}]"),
			Entry("some of it", "notify: [{secretRef: {name: slack}, events: [Started, Finished, Failed, Halted, Urgent, Deadline]}, {secretRef: {name: pager}, events: [Halted]}]"),
			Entry("each node, by the user's template", `notify: [{secretRef: {name: slack}, events: [Rebooting, Back], template: "{event}: {node} of {policy} (100%), {text}"}]`),
		)
		DescribeTable("refuses", refuses,
			Entry("a template with another name in braces", `notify: [{secretRef: {name: slack}, template: "{node} {reason}"}]`, "template may use braces only for {text}, {event}, {policy} and {node}"),
			Entry("a template of another language", `notify: [{secretRef: {name: slack}, template: "{{.Node}}"}]`, "template may use braces only for {text}, {event}, {policy} and {node}"),
			Entry("an empty template", `notify: [{secretRef: {name: slack}, template: ""}]`, "should be at least 1 chars long"),
			Entry("nobody", "notify: [{events: [Halted]}]", "secretRef: Required value"),
			Entry("a Secret without a name", `notify: [{secretRef: {name: ""}}]`, "should be at least 1 chars long"),
			Entry("nothing", "notify: [{secretRef: {name: slack}, events: []}]", "should have at least 1 items"),
			Entry("an event twice", "notify: [{secretRef: {name: slack}, events: [Failed, Failed]}]", "Duplicate value"),
			Entry("another event", "notify: [{secretRef: {name: slack}, events: [Done]}]", `Unsupported value: "Done"`),
		)
	})

	Describe("hooks and gates", func() {
		gate := func(fields string) string { return "gates: {prometheus: [{name: g, " + fields + "}]}" }
		object := func(fields string) string {
			return "gates: {objects: [{apiVersion: ceph.rook.io/v1, kind: CephCluster, namespace: rook-ceph, expression: object.status.ready, " + fields + "}]}"
		}
		const keySentence = "must be an annotation key, such as example.com/backup-done"
		const othersSentence = "keys of kubernetes.io, k8s.io, x-k8s.io and karpenter.sh belong to other programs: use your own domain, such as example.com/backup-done"
		DescribeTable("accepts", accepts,
			Entry("a key whose domain only ends like one of Kubernetes'", "hooks: {before: [mykubernetes.io/a, k8s.io.example.com/a, kubernetes.io]}"),
			Entry("hooks", "hooks: {before: [example.com/backup-done], after: [healthy], timeout: 1h}"),
			Entry("hooks of runs", "hooks: {runBefore: [example.com/noout-set], runAfter: [example.com/noout-unset]}"),
			Entry("one hook before and after a run", "hooks: {runBefore: [example.com/noout], runAfter: [example.com/noout]}"),
			Entry("the longest key", "hooks: {before: ["+strings.Repeat("d", 253)+"/"+strings.Repeat("k", 63)+"]}"),
			Entry("a hook key of the Flatcar update operator", "hooks: {before: [container-linux-update.v1.coreos.com/backup]}"),
			Entry("a gate of one object", object("name: rook-ceph")),
			Entry("a gate of several objects", object("selector: {}")),
			Entry("gates", `gates: {blockingPods: [{podSelector: {matchLabels: {app: migration}}, namespaceSelector: {}}]}`),
			Entry("pods that keep other pods off the node", "gates: {blockingPods: [{podSelector: {matchLabels: {app: batch}}, taintEffect: NoSchedule}]}"),
			Entry("a query", gate(`url: "https://prometheus.monitoring:9090", query: "up == 0", failurePolicy: Ignore, secretRef: {name: token}`)),
			Entry("a server below a path", gate(`url: "http://10.0.0.1:8080/select/0/prometheus/", query: up`)),
			Entry("a server by its IPv6 address", gate(`url: "http://[fd00::1]:9090", query: up`)),
			Entry("an @ in the path", gate(`url: "https://thanos/tenant@home", query: up`)),
		)
		DescribeTable("refuses", refuses,
			Entry("an empty key", `hooks: {before: [""]}`, keySentence),
			Entry("a key with a space", `hooks: {before: ["backup done"]}`, keySentence),
			Entry("a key with two slashes", "hooks: {after: [a/b/c]}", keySentence),
			Entry("a key without a name", "hooks: {after: [example.com/]}", keySentence),
			Entry("a key whose domain has an empty part", "hooks: {after: [example..com/a]}", keySentence),
			Entry("a key whose domain is too long", "hooks: {after: ["+strings.Repeat("d", 254)+"/a]}", keySentence),
			Entry("a key of the operator", "hooks: {before: [reboot-operator.io/grant]}",
				"keys of reboot-operator.io belong to the operator: use your own domain, such as example.com/backup-done"),
			Entry("a hook of runs with a key of the operator", "hooks: {runAfter: [reboot-operator.io/resume]}",
				"keys of reboot-operator.io belong to the operator"),
			Entry("a hook of runs twice", "hooks: {runBefore: [example.com/a, example.com/a]}", "Duplicate value"),
			Entry("a hook of runs that is not a key", "hooks: {runBefore: [a/b/c]}", keySentence),
			Entry("a key of Kubernetes", "hooks: {before: [kubernetes.io/description]}", othersSentence),
			Entry("a key of a CSI driver's", "hooks: {before: [csi.volume.kubernetes.io/nodeid]}", othersSentence),
			Entry("a key of a project of Kubernetes'", "hooks: {after: [cluster.x-k8s.io/machine]}", othersSentence),
			Entry("a key below k8s.io", "hooks: {after: [nfd.node.k8s.io/a]}", othersSentence),
			Entry("a key that the operator sets for an autoscaler", "hooks: {before: [karpenter.sh/do-not-disrupt]}", othersSentence),
			Entry("a taint effect that evicts pods", "gates: {blockingPods: [{podSelector: {matchLabels: {app: batch}}, taintEffect: NoExecute}]}",
				`Unsupported value: "NoExecute": supported values: "PreferNoSchedule", "NoSchedule"`),
			Entry("no time for hooks", "hooks: {timeout: 0s}", "timeout must be a duration of more than 0 and at most 7d, such as 30m or 2h"),
			Entry("a gate without an object", object(""), "give either name, for one object, or selector, for several"),
			Entry("a gate of one object and of several", object("name: a, selector: {}"), "give either name, for one object, or selector, for several"),
			Entry("a gate that is a Secret", `gates: {objects: [{apiVersion: v1, kind: Secret, namespace: a, name: b, expression: "true"}]}`, "a Secret cannot be a gate"),
			Entry("a gate without an expression", `gates: {objects: [{apiVersion: v1, kind: Node, name: b, expression: ""}]}`, "spec.gates.objects[0].expression"),
			Entry("a gate of a resource", `gates: {objects: [{apiVersion: v1, kind: nodes, name: b, expression: "true"}]}`, "kind must be the kind of an object, such as CephCluster"),
			Entry("a gate of a group without a version", `gates: {objects: [{apiVersion: ceph.rook.io, kind: CephCluster, name: b, expression: "true"}]}`, "apiVersion must be an API group and a version"),
			Entry("a gate in a namespace without a name", `gates: {objects: [{apiVersion: v1, kind: Pod, namespace: "", name: b, expression: "true"}]}`, "namespace must be the name of a namespace"),
			Entry("a gate in an invalid namespace", `gates: {objects: [{apiVersion: v1, kind: Pod, namespace: Rook, name: b, expression: "true"}]}`, "namespace must be the name of a namespace"),
			Entry("a gate of an object below another one", object("name: rook/ceph"), "name must be the name of an object"),
			Entry("a gate of objects by an unknown operator", object("selector: {matchExpressions: [{key: app, operator: Like}]}"), "operator must be In or NotIn"),
			Entry("every pod blocks", "gates: {blockingPods: [{podSelector: {}}]}", "podSelector must not be empty: give it matchLabels or matchExpressions"),
			Entry("an invalid namespace selector of a gate", "gates: {blockingPods: [{podSelector: {matchLabels: {a: b}}, namespaceSelector: {matchExpressions: [{key: app, operator: In}]}}]}",
				"operator must be In or NotIn, with values, or Exists or DoesNotExist, without values"),
			Entry("a gate's name with a capital letter", `gates: {prometheus: [{name: Gate, url: "http://prometheus", query: up}]}`, "spec.gates.prometheus[0].name"),
			Entry("an address without a scheme", gate(`url: "prometheus:9090", query: up`), "url must begin with http:// or https:// and name a host"),
			Entry("an address without a host", gate(`url: "https:///prometheus", query: up`), "url must begin with http:// or https:// and name a host"),
			Entry("another protocol", gate(`url: "ftp://prometheus", query: up`), "url must begin with http:// or https:// and name a host"),
			Entry("an address with a space", gate(`url: "http://prometheus /", query: up`), "url must begin with http:// or https:// and name a host"),
			Entry("a password in the address", gate(`url: "https://me:secret@prometheus", query: up`), "url must not contain credentials"),
			Entry("a name in the address", gate(`url: "https://me@prometheus/", query: up`), "url must not contain credentials"),
			Entry("a token in the address", gate(`url: "https://prometheus/?token=secret", query: up`), "url must not contain ? or #"),
			Entry("a fragment", gate(`url: "https://prometheus/#graph", query: up`), "url must not contain ? or #"),
			Entry("a query that is too long", gate(`url: "http://prometheus", query: "`+strings.Repeat("x", 4097)+`"`), "Too long: may not be"),
			Entry("a name that is not valid", `gates: {prometheus: [{name: "Error budget", url: "http://prometheus", query: up}]}`, "name must consist of lower-case letters, digits and -, and begin and end with a letter or digit, such as error-budget"),
			Entry("one name for two gates", `gates: {prometheus: [{name: g, url: "http://a", query: up}, {name: g, url: "http://b", query: up}]}`, "Duplicate value"),
			Entry("no query", gate(`url: "http://prometheus", query: ""`), "should be at least 1 chars long"),
			Entry("another failure policy", gate(`url: "http://prometheus", query: up, failurePolicy: Ask`),
				`Unsupported value: "Ask": supported values: "Block", "Ignore"`),
			Entry("a Secret without a name", gate(`url: "http://prometheus", query: up, secretRef: {}`), "secretRef.name: Required value"),
		)
	})

	// This runs last, because the entries above record which fields they accept and refuse.
	It("has an entry that is accepted and one that is refused for each field", func() {
		if suite, _ := GinkgoConfiguration(); len(suite.FocusStrings)+len(suite.SkipStrings)+len(suite.FocusFiles) > 0 || suite.LabelFilter != "" {
			Skip("not all entries ran")
		}
		all := specFields()
		Expect(accepted.without(all)).To(BeEmpty(), "no entry of DescribeTable accepts these fields")
		Expect(refused.without(all)).To(BeEmpty(), "no entry of DescribeTable refuses a value of these fields")
	})
})
