package kured

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/terminaltest"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// fixtures returns the manifests of testdata by name.
func fixtures(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.[yj]*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	byName := map[string]string{}
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		byName[name] = file
	}
	return byName
}

// convertFile converts a file.
func convertFile(t *testing.T, file string) (policy, report string) {
	t.Helper()
	manifest, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	policy, report, err = convertText(string(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return policy, report
}

func TestFixtures(t *testing.T) {
	for name, file := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			policy, report := convertFile(t, file)
			for kind, text := range map[string]string{"policy": policy, "report": report} {
				terminaltest.Golden(t, name+"."+kind, strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
			}
		})
	}
}

var guide = filepath.Join(testenv.Root(), "docs", "migrate.md")

// The guide's policy for kured's behavior must be the one that the converter writes.
func TestGuide_HasThePolicyOfTheDefaults(t *testing.T) {
	blocks, err := document.Blocks(guide)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/default.policy.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if b.Heading == "kured" && b.Language == "yaml" {
			if diff := cmp.Diff(string(want), b.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			return
		}
	}
	t.Error("section kured has no policy")
}

// The guide must have a row with the default for each flag, and no other rows.
func TestGuide_HasEveryFlag(t *testing.T) {
	want := map[string]string{}
	newKuredFlags().set.VisitAll(func(f *pflag.Flag) { want[f.Name] = strings.Trim(f.DefValue, "[]") })
	rows, err := document.Table(guide, "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, cells := range rows {
		name := strings.Trim(cells[0], "`")
		if _, isKureds := want[strings.TrimPrefix(name, "--")]; len(cells) != 3 || !isKureds && !strings.HasPrefix(name, "--") {
			continue
		}
		got[strings.TrimPrefix(name, "--")] = strings.Trim(cells[1], "`")
		if cells[2] == "" {
			t.Errorf("nothing is reported of %s", name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// convertText converts a manifest like the command does.
func convertText(manifest string) (policies, report string, err error) {
	daemonSets, err := DaemonSets([]byte(manifest))
	if err != nil {
		return "", "", err
	}
	return Convert(daemonSets)
}

func TestConvert_BadInputIsOneSentence(t *testing.T) {
	daemonSet := func(rest string) string {
		return "kind: DaemonSet\nmetadata: {name: d, namespace: ops}\nspec: {template: {spec: {containers: [" + rest + "]}}}\n"
	}
	kured := daemonSet("{name: kured, image: kured}")
	for name, tc := range map[string]struct{ input, want string }{
		"nothing":           {"", "found no DaemonSet; pass the rendered manifest, such as the output of helm template or kubectl kustomize"},
		"another kind":      {"kind: Kustomization\n", "found no DaemonSet"},
		"another DaemonSet": {daemonSet("{name: x, image: example.com/x}"), "no DaemonSet runs kured; there are ops/d"},
		"no YAML":           {"a: b: c\n", "reading document 1 of the input: "},
		"no object":         {kured + "---\n- 1\n", "reading document 2 of the input: it is not a Kubernetes object"},
		"an odd DaemonSet":  {"kind: DaemonSet\nspec: 7\n", "reading document 1 of the input: reading a DaemonSet: "},
		"a value":           {daemonSet("{image: kured, args: [--period=x]}"), `ops/d: --period is "x", with which kured does not start: must be a duration like "30s" or "5m"`},
		"a second one's":    {kured + "---\n" + daemonSet("{image: kured, args: [--period=x]}"), "ops/d: --period is"},
		"a variable":        {daemonSet("{image: kured, env: [{name: KURED_PERIOD, value: x}]}"), `ops/d: KURED_PERIOD is "x", with which kured does not start: must be a duration like "30s" or "5m"`},
		"a lock":            {strings.Replace(kured, "name: d", `name: d, annotations: {weave.works/kured-node-lock: x}`, 1), "ops/d: annotation weave.works/kured-node-lock is not a lock of kured: "},
		"a script":          {daemonSet("{image: x, command: [sh, -c, kured --period=1h]}"), "ops/d: a shell script starts kured, and scripts cannot be converted: "},
	} {
		t.Run(name, func(t *testing.T) {
			policies, report, err := convertText(tc.input)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line %q", err, tc.want)
			}
			if policies+report != "" {
				t.Errorf("half a policy: %s", policies)
			}
		})
	}
}
