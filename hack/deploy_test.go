package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// `make deploy` must only deploy published images whose content cannot change.
func TestManifest_RefusesImages(t *testing.T) {
	t.Parallel()
	const digest = "@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for image, want := range map[string]string{
		"registry.example.com:5000/manager":                 "means another image every day",
		"registry.example.com/manager:latest":               "means another image every day",
		"ghcr.io/reboot-operator/manager:unreleased":        "is a placeholder",
		"ghcr.io/reboot-operator/manager:dev":               "was never published",
		"ghcr.io/reboot-operator/manager:v0.1.0-3-g0e2c9cb": "was never published",
		"ghcr.io/reboot-operator/manager:v0.1.0-dirty":      "was never published",
		"ghcr.io/reboot-operator/manager:v0.1.0-rc.1":       "",
		"ghcr.io/reboot-operator/manager:v0.1.0":            "",
		"registry.example.com:5000/manager:0e2c9cb":         "",
		"registry.example.com/manager" + digest:             "",
	} {
		t.Run(image, func(t *testing.T) {
			t.Parallel()
			for _, args := range [][]string{{image, "r/agent:1"}, {"r/manager:1", image}} {
				out, err := script(t, nil, "manifest.sh", append([]string{"config/default"}, args...)...)
				switch {
				case want != "" && (err == nil || !strings.Contains(out, want) || strings.Contains(out, "kind:")):
					t.Errorf("%v: %s, want %q", err, out, want)
				case want == "" && (err != nil || !strings.Contains(out, "image: "+args[0]) || !strings.Contains(out, "image: "+args[1])):
					t.Errorf("%v: the images %s are not in %s", err, args, out)
				}
			}
		})
	}
}

// The manifests must match the ways in which the API server can restrict agents to their nodes.
func TestDeploy_ChoosesTheManifestsForTheServer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer, want string
		fails        bool
	}{
		"too old":         {`{"major": "1", "minor": "30"}`, "Kubernetes 1.30 is too old", true},
		"the oldest":      {`{"major": "1", "minor": "31"}`, "Kubernetes 1.31: deploying config/overlays/rbac-fallback", false},
		"a provider's":    {`{"major":"1","minor":"35+","gitVersion":"v1.35.2-eks-1"}`, "Kubernetes 1.35: deploying config/overlays/rbac-fallback", false},
		"by its own name": {`{"major": "1", "minor": "36"}`, "Kubernetes 1.36: deploying config/default", false},
		"the next":        {`{"emulationMajor": "1", "major": "1", "minor": "40"}`, "Kubernetes 1.40: deploying config/default", false},
		"no answer":       {"", "the API server does not answer", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			stub := filepath.Join(folder, "kubectl")
			text := "#!/bin/sh\ncase $1 in\nget) [ -n '" + tc.answer + "' ] && echo '" + tc.answer + "' ;;\napply) cat >" + folder + "/applied ;;\nesac\n"
			if err := os.WriteFile(stub, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
			out, err := script(t, []string{"KUBECTL=" + stub}, "deploy.sh", "r/manager:1", "r/agent:1")
			if (err != nil) != tc.fails || !strings.Contains(out, tc.want) || strings.Contains(out, "\nNext:") == tc.fails {
				t.Errorf("%v: %s, want %q", err, out, tc.want)
			}
			applied, _ := os.ReadFile(filepath.Join(folder, "applied"))
			if strings.Contains(string(applied), "image: r/agent:1") == tc.fails {
				t.Errorf("applied: %s", applied)
			}
		})
	}
}

func TestDeploy_WithoutKubectl(t *testing.T) {
	t.Parallel()
	out, err := script(t, []string{"KUBECTL=bin/none/kubectl"}, "deploy.sh", "r/manager:1", "r/agent:1")
	if err == nil || !strings.Contains(out, "install it, or build it with make controlplane") {
		t.Errorf("%v: %s", err, out)
	}
}

// COMPONENTS must work with both folders, and manage-agents must give the agents the folder's
// identity.
func TestManifest_Components(t *testing.T) {
	t.Parallel()
	for config, identity := range map[string]bool{"config/default": false, "config/overlays/rbac-fallback": true} {
		out, err := script(t, []string{"COMPONENTS=manage-agents"}, "manifest.sh", config, "r/manager:1", "r/agent:1")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if strings.Contains(out, "kind: DaemonSet\n") || !strings.Contains(out, " --agent-image=r/agent:1\n") {
			t.Errorf("%s: the agents are not the manager's", config)
		}
		if strings.Contains(out, " --agent-arg=--identity=serviceaccount\n") != identity {
			t.Errorf("%s: the agents' identity is not that of the folder", config)
		}
	}
	if out, err := script(t, []string{"COMPONENTS=nonsense"}, "manifest.sh", "config/default", "r/manager:1", "r/agent:1"); err == nil {
		t.Errorf("a component that does not exist is accepted:\n%s", out)
	}
}

