package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// object is a manifest. It is identified by its kind, namespace and name.
type object map[string]any

// All generated files must match their sources.
func TestChart_IsUpToDate(t *testing.T) {
	t.Parallel()
	files, err := generate(testenv.Root())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "chart", name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("config/chart/%s is out of date (%v): make manifests\n%s", name, err, cmp.Diff(string(want), string(got)))
		}
	}
}

// With default values the chart must have the objects that `make deploy` applies, except the
// namespace, which Helm creates.
func TestChart_IsWhatKustomizeBuilds(t *testing.T) {
	t.Parallel()
	for version, config := range map[string]string{
		"1.31.0": "config/overlays/rbac-fallback", "1.35.9": "config/overlays/rbac-fallback", "v1.35.2-eks-1a2b3c": "config/overlays/rbac-fallback",
		"1.36.0": "config/default", "v1.36.1-gke.100": "config/default", "1.40.0": "config/default",
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			got := parse(t, helm(t, "template", "x", "config/chart", "--namespace=reboot-operator-system", "--include-crds", "--no-hooks", "--kube-version="+version, "--set=image.tag=v1.2.3"))
			want := deployed(t, config)
			delete(want, "Namespace reboot-operator-system")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-%s +chart):\n%s", config, diff)
			}
		})
	}
}

// The optional parts of the chart must match the kustomizations that are applied separately.
func TestChart_OptionsAreTheKustomizations(t *testing.T) {
	t.Parallel()
	args := []string{"template", "x", "config/chart", "--no-hooks", "--namespace=reboot-operator-system", "--set=image.tag=v1.2.3"}
	without := parse(t, helm(t, args...))
	for folder, set := range map[string]string{
		"config/prometheus":     "serviceMonitor.enabled=true,podMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true",
		"config/network-policy": "networkPolicy.enabled=true",
		"config/fleetlock":      "fleetlock.enabled=true",
	} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			got := parse(t, helm(t, append(slices.Clone(args), "--set="+set)...))
			for name := range without {
				delete(got, name)
			}
			built, err := build(testenv.Root(), folder)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parse(t, string(built.text())), got); diff != "" {
				t.Errorf("(-%s +chart):\n%s", folder, diff)
			}
		})
	}
}

// deployed returns what `make deploy` applies with the images of release v1.2.3.
func deployed(t *testing.T, config string) map[string]object {
	t.Helper()
	return parse(t, manifest(t, config))
}

