package kured

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/agent/engine/sentinel"
)

// makeInstallation returns a kured of the newest version with the given arguments.
func makeInstallation(args ...string) *installation {
	k := &installation{}
	k.daemonSet = appsv1.DaemonSet{}
	k.daemonSet.Name, k.daemonSet.Namespace = "kured", "kube-system"
	k.daemonSet.Spec.Template.Spec = corev1.PodSpec{
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers:  []corev1.Container{{Name: "kured", Image: "ghcr.io/kubereboot/kured:1.23.0", Command: append([]string{"/usr/bin/kured"}, args...)}},
	}
	k.findContainer()
	return k
}

// notes returns all lines of a report, each with its part of the report.
func (r *outcomes) notes() []string {
	var notes []string
	for part, lines := range map[string][]line{"carried": r.carried, "unneeded": r.unneeded, "open": r.open} {
		for _, l := range lines {
			notes = append(notes, part+": "+l.subject)
		}
	}
	slices.Sort(notes)
	return notes
}

// unusual maps flags to values other than the defaults.
var unusual = map[string]string{
	"alert-filter-regexp": "^A$", "blocking-pod-selector": "a=b", "concurrency": "2", "drain-delay": "1m", "drain-grace-period": "5",
	"drain-pod-selector": "a=b", "drain-timeout": "1m", "end-time": "5:00", "lock-release-delay": "1m", "lock-ttl": "1m",
	"metrics-port": "1", "period": "1m", "prometheus-url": "http://p", "reboot-command": "/bin/true", "reboot-days": "mo", "reboot-delay": "1m",
	"reboot-method": "signal", "reboot-sentinel": "/elsewhere", "reboot-sentinel-command": "true", "reboot-signal": "38",
	"skip-wait-for-delete-timeout": "1", "start-time": "5:00", "time-zone": "Europe/Berlin",
}

func TestConvert_EveryFlagIsReported(t *testing.T) {
	newKuredFlags().set.VisitAll(func(f *pflag.Flag) {
		values := map[string]string{"the default": strings.Trim(f.DefValue, "[]"), "another": unusual[f.Name]}
		if values["another"] == "" {
			values["another"] = "1" // works for a boolean or any text
		}
		for which, value := range values {
			t.Run(f.Name+" with "+which, func(t *testing.T) {
				c, err := convert(makeInstallation("--" + f.Name + "=" + value))
				if f.Name == "blocking-pod-selector" && which == "the default" {
					t.Skip("it cannot be given: an empty value is a selector")
				}
				if err != nil {
					t.Fatal(err)
				}
				reported := slices.ContainsFunc(c.report.notes(), func(note string) bool { return strings.Contains(note, "--"+f.Name+"=") })
				if !reported {
					t.Errorf("nothing is reported of --%s=%s: %q", f.Name, value, c.report.notes())
				}
				for _, l := range c.report.open {
					if strings.Contains(l.how, "does not convert it") {
						t.Errorf("no step deals with it: %v", l)
					}
				}
				if which == "the default" && len(c.report.open) > 0 {
					t.Errorf("a default is left open: %v", c.report.open)
				}
			})
		}
	})
}

