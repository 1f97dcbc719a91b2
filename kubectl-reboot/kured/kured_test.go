package kured

import (
	"strings"
	"testing"
)

// convertText is what the command does with a manifest.
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
		"nothing":           {"", "there is no DaemonSet; give the rendered manifest, such as of helm template or kubectl kustomize"},
		"another kind":      {"kind: Kustomization\n", "there is no DaemonSet"},
		"another DaemonSet": {daemonSet("{name: x, image: example.com/x}"), "no DaemonSet runs kured; there are ops/d"},
		"no YAML":           {"a: b: c\n", "reading document 1 of the input: "},
		"no object":         {kured + "---\n- 1\n", "reading document 2 of the input: it is no Kubernetes object"},
		"an odd DaemonSet":  {"kind: DaemonSet\nspec: 7\n", "reading document 1 of the input: reading a DaemonSet: "},
		"a value":           {daemonSet("{image: kured, args: [--period=x]}"), `ops/d: --period is "x", with which kured does not start: must be a duration like "30s" or "5m"`},
		"a second one's":    {kured + "---\n" + daemonSet("{image: kured, args: [--period=x]}"), "ops/d: --period is"},
		"a variable":        {daemonSet("{image: kured, env: [{name: KURED_PERIOD, value: x}]}"), `ops/d: KURED_PERIOD is "x", with which kured does not start: must be a duration like "30s" or "5m"`},
		"a lock":            {strings.Replace(kured, "name: d", `name: d, annotations: {weave.works/kured-node-lock: x}`, 1), "ops/d: annotation weave.works/kured-node-lock is no lock of kured: "},
		"a script":          {daemonSet("{image: x, command: [sh, -c, kured --period=1h]}"), "ops/d: a shell script starts kured, and scripts are not read: "},
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
