package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

func TestRun(t *testing.T) {
	manifest, err := os.ReadFile("testdata/default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fromFile, _ := runOn(t, "testdata/default.yaml")
	for name, args := range map[string][]string{"standard input": nil, "standard input by a dash": {"-"}} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := run(args, bytes.NewReader(manifest), &stdout, &stderr); code != 0 || stdout.String() != fromFile {
				t.Errorf("exit code %d, %s\n%s", code, stderr.String(), stdout.String())
			}
		})
	}
}

func TestRun_BadInputIsOneSentence(t *testing.T) {
	daemonSet := func(rest string) string {
		return "kind: DaemonSet\nmetadata: {name: d, namespace: ops}\nspec: {template: {spec: {containers: [" + rest + "]}}}\n"
	}
	kured := daemonSet("{name: kured, image: kured}")
	for name, tc := range map[string]struct {
		args  []string
		input string
		code  int
		want  string
	}{
		"nothing":            {nil, "", 1, "kured: there is no DaemonSet in the input; give the rendered manifest, such as of kubectl -n kube-system get daemonset kured -o yaml, helm template or kubectl kustomize"},
		"another kind":       {nil, "kind: Kustomization\n", 1, "kured: there is no DaemonSet in the input"},
		"another DaemonSet":  {nil, daemonSet("{name: x, image: example.com/x}"), 1, "kured: no DaemonSet in the input runs kured; there are ops/d"},
		"no YAML":            {nil, "a: b: c\n", 1, "kured: reading document 1 of the input: "},
		"no object":          {nil, kured + "---\n- 1\n", 1, "kured: reading document 2 of the input: it is no Kubernetes object"},
		"an odd DaemonSet":   {nil, "kind: DaemonSet\nspec: 7\n", 1, "kured: reading document 1 of the input: reading a DaemonSet: "},
		"an odd ConfigMap":   {nil, kured + "---\nkind: ConfigMap\ndata: 7\n", 1, "kured: reading document 2 of the input: reading a ConfigMap: "},
		"a value":            {nil, daemonSet("{image: kured, args: [--period=x]}"), 1, `kured: ops/d: --period is "x", with which kured does not start: parse error`},
		"a second one's":     {nil, kured + "---\n" + daemonSet("{image: kured, args: [--period=x]}"), 1, "kured: ops/d: --period is"},
		"a variable":         {nil, daemonSet("{image: kured, env: [{name: KURED_PERIOD, value: x}]}"), 1, `kured: ops/d: KURED_PERIOD is "x", with which kured does not start: parse error`},
		"a lock":             {nil, strings.Replace(kured, "name: d", `name: d, annotations: {weave.works/kured-node-lock: x}`, 1), 1, "kured: ops/d: annotation weave.works/kured-node-lock is no lock of kured: "},
		"a file":             {[]string{"testdata/none.yaml"}, "", 1, "kured: open testdata/none.yaml: no such file or directory"},
		"an unknown flag":    {[]string{"--force"}, "", 2, "kured: flag provided but not defined: -force"},
		"too many arguments": {[]string{"a", "b"}, "", 2, `kured: unexpected argument "b"`},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(tc.args, strings.NewReader(tc.input), &stdout, &stderr)
			got := strings.TrimSuffix(stderr.String(), "\n")
			if code != tc.code || !strings.HasPrefix(got, tc.want) || strings.Contains(got, "\n") {
				t.Errorf("exit code %d, want %d; stderr %q, want one line %q", code, tc.code, got, tc.want)
			}
			if stdout.Len() > 0 {
				t.Errorf("half a policy: %s", stdout.String())
			}
		})
	}
}

func TestRun_Usage(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run([]string{"-h"}, nil, &stdout, &stderr); code != 0 || stdout.String() != usage || stderr.Len() > 0 {
		t.Errorf("exit code %d, %q, %q", code, stdout.String(), stderr.String())
	}
}

// refusing takes nothing.
type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestRun_InputAndOutputFail(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(nil, iotest.ErrReader(errors.New("pipe broke")), &stdout, &stderr); code != 1 || stderr.String() != "kured: reading standard input: pipe broke\n" {
		t.Errorf("exit code %d, %q", code, stderr.String())
	}
	stderr.Reset()
	if code := run([]string{"testdata/default.yaml"}, nil, refusing{}, &stderr); code != 1 || stderr.String() != "kured: writing the policy: disk full\n" {
		t.Errorf("exit code %d, %q", code, stderr.String())
	}
}
