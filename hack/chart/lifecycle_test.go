package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/controllers"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// The packaged chart is installed, upgraded and uninstalled by the real helm on a real control
// plane.
func TestChart_InstallUpgradeUninstall(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	helm(t, "package", "config/chart", "--version=1.2.3", "--app-version=v1.2.3", "--destination="+folder)
	chart := filepath.Join(folder, "reboot-operator-1.2.3.tgz")
	cluster, err := embedded.Start(t.Context(), embedded.Options{Bare: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := cluster.Kubectl(t.Context(), nil, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	flags := func(args ...string) []string {
		return append(args, "--kubeconfig="+cluster.Kubeconfig(), "--namespace=ops")
	}
	const image = "-o=jsonpath={.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].resources.limits.memory}"

	notes := helm(t, flags("install", "rebooter", chart, "--create-namespace", "--values="+file(t, "policies: {workers: {mode: DryRun}, others: {}}"))...)
	for _, want := range []string{"reboot-operator v1.2.3 for Kubernetes v1.3", "the agents act as their ", "kubectl get pods -n ops", "kubectl label namespace ops pod-security.kubernetes.io/enforce=privileged"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not contain %q:\n%s", want, notes)
		}
	}
	if got, want := kubectl("get", "daemonset", "-n", "ops", "reboot-operator-agent", image), "ghcr.io/reboot-operator/agent:v1.2.3 96Mi"; got != want {
		t.Errorf("the agents run %s, want %s", got, want)
	}
	if got, want := kubectl("get", "rebootpolicies", "-o=jsonpath={.items[*].metadata.name} {.items[*].spec.mode}"), "others workers DryRun"; got != want {
		t.Errorf("policies %s, want %s", got, want)
	}

	// The CustomResourceDefinition of another release blocks an upgrade until it is replaced.
	kubectl("patch", "crd", "rebootpolicies.reboot-operator.io", "--type=json", `-p=[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/hooks"}]`)
	upgrade := flags("upgrade", "rebooter", chart, "--values="+file(t, "{policies: {workers: {mode: Enforce}}, agent: {resources: {limits: {memory: 1Gi}}}}"))
	if out, err := run(t, upgrade...); err == nil || !strings.Contains(out, "helm show crds CHART | kubectl apply --server-side --force-conflicts -f -") {
		t.Errorf("an upgrade with another release's kind: %v: %s", err, out)
	}
	if _, err := cluster.Kubectl(t.Context(), []byte(helm(t, "show", "crds", chart)), "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	kubectl("patch", "rebootpolicy", "workers", "--type=merge", `-p={"spec":{"pause":{"reason":"stop"}}}`) // docs/operations.md says that this pause stays
	helm(t, upgrade...)
	if got, want := kubectl("get", "daemonset", "-n", "ops", "reboot-operator-agent", image), "ghcr.io/reboot-operator/agent:v1.2.3 1Gi"; got != want {
		t.Errorf("after the upgrade the agents run %s, want %s", got, want)
	}
	if got, want := kubectl("get", "rebootpolicies", "-o=jsonpath={.items[*].metadata.name} {.items[*].spec.mode} {.items[*].spec.pause.reason}"), "workers Enforce stop"; got != want {
		t.Errorf("after the upgrade there are policies %s, want %s", got, want)
	}

	// The API server must accept the examples in the documentation, directly or as values of this
	// chart.
	for name, manifest := range examples(t, chart) {
		if _, err := cluster.Kubectl(t.Context(), []byte(manifest), "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"); err != nil {
			t.Errorf("docs/examples/%s: %v", name, err)
		}
	}

	// Nothing is removed while the managers have not ended a granted reboot.
	kubectl("patch", "rebootpolicy", "workers", "--type=merge", `-p={"metadata":{"finalizers":["reboot-operator.io/grants"]}}`)
	kubectl("patch", "rebootpolicy", "workers", "--subresource=status", "--type=merge", `-p={"status":{"limit":1,"seq":1,"grants":[{"node":"n1","seq":1,"at":"2026-11-22T00:00:00Z"}]}}`)
	uninstalled := make(chan string, 1)
	go func() {
		out, err := run(t, flags("uninstall", "rebooter")...)
		uninstalled <- fmt.Sprintf("%v: %s", err, out)
	}()
	const job = "job/reboot-operator-uninstall"
	for err := errors.New("no look yet"); err != nil; _, err = cluster.Kubectl(t.Context(), nil, "get", "-n", "ops", job) {
		select {
		case out := <-uninstalled:
			t.Fatalf("uninstalled before the hook has run: %s", out)
		case <-time.After(100 * time.Millisecond):
		}
	}
	if got, want := kubectl("get", "-n", "ops", job, "-o=jsonpath={.spec.template.spec.serviceAccountName} {.spec.template.spec.containers[0].args[0]}"), "reboot-operator-uninstall --remove-policies=4m30s"; got != want {
		t.Errorf("the hook is %s, want %s", got, want)
	}
	removePolicies(t, cluster, func() {
		if got := kubectl("get", "-n", "ops", "deployments", "-o=name"); got != "deployment.apps/reboot-operator-manager\n" {
			t.Errorf("the manager is %q while it has to end a reboot", got)
		}
		kubectl("patch", "rebootpolicy", "workers", "--type=merge", `-p={"metadata":{"finalizers":null}}`)
	})
	now := time.Now().UTC().Format(time.RFC3339)
	kubectl("patch", "-n", "ops", job, "--subresource=status", "--type=merge", fmt.Sprintf(`-p={"status":{"startTime":%q,"completionTime":%q,"succeeded":1,"conditions":[
{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":%q},{"type":"Complete","status":"True","lastTransitionTime":%q}]}}`, now, now, now, now))
	if out := <-uninstalled; !strings.HasPrefix(out, "<nil>: ") {
		t.Errorf("helm uninstall: %s", out)
	}
	remaining := kubectl("get", "-A", "-o=name", "deployments,daemonsets,poddisruptionbudgets,services,serviceaccounts,clusterroles,clusterrolebindings,roles,rolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,rebootpolicies,crd")
	for line := range strings.Lines(remaining) {
		if strings.Contains(line, "reboot-operator") && strings.TrimSpace(line) != "customresourcedefinition.apiextensions.k8s.io/rebootpolicies.reboot-operator.io" {
			t.Errorf("left over: %s", line)
		}
	}
}

// What `make deploy` has applied becomes a release by the command of the chart's README. Without its
// flags helm refuses before it writes anything.
func TestChart_TakesOverWhatMakeHasDeployed(t *testing.T) {
	t.Parallel()
	cluster, err := embedded.Start(t.Context(), embedded.Options{Bare: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	kubectl := func(stdin string, args ...string) string {
		t.Helper()
		out, err := cluster.Kubectl(t.Context(), []byte(stdin), args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	kubectl(manifest(t, "config/default"), "apply", "--server-side", "-f", "-")
	install := []string{"install", "rebooter", "config/chart", "--kubeconfig=" + cluster.Kubeconfig(), "--namespace=reboot-operator-system", "--set=image.tag=v1.2.4"}
	const object, state = "deployment/reboot-operator-manager", `-o=jsonpath={.metadata.annotations.meta\.helm\.sh/release-name} {.spec.template.spec.containers[0].image}`
	if out, err := run(t, install...); err == nil || !strings.Contains(out, "invalid ownership metadata") {
		t.Errorf("without flags: %v: %s", err, out)
	}
	if got, want := kubectl("", "get", "-n", "reboot-operator-system", object, state), " ghcr.io/reboot-operator/manager:v1.2.3"; got != want {
		t.Errorf("after the refusal there is %q, want %q", got, want)
	}
	helm(t, append(install, "--take-ownership", "--force-conflicts")...)
	if got, want := kubectl("", "get", "-n", "reboot-operator-system", object, state), "rebooter ghcr.io/reboot-operator/manager:v1.2.4"; got != want {
		t.Errorf("after the installation there is %q, want %q", got, want)
	}
	helm(t, "upgrade", "rebooter", "config/chart", "--kubeconfig="+cluster.Kubeconfig(), "--namespace=reboot-operator-system", "--set=image.tag=v1.2.5")
	if got, want := kubectl("", "get", "-n", "reboot-operator-system", object, state), "rebooter ghcr.io/reboot-operator/manager:v1.2.5"; got != want {
		t.Errorf("after the upgrade there is %q, want %q", got, want)
	}
}

// removePolicies does what the manager does with --remove-policies, by the rights of the hook. It waits
// for the end of a reboot that is under way, and then for a manager.
func removePolicies(t *testing.T, cluster *embedded.Cluster, end func()) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:ops:reboot-operator-uninstall"}
	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := controllers.RemovePolicies(t.Context(), c, 2*time.Second, &out); err == nil || !strings.HasPrefix(err.Error(), "waiting for the managers to end the granted reboots of workers (nodes: n1), after 2s. ") {
		t.Errorf("with a reboot under way: %v", err)
	}
	if _, err := cluster.Kubectl(t.Context(), nil, "patch", "rebootpolicy", "workers", "--subresource=status", "--type=merge", `-p={"status":{"grants":null}}`); err != nil {
		t.Fatal(err)
	}
	if err := controllers.RemovePolicies(t.Context(), c, 2*time.Second, &out); err == nil ||
		err.Error() != "waiting for a manager to let policies without granted reboots go: workers, after 2s. Does a manager run? If none can, see Remove in docs/install.md" {
		t.Errorf("without a reboot and without a manager: %v", err)
	}
	end()
	if err := controllers.RemovePolicies(t.Context(), c, time.Minute, &out); err != nil || !strings.HasSuffix(out.String(), "all policies are removed\n") {
		t.Errorf("after its end: %v\n%s", err, out.String())
	}
}

// examples returns the RebootPolicies of docs/examples by file: those in the file, or those that
// the chart renders from the values in it.
func examples(t *testing.T, chart string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testenv.Root(), "docs", "examples", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("docs/examples is empty (%v)", err)
	}
	policies := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		for _, o := range parse(t, string(text)) {
			for _, values := range []any{at(t, o, "spec.values"), at(t, o, "spec.source.helm.valuesObject")} {
				if values != nil {
					rendered := helm(t, "template", "x", chart, "--kube-version=1.36", "--values="+file(t, encode(t, values)), "--show-only=templates/policies.yaml")
					policies[name] += "---\n" + rendered
				}
			}
			if o["kind"] == "RebootPolicy" {
				policies[name] += "---\n" + encode(t, o)
			}
		}
		if policies[name] == "" {
			t.Errorf("%s has no policy and no values of the chart", path)
		}
	}
	return policies
}

func encode(t *testing.T, from any) string {
	t.Helper()
	text, err := yaml.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