// Deploying and undeploying must work from start to end, with a policy that waits for a manager
// that does not run.
func TestDeploy_AndBack(t *testing.T) {
	t.Parallel()
	env := embedded.StartServerFor(t)
	shell := func(text string) string {
		t.Helper()
		out, err := env.Shell(t.Context(), t.TempDir(), text)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return out
	}
	target := "make --no-print-directory -C " + testenv.Root() + " KUBECTL=kubectl IMG=r/manager:1 AGENT_IMG=r/agent:1 "
	if out := shell(target + "deploy"); !strings.Contains(out, ": deploying config/default\n") || strings.Count(out, "\n  kubectl ") != 3 {
		t.Errorf("deploy printed\n%s", out)
	}
	if got := shell("kubectl get deployments,daemonsets -A -o jsonpath='{.items[*].spec.template.spec.containers[*].image}'"); got != "r/manager:1 r/agent:1" {
		t.Errorf("images %s", got)
	}
	followsTheGuide(t, shell)
	shell(target + "deploy CONFIG=config/overlays/rbac-fallback") // as before an upgrade of the cluster to 1.36
	shell(target + "deploy")
	if got := shell("kubectl get serviceaccounts -n reboot-operator-system -o jsonpath='{.items[*].imagePullSecrets[*].name}'"); got != "registry registry" {
		t.Errorf("after a deployment the ServiceAccounts pull with %q", got)
	}
	shell(`kubectl apply -f ` + testenv.Root() + `/config/samples/minimal.yaml
kubectl patch rebootpolicy default --type merge -p '{"metadata":{"finalizers":["reboot-operator.io/grants"]}}'
kubectl patch rebootpolicy default --subresource status --type merge -p '{"status":{"limit":1,"seq":1,"grants":[{"node":"n1","seq":1,"at":"2026-11-22T00:00:00Z"}]}}'`)
	out := shell(target + `undeploy | while read -r line; do
  echo "$line"
  case $line in "default: n1") kubectl patch rebootpolicy default --type merge -p '{"metadata":{"finalizers":null}}' >/dev/null ;; esac
done`)
	if !strings.Contains(out, "end the granted reboots of these policies (policy: nodes):\ndefault: n1\nremoving config/overlays/rbac-fallback\n") || !strings.HasSuffix(out, "The namespace goes with its last pod. kubectl reboot cleanup removes what stays on Nodes.\n") {
		t.Errorf("undeploy printed\n%s", out)
	}
	if out := shell("kubectl get crd,clusterroles,validatingadmissionpolicies -o name | grep reboot-operator || true"); out != "" {
		t.Errorf("left over: %s", out)
	}
	shell(target + "undeploy") // does nothing if nothing is left
}

// If the API server does not return the policies, nothing may be removed, because nodes may be
// rebooting.
func TestUndeploy_RemovesNothingWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	stub := filepath.Join(folder, "kubectl")
	text := "#!/bin/sh\ncase $1 in\nget) echo no answer >&2; exit 1 ;;\ndelete) cat >" + folder + "/removed ;;\nesac\n"
	if err := os.WriteFile(stub, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := script(t, []string{"KUBECTL=" + stub}, "undeploy.sh")
	if err == nil || !strings.Contains(out, "no answer") {
		t.Errorf("%v: %s", err, out)
	}
	if removed, err := os.ReadFile(filepath.Join(folder, "removed")); err == nil {
		t.Errorf("removed: %s", removed)
	}
}

// If policies are still there after a minute, the output must have a command for each of them.
func TestUndeploy_NamesEachPolicyThatStays(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"sleep":   "echo >>" + folder + "/slept",
		"kubectl": "case $2 in\ncrd) : >" + folder + "/slept; echo crd ;;\nrebootpolicies*) [ \"$(wc -l <" + folder + "/slept)\" -le 60 ] && printf 'a: n1\\nb: \\n' ;;\nesac",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	out, _ := script(t, []string{"PATH=" + folder + ":" + os.Getenv("PATH"), "KUBECTL=kubectl"}, "undeploy.sh") // it fails because the last answer is an error
	for _, policy := range []string{"a", "b"} {
		if want := "\n  kubectl patch rebootpolicy " + policy + ` --type merge -p '{"metadata":{"finalizers":null}}'` + "\n"; !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
}

// followsTheGuide runs the commands of docs/install.md in the cluster, except those that other
// tests run.
func followsTheGuide(t *testing.T, shell func(text string) string) {
	t.Helper()
	blocks, err := document.Blocks(filepath.Join(testenv.Root(), "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, b := range blocks {
		if b.Language == "sh" && b.Heading != "Installation" && b.Heading != "Metrics" {
			shell(b.Text)
			ran++
		}
	}
	if ran < 5 {
		t.Errorf("docs/install.md has commands in %d blocks only", ran)
	}
}

// script runs a script of this folder, and returns its standard output and error.
func script(t *testing.T, env []string, name string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(testenv.Root(), "hack", name), args...)
	command.Env = append(os.Environ(), env...)
	out, err := command.CombinedOutput()
	return string(out), err
}