// manifest is the text of what `make deploy` applies with the images of release v1.2.3.
func manifest(t *testing.T, config string) string {
	t.Helper()
	const images = "ghcr.io/reboot-operator/"
	command := exec.CommandContext(t.Context(), "hack/manifest.sh", config, images+"manager:v1.2.3", images+"agent:v1.2.3")
	command.Dir = testenv.Root()
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestChart_Values(t *testing.T) {
	t.Parallel()
	const manager, agent = "Deployment elsewhere/reboot-operator-manager", "DaemonSet elsewhere/reboot-operator-agent"
	for name, tc := range map[string]struct {
		values, of, path string
		want             string // as JSON
	}{
		"an image":                   {`{agent: {image: {registry: r, repository: a, tag: "1"}}}`, agent, "spec.template.spec.containers[0].image", `"r/a:1"`},
		"a mirror":                   {`{image: {repository: r.example:5000/m}}`, manager, "spec.template.spec.containers[0].image", `"r.example:5000/m/manager:v1.2.3"`},
		"a digest":                   {`{manager: {image: {registry: r, repository: m, digest: "sha256:` + strings.Repeat("0", 64) + `"}}}`, manager, "spec.template.spec.containers[0].image", `"r/m@sha256:` + strings.Repeat("0", 64) + `"`},
		"a registry":                 {`{image: {registry: mirror.example:5000}}`, agent, "spec.template.spec.containers[0].image", `"mirror.example:5000/reboot-operator/agent:v1.2.3"`},
		"its own registry":           {`{agent: {image: {registry: r.example}}}`, agent, "spec.template.spec.containers[0].image", `"r.example/reboot-operator/agent:v1.2.3"`},
		"its own repository":         {`{agent: {image: {repository: team/agent}}, image: {registry: r.example}}`, agent, "spec.template.spec.containers[0].image", `"r.example/team/agent:v1.2.3"`},
		"its own tag":                {`{manager: {image: {tag: v1.2.4}}}`, manager, "spec.template.spec.containers[0].image", `"ghcr.io/reboot-operator/manager:v1.2.4"`},
		"its own digest":             {`{manager: {image: {digest: "sha256:` + strings.Repeat("0", 64) + `"}}}`, manager, "spec.template.spec.containers[0].image", `"ghcr.io/reboot-operator/manager@sha256:` + strings.Repeat("0", 64) + `"`},
		"a common label":             {`{commonLabels: {team: nodes, app.kubernetes.io/name: other}}`, "ClusterRole reboot-operator-manager", "metadata.labels", `{"app.kubernetes.io/component":"manager","app.kubernetes.io/name":"reboot-operator","app.kubernetes.io/part-of":"reboot-operator","team":"nodes"}`},
		"a label of all pods":        {`{commonLabels: {team: nodes}}`, agent, "spec.template.metadata.labels.team", `"nodes"`},
		"of policies as well":        {`{commonLabels: {team: nodes}, policies: {workers: {}}}`, "RebootPolicy workers", "metadata.labels", `{"app.kubernetes.io/part-of":"reboot-operator","team":"nodes"}`},
		"of the hook as well":        {`{commonLabels: {team: nodes}}`, "Job elsewhere/reboot-operator-uninstall", "spec.template.metadata.labels.team", `"nodes"`},
		"a ServiceAccount":           {`{agent: {serviceAccount: {annotations: {a: b}}}}`, "ServiceAccount elsewhere/reboot-operator-agent", "metadata.annotations", `{"a":"b"}`},
		"only that ServiceAccount":   {`{agent: {serviceAccount: {annotations: {a: b}}}}`, "ServiceAccount elsewhere/reboot-operator-manager", "metadata.annotations", `null`},
		"an interval":                {`{serviceMonitor: {enabled: true, interval: 30s}}`, "ServiceMonitor elsewhere/reboot-operator-manager", "spec.endpoints[0].interval", `"30s"`},
		"the agents' interval":       {`{podMonitor: {enabled: true, interval: 1m}}`, "PodMonitor elsewhere/reboot-operator-agent", "spec.podMetricsEndpoints[0].interval", `"1m"`},
		"a longer end":               {`{uninstall: {timeout: 20m}}`, "Job elsewhere/reboot-operator-uninstall", "spec.template.spec.containers[0].args[0]", `"--remove-policies=20m"`},
		"pull secrets":               {`{image: {pullSecrets: [{name: s}]}}`, agent, "spec.template.spec.imagePullSecrets", `[{"name":"s"}]`},
		"pull secrets of the hook":   {`{image: {pullSecrets: [{name: s}]}}`, "Job elsewhere/reboot-operator-uninstall", "spec.template.spec.imagePullSecrets", `[{"name":"s"}]`},
		"pull secrets of all charts": {`{global: {imagePullSecrets: [s, {name: t}]}}`, manager, "spec.template.spec.imagePullSecrets", `[{"name":"s"},{"name":"t"}]`},
		"its own pull secrets":       {`{image: {pullSecrets: [{name: s}]}, global: {imagePullSecrets: [t]}}`, manager, "spec.template.spec.imagePullSecrets", `[{"name":"s"}]`},
		"a registry of all charts":   {`{global: {imageRegistry: r.example}}`, manager, "spec.template.spec.containers[0].image", `"r.example/reboot-operator/manager:v1.2.3"`},
		"its own registry before that of all charts": {`{image: {registry: r.example}, global: {imageRegistry: other.example}}`, "Job elsewhere/reboot-operator-uninstall", "spec.template.spec.containers[0].image", `"r.example/reboot-operator/manager:v1.2.3"`},
		"pull policy":          {`{image: {pullPolicy: Always}}`, manager, "spec.template.spec.containers[0].imagePullPolicy", `"Always"`},
		"one more argument":    {`{agent: {extraArgs: ["--engines=auto,kernel"]}}`, agent, "spec.template.spec.containers[0].args[4]", `"--engines=auto,kernel"`},
		"one more variable":    {`{manager: {extraEnv: [{name: A, value: b}]}}`, manager, "spec.template.spec.containers[0].env[2]", `{"name":"A","value":"b"}`},
		"a limit":              {`{agent: {resources: {limits: {memory: 1Gi}}}}`, agent, "spec.template.spec.containers[0].resources.limits", `{"memory":"1Gi"}`},
		"FleetLock":            {`{fleetlock: {enabled: true}}`, manager, "spec.template.spec.containers[0].args[3]", `"--fleetlock-bind-address=:8444"`},
		"FleetLock's requests": {`{fleetlock: {enabled: true, requests: true}}`, manager, "spec.template.spec.containers[0].args[4]", `"--fleetlock-requests"`},
		"FleetLock's source":   {`{fleetlock: {enabled: true, checkSource: true}}`, manager, "spec.template.spec.containers[0].args[4]", `"--fleetlock-check-source"`},
		"FleetLock's Secret":   {`{fleetlock: {enabled: true, secretName: s}}`, manager, "spec.template.spec.volumes[0]", `{"name":"fleetlock","secret":{"secretName":"s"}}`},
		"FleetLock's address":  {`{fleetlock: {enabled: true, clusterIP: 10.96.0.15}}`, "Service elsewhere/reboot-operator-fleetlock", "spec.clusterIP", `"10.96.0.15"`},
		"FleetLock's ports":    {`{fleetlock: {enabled: true, secretName: s}}`, "Service elsewhere/reboot-operator-fleetlock", "spec.ports[0].port", `443`},
		"FleetLock's network":  {`{fleetlock: {enabled: true}, networkPolicy: {enabled: true}}`, "NetworkPolicy elsewhere/reboot-operator-fleetlock", "spec.ingress[0].ports[0].port", `"fleetlock"`},
		"replicas":             {`{manager: {replicas: 3}}`, manager, "spec.replicas", `3`},
		"no priority class":    {`{agent: {priorityClassName: ""}}`, agent, "spec.template.spec.priorityClassName", `null`},
		"a priority class":     {`{manager: {priorityClassName: p}}`, manager, "spec.template.spec.priorityClassName", `"p"`},
		"fewer nodes":          {`{agent: {nodeSelector: {pool: gpu}}}`, agent, "spec.template.spec.nodeSelector", `{"kubernetes.io/os":"linux","pool":"gpu"}`},
		"tolerations":          {`{agent: {tolerations: [{key: a}]}}`, agent, "spec.template.spec.tolerations", `[{"key":"a"}]`},
		"affinity":             {`{manager: {affinity: {podAffinity: {}}}}`, manager, "spec.template.spec.affinity", `{"podAffinity":{}}`},
		"a label of pods":      {`{agent: {podLabels: {a: b, app.kubernetes.io/name: other}}}`, agent, "spec.template.metadata.labels", `{"a":"b","app.kubernetes.io/component":"agent","app.kubernetes.io/name":"reboot-operator"}`},
		"an annotation":        {`{manager: {podAnnotations: {a: b}}}`, manager, "spec.template.metadata.annotations.a", `"b"`},
		"a volume":             {`{agent: {extraVolumes: [{name: v}]}}`, agent, "spec.template.spec.volumes[6]", `{"name":"v"}`},
		"its mount":            {`{manager: {extraVolumeMounts: [{name: v, mountPath: /v}]}}`, manager, "spec.template.spec.containers[0].volumeMounts", `[{"mountPath":"/v","name":"v"}]`},
		"a faster rollout":     {`{agent: {maxUnavailable: 3}}`, agent, "spec.updateStrategy.rollingUpdate.maxUnavailable", `3`},
		"a label of monitors":  {`{podMonitor: {enabled: true, labels: {release: kps}}}`, "PodMonitor elsewhere/reboot-operator-agent", "metadata.labels.release", `"kps"`},
		"who reads metrics":    {`{networkPolicy: {enabled: true, from: [{ipBlock: {cidr: 10.0.0.0/8}}]}}`, "NetworkPolicy elsewhere/reboot-operator-agent", "spec.ingress[0].from", `[{"ipBlock":{"cidr":"10.0.0.0/8"}}]`},
		"a policy":             {`{policies: {workers: {concurrency: {maxUnavailable: 2}}}}`, "RebootPolicy workers", "spec", `{"concurrency":{"maxUnavailable":2}}`},
		"a name like a number": {`{policies: {"1": {concurrency: {maxUnavailable: 2}}}}`, "RebootPolicy 1", "spec", `{"concurrency":{"maxUnavailable":2}}`},
		"all agents at once":   {`{agent: {maxUnavailable: 100%}}`, agent, "spec.updateStrategy.rollingUpdate.maxUnavailable", `"100%"`},
		"a policy of defaults": {`{policies: {workers: {}}}`, "RebootPolicy workers", "spec", `{}`},
		"part of a chart":      {`{enabled: true, global: {a: b}}`, manager, "spec.replicas", `2`},
		"identity":             {`{identity: serviceaccount}`, agent, "spec.template.spec.containers[0].args[4]", `"--identity=serviceaccount"`},
		"namespace":            {`{}`, "ClusterRoleBinding reboot-operator-agent", "subjects[0].namespace", `"elsewhere"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered := parse(t, helm(t, "template", "x", "config/chart", "--namespace=elsewhere", "--kube-version=1.36", "--set=image.tag=v1.2.3", "--values="+file(t, tc.values)))
			if rendered[tc.of] == nil {
				t.Fatalf("%s is missing", tc.of)
			}
			if got, err := json.Marshal(at(t, rendered[tc.of], tc.path)); err != nil || string(got) != tc.want {
				t.Errorf("%s of %s is %s (%v), want %s", tc.path, tc.of, got, err, tc.want)
			}
		})
	}
}

// A namespace may look like a number.
func TestChart_NamespaceLikeANumber(t *testing.T) {
	t.Parallel()
	rendered := parse(t, helm(t, "template", "x", "config/chart", "--namespace=1234", "--kube-version=1.36", "--set=image.tag=v1.2.3"))
	if rendered["Deployment 1234/reboot-operator-manager"] == nil {
		t.Error("the Deployment's namespace is not the text 1234")
	}
	if got := at(t, rendered["ClusterRoleBinding reboot-operator-agent"], "subjects[0].namespace"); got != "1234" {
		t.Errorf("the agents' ServiceAccount is bound in namespace %#v", got)
	}
}

// A value set to null must work like an unset one, and must not add objects.
func TestChart_ValuesThatAreEmpty(t *testing.T) {
	t.Parallel()
	all, err := values(filepath.Join(testenv.Root(), "config", "chart", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	template := []string{"template", "x", "config/chart", "--no-hooks", "--set=image.tag=v1.2.3"}
	args := slices.Clone(template)
	for _, v := range all {
		if !slices.Contains([]string{"policies", "image.tag", "image.repository", "identity", "crds.check"}, v.name) { // the last three are needed
			args = append(args, "--set="+v.name+"=null")
		}
	}
	want := parse(t, helm(t, template...))
	for _, policies := range []string{"policies=null", "policies.workers=null"} { // the second removes a policy of another values file
		got := parse(t, helm(t, append(args, "--set="+policies)...))
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
			t.Errorf("%s (-default +empty):\n%s", policies, diff)
		}
	}
}

// Values that cannot work must be refused with a sentence that says what to do.
func TestChart_Refuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no release":                   {nil, "ghcr.io/reboot-operator/manager:unreleased is not the image of a release: set image.tag or manager.image"},
		"latest":                       {[]string{"--set=image.tag=latest"}, "is not the image of a release"},
		"one latest":                   {[]string{"--set=image.tag=v1,agent.image.tag=latest"}, "ghcr.io/reboot-operator/agent:latest is not the image of a release: set image.tag or agent.image"},
		"an unknown word":              {[]string{"--set=image.tag=v1,agent.tollerations=[]"}, "tollerations"},
		"an unknown identity":          {[]string{"--set=image.tag=v1,identity=me"}, "identity"},
		"maxUnavailable of 0 agents":   {[]string{"--set=image.tag=v1,agent.maxUnavailable=0%"}, "/agent/maxUnavailable"},
		"more than 100% of the agents": {[]string{"--set=image.tag=v1,agent.maxUnavailable=101%"}, "/agent/maxUnavailable"},
		"zero managers":                {[]string{"--set=image.tag=v1,manager.replicas=0"}, "/manager/replicas"},
		"an invalid name of a policy":  {[]string{"--set=image.tag=v1", `--set-json=policies={"Workers":{}}`}, "Workers"},
		"an unknown field":             {[]string{"--set=image.tag=v1", `--set-json=policies={"workers":{"window":[]}}`}, "policies.workers.window: a RebootPolicy has no such field"},
		"a nested unknown field": {
			[]string{"--set=image.tag=v1", `--set-json=policies={"workers":{"drain":{"rules":[{"podSelector":{"matchLabels":{"any":"x"}},"acton":"Skip"}]}}}`},
			"policies.workers.drain.rules[0].acton: a RebootPolicy has no such field",
		},
		"no registry":    {[]string{"--set=image.tag=v1,image.repository=null"}, "missing property 'repository'"},
		"no identity":    {[]string{"--set=image.tag=v1,identity=null"}, "missing property 'identity'"},
		"no manager":     {[]string{"--set=image.tag=v1,manager=null"}, "missing property 'manager'"},
		"no check":       {[]string{"--set=image.tag=v1,crds.check=null"}, "missing property 'check'"},
		"an old cluster": {[]string{"--set=image.tag=v1", "--kube-version=1.29.9"}, "which is incompatible with Kubernetes v1.29.9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, append([]string{"template", "x", "config/chart"}, tc.args...)...)
			if err == nil || !strings.Contains(out, tc.want) {
				t.Errorf("%v, want %q: %s", err, tc.want, out)
			}
		})
	}
}

// Values that people know from other charts must be refused with the name of the right one.
func TestChart_RefusesValuesOfOtherCharts(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`nodeSelector={"pool":"infra"}`: "set manager.nodeSelector or agent.nodeSelector", `tolerations=[{"operator":"Exists"}]`: "set manager.tolerations or agent.tolerations",
		`affinity={"nodeAffinity":{}}`: "set manager.affinity or agent.affinity", `priorityClassName="p"`: "set manager.priorityClassName or agent.priorityClassName",
		`podAnnotations={"a":"b"}`: "set manager.podAnnotations or agent.podAnnotations", `podLabels={"a":"b"}`: "set manager.podLabels or agent.podLabels",
		`extraArgs=["--v=2"]`: "set manager.extraArgs or agent.extraArgs", `extraEnv=[{"name":"A"}]`: "set manager.extraEnv or agent.extraEnv",
		`extraVolumes=[{"name":"v"}]`: "set manager.extraVolumes or agent.extraVolumes", `extraVolumeMounts=[{"name":"v"}]`: "set manager.extraVolumeMounts or agent.extraVolumeMounts",
		`resources={"limits":{"cpu":"1"}}`: "set manager.resources or agent.resources", `replicaCount=3`: "set manager.replicas instead", `replicas=3`: "set manager.replicas instead",
		`imagePullSecrets=[{"name":"s"}]`: "set image.pullSecrets instead", `fullnameOverride="x"`: "the names of the objects are fixed", `nameOverride="x"`: "the names of the objects are fixed",
		`namespaceOverride="x"`: "helm --namespace sets their namespace", `serviceAccount={"create":false,"name":"x"}`: "serviceAccount: the chart creates both ServiceAccounts",
		`manager.serviceAccount.create=false`: "manager.serviceAccount: the chart creates both ServiceAccounts", `agent.serviceAccount.name="x"`: "agent.serviceAccount: the chart creates both ServiceAccounts",
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, "template", "x", "config/chart", "--set=image.tag=v1", "--set-json="+value)
			if name, _, _ := strings.Cut(value, "="); err == nil || !strings.Contains(out, want) || !strings.Contains(out, strings.Split(name, ".")[0]) {
				t.Errorf("%v, want %q: %s", err, want, out)
			}
		})
	}
}

// The notes name the next steps. A checkout has no tag from which its files could be downloaded, so
// they must name a file of the checkout.
func TestChart_NotesNameTheNextSteps(t *testing.T) {
	t.Parallel()
	notes := helm(t, "install", "x", "config/chart", "--dry-run=client", "--set=image.tag=v1.2.3")
	for _, want := range []string{
		"\n  kubectl apply -f config/samples/dry-run.yaml   #", "\n  kubectl reboot doctor ", "build the plugin with: make build\n",
		"\n  https://github.com/reboot-operator/reboot-operator/tree/main/docs\n",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in %s", want, notes)
		}
	}
}

// The schema must know exactly the existing values, so that misspelled ones are refused.
func TestChart_SchemaHasEveryValue(t *testing.T) {
	t.Parallel()
	chart := filepath.Join(testenv.Root(), "config", "chart")
	all, err := values(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, v := range all {
		want = append(want, v.name)
	}
	text, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Ref                  string            `json:"$ref"`
		Properties           map[string]schema `json:"properties"`
		AdditionalProperties any               `json:"additionalProperties"`
		Defs                 map[string]schema `json:"$defs"`
	}
	var root schema
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	for name, section := range root.Properties {
		if section.Ref != "" {
			section = root.Defs[strings.TrimPrefix(section.Ref, "#/$defs/")]
		}
		for inner := range section.Properties {
			got = append(got, name+"."+inner)
		}
		switch {
		case name == "global", name == "enabled", root.Properties[name].Ref == "#/$defs/elsewhere": // values that Helm and parent charts set, and those of other charts
		case section.Properties == nil:
			got = append(got, name)
		case section.AdditionalProperties != false:
			t.Errorf("%s takes words that it does not know", name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-values.yaml +values.schema.json):\n%s", diff)
	}
	helm(t, "lint", "--strict", "config/chart", "--set=image.tag=v1.2.3")
}

// helm runs helm, which must succeed, and returns its output.
func helm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := run(t, args...)
	if err != nil {
		t.Fatalf("helm %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// run runs helm in the repository. It skips the test if `make helm` has not built helm, or fails it
// if HELM_REQUIRED is set, as in `make ci`.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program := filepath.Join(testenv.Root(), "bin", "helm", "helm")
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("HELM_REQUIRED") != "" {
			t.Fatalf("%s is missing, and HELM_REQUIRED is set: make helm", program)
		}
		testenv.NotShown(t, program+" is missing: make helm builds it")
	}
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir = testenv.Root()
	command.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := command.CombinedOutput()
	return string(out), err
}

// parse parses manifests, and returns them by "kind namespace/name".
func parse(t *testing.T, text string) map[string]object {
	t.Helper()
	all := map[string]object{}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatalf("%v in %s", err, document)
		}
		if o == nil {
			continue
		}
		name, _ := at(t, o, "metadata.name").(string)
		if namespace, ok := at(t, o, "metadata.namespace").(string); ok {
			name = namespace + "/" + name
		}
		kind, _ := o["kind"].(string)
		if all[kind+" "+name] != nil {
			t.Fatalf("%s %s is there twice", kind, name)
		}
		all[kind+" "+name] = o
	}
	return all
}

// at returns the value at a path such as spec.containers[0].args, or nil.
func at(t *testing.T, o object, path string) any {
	t.Helper()
	steps := jsonpath.New("")
	if err := steps.Parse("{." + path + "}"); err != nil {
		t.Fatal(err)
	}
	found, err := steps.FindResults(o)
	if err != nil || len(found[0]) == 0 {
		return nil
	}
	return found[0][0].Interface()
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