func TestConvert_LockReleaseDelay(t *testing.T) {
	for args, want := range map[string]string{
		"--lock-release-delay=1h":                   "spacing 1h0m0s",
		"--lock-release-delay=999h":                 "spacing 168h0m0s",
		"--lock-release-delay=30s":                  "settle 30s",
		"--lock-release-delay=1h --concurrency=2":   "settle 1h0m0s",
		"--lock-release-delay=999h --concurrency=2": "settle 24h0m0s",
		"--lock-release-delay=0s":                   "",
	} {
		t.Run(args, func(t *testing.T) {
			c, err := convert(makeInstallation(strings.Fields(args)...))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if spacing := c.policy.Spec.Concurrency.Spacing; spacing != nil {
				got += "spacing " + spacing.String()
			}
			if settle := c.policy.Spec.RebootOrDefault().Settle; settle != nil {
				got += "settle " + settle.String()
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// Values above a policy's limits are reduced, and the report says so.
func TestConvert_ReportsValuesBeyondTheLimits(t *testing.T) {
	for arg, want := range map[string]string{
		"--concurrency=1000":          "concurrency.maxUnavailable: 1000. ",
		"--concurrency=1001":          "concurrency.maxUnavailable: 1000, the most there is; a percentage has no such bound. ",
		"--lock-release-delay=168h":   "concurrency.spacing: 168h. ",
		"--lock-release-delay=169h":   "concurrency.spacing: 168h, the longest there is. ",
		"--drain-timeout=168h":        "drain.timeout: 168h",
		"--drain-timeout=169h":        "drain.timeout: 168h, the longest there is",
		"--drain-delay=24h":           "drain.leadTime: 24h. ",
		"--drain-delay=25h":           "drain.leadTime: 24h, the longest there is. ",
		"--drain-grace-period=604800": "drain.gracePeriod: 168h. ",
		"--drain-grace-period=604801": "drain.gracePeriod: 168h, the longest there is. ",
	} {
		t.Run(arg, func(t *testing.T) {
			c, err := convert(makeInstallation(arg))
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(c.report.carried, func(l line) bool { return l.subject == arg })
			if i < 0 || !strings.HasPrefix(c.report.carried[i].how, want) || !strings.HasSuffix(want, " ") && c.report.carried[i].how != want {
				t.Errorf("want %q in the report: %v", want, c.report.carried)
			}
		})
	}
}

// Durations are written as 10m, not 10m0s.
func TestConvert_DurationsAreShort(t *testing.T) {
	c, err := convert(makeInstallation("--drain-delay=10m", "--drain-timeout=1h", "--lock-release-delay=10m", "--end-time=06:59:59"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := c.write(&text); err != nil || strings.Contains(text.String(), "m0s") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

func TestConvert_SentinelFiles(t *testing.T) {
	if diff := cmp.Diff(sentinel.Defaults, watchedFiles); diff != "" {
		t.Errorf("the agent watches other files (-agent +here):\n%s", diff)
	}
	for file, want := range map[string]string{
		"/run/reboot-required":     "carried",
		"/var/run/reboot-needed":   "carried",
		"/var/run/please":          "--sentinel-file=/run/please,",
		"/var/lib/patches//reboot": "--sentinel-file=/var/lib/patches/reboot,",
	} {
		t.Run(file, func(t *testing.T) {
			c, err := convert(makeInstallation("--reboot-sentinel=" + file))
			if err != nil {
				t.Fatal(err)
			}
			if want == "carried" {
				if len(c.report.open) > 0 {
					t.Errorf("the agent watches it, and the report has %v", c.report.open)
				}
				return
			}
			if len(c.report.open) != 1 || !strings.Contains(c.report.open[0].how, want) {
				t.Errorf("want %q in the report: %v", want, c.report.open)
			}
		})
	}
}

func TestConvert_UnknownFlagsAreReported(t *testing.T) {
	c, err := convert(makeInstallation("--period=1h", "--reboot-harder", "very", "--loud=yes", "lost", "-x", "--", "--concurrency=7"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"--reboot-harder very", "--loud=yes", `"lost"`, "-x", `"--concurrency=7"`}
	var got []string
	for _, l := range c.flags.stray {
		got = append(got, l.subject)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if limit := c.policy.Spec.MaxUnavailableOrDefault(); limit.IntValue() != 1 {
		t.Errorf("the limit is %s, but an argument is not a flag", limit.String())
	}
}

// The converter must not write a policy that the API server refuses because of its size.
func TestConvert_NodesThatNoSelectorCanHold(t *testing.T) {
	expressions := func(n int) (all []corev1.NodeSelectorRequirement) {
		for i := range n {
			all = append(all, corev1.NodeSelectorRequirement{Key: fmt.Sprintf("example.com/%d", i), Operator: corev1.NodeSelectorOpExists})
		}
		return all
	}
	names := func(n int) []corev1.NodeSelectorRequirement {
		r := corev1.NodeSelectorRequirement{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpNotIn}
		for i := range n {
			r.Values = append(r.Values, fmt.Sprintf("node-%d", i))
		}
		return []corev1.NodeSelectorRequirement{r}
	}
	labelled := func(n int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprintf("example.com/%d", i)] = "yes"
		}
		return all
	}
	tooLarge := func(object string) string {
		return "the selector of these pods' nodes is too large: it has " + object + ". Label the nodes, select them by that label, and convert again"
	}
	for name, tc := range map[string]struct {
		labels     map[string]string
		affinity   []corev1.NodeSelectorRequirement
		intolerant bool // does not tolerate the control plane's taint, which needs another expression
		want       string
	}{
		"as many terms as a policy allows": {labelled(32), append(expressions(7), names(64)...), false, ""},
		"expressions":                      {nil, expressions(9), false, tooLarge("9 expressions; a policy takes 8")},
		"expressions, with ours":           {nil, expressions(8), true, tooLarge("9 expressions; a policy takes 8")},
		"values":                           {nil, names(65), false, tooLarge("65 values of kubernetes.io/hostname; a policy takes 64")},
		"labels":                           {labelled(33), nil, false, tooLarge("33 labels; a policy takes 32")},
	} {
		t.Run(name, func(t *testing.T) {
			k := makeInstallation()
			pod := &k.daemonSet.Spec.Template.Spec
			pod.NodeSelector = tc.labels
			pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: tc.affinity}},
			}}}
			if tc.intolerant {
				pod.Tolerations = nil
			}
			_, err := convert(k)
			if (err != nil || tc.want != "") && fmt.Sprint(err) != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestConvert_SecretsAreNotShown(t *testing.T) {
	k := makeInstallation("--notify-url=slack://token", "--slack-hook-url=https://hooks.slack.com/services/token")
	k.container.Env = []corev1.EnvVar{{Name: "KURED_NOTIFY_URL", Value: "teams://token"}}
	c, err := convert(k)
	if err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprint(c.report); strings.Contains(all, "token") {
		t.Errorf("the report shows a secret: %s", all)
	}
}

// Some characters other than a line feed end a line in YAML, and with it a comment.
func TestConvert_ANameStaysInItsComment(t *testing.T) {
	for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		k := makeInstallation()
		k.daemonSet.Name = "kured" + end + "more: yes"
		policies, _, err := Convert([]appsv1.DaemonSet{k.daemonSet})
		if err != nil {
			t.Fatal(err)
		}
		var policy map[string]any
		if err := yaml.Unmarshal([]byte(policies), &policy); err != nil || len(policy) != 4 {
			t.Errorf("after %q: %v, %v", end, policy, err)
		}
	}
}

// A line break in a flag or in the lock annotation must not start a new line in the report.
func TestConvert_EachThingIsOneLineOfTheReport(t *testing.T) {
	k := makeInstallation("--loud=\nCarried over", "--period=1h")
	k.daemonSet.Annotations = map[string]string{"weave.works/kured-node-lock": `{"nodeID":"n1\nNot needed any more"}`}
	_, report, err := Convert([]appsv1.DaemonSet{k.daemonSet})
	if err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{titleCarried, titleUnneeded} {
		if n := strings.Count(report, "\n"+title); n != 1 {
			t.Errorf("%d lines begin with %q:\n%s", n, title, report)
		}
	}
}

// If a policy cannot express a setting, the result must not silently be less strict: kured never
// reboots in these cases.
func TestConvert_NeverStaysNever(t *testing.T) {
	for name, args := range map[string][]string{
		"no day":                             {"--reboot-days="},
		"every pod blocks":                   {"--blocking-pod-selector=a=b", "--blocking-pod-selector="},
		"no days, and hours around midnight": {"--reboot-days=", "--start-time=22:00", "--end-time=4:00"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := convert(makeInstallation(args...))
			if err != nil {
				t.Fatal(err)
			}
			if c.policy.Spec.Pause == nil || c.policy.Spec.Pause.Reason == "" {
				t.Errorf("the policy is not paused: %+v", c.policy.Spec)
			}
		})
	}
}

func TestConvert_BadValuesAreOneSentence(t *testing.T) {
	values := make([]string, 65)
	for i := range values {
		values[i] = strconv.Itoa(i)
	}
	many := strings.Join(values, ",")
	for arg, want := range map[string]string{
		"--drain-timeout=soon":     `--drain-timeout is "soon", with which kured does not start: must be a duration like "30s" or "5m"`,
		"--concurrency=many":       `--concurrency is "many", with which kured does not start: must be an integer`,
		"--alert-filter-regexp=(":  "--alert-filter-regexp is \"(\", with which kured does not start: error parsing regexp: missing closing ): `(`",
		"--reboot-days=someday":    `--reboot-days "someday" is not a day that kured knows, such as mon`,
		"--reboot-days=7":          `--reboot-days "7" is not a day that kured knows, such as mon`,
		"--start-time=noon":        `--start-time "noon" is not a time of day that kured knows, such as 22:00 or 10pm`,
		"--start-time=23:59:59":    "--start-time 23:59:59 and --end-time 23:59:59 leave less than a minute a day, in which kured almost never looks: correct them first",
		"--time-zone=Mars/Olympus": `--time-zone "Mars/Olympus" is not a time zone, so kured does not start`,
		"--prometheus-url=https://me:secret@p": "--prometheus-url contains a name or a password, which a policy may not: remove them and convert again, and put them into " +
			"a Secret for secretRef of the gate",
		"--prometheus-url=https://p/?a=b":             "--prometheus-url has a ? or #, which the address of a server must not have: remove it and convert again",
		"--prometheus-url=prometheus":                 `--prometheus-url "prometheus" must begin with http:// or https:// and name a host; it blocks kured forever`,
		"--reboot-method=prayer":                      `--reboot-method "prayer" is neither command nor signal, and kured does not start with it`,
		"--drain-timeout":                             "--drain-timeout has no value, and kured does not start without one",
		"--drain-pod-selector=a=b=c":                  `--drain-pod-selector "a=b=c" is not a label selector, so kured drains nothing: found '=', expected: ',' or 'end of string'`,
		"--drain-pod-selector=rank>3":                 `--drain-pod-selector "rank>3": a policy cannot compare numbers: rank>3`,
		"--blocking-pod-selector=a in (" + many + ")": `--blocking-pod-selector "a in (` + many + `)": it has 65 values of a; a policy takes 64`,
		"--drain-pod-selector=a in (" + many + ")":    `--drain-pod-selector "a in (` + many + `)": it has 65 values of a; a policy takes 64`,
		"--blocking-pod-selector=a,b,c,d,e,f,g,h,i":   `--blocking-pod-selector "a,b,c,d,e,f,g,h,i": it has 9 expressions; a policy takes 8`,
	} {
		t.Run(arg, func(t *testing.T) {
			if _, err := convert(makeInstallation(arg)); err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestPolicyName(t *testing.T) {
	taken := map[string]bool{}
	var got []string
	for range 3 {
		got = append(got, policyName(makeInstallation(), taken))
	}
	for _, name := range []string{"Kured_Blue", strings.Repeat("long-", 20), "...", "kured-8", "kured"} {
		k := makeInstallation()
		k.daemonSet.Name = name
		got = append(got, policyName(k, taken))
	}
	want := []string{"kured", "kube-system-kured", "kured-3", "kured-blue", strings.Repeat("long-", 12) + "lon", "kube-system", "kured-8", "kured-9"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
