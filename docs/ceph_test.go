package docs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// ceph runs the hook of docs/examples/ceph.yaml with its policy and rights on an API server, against
// a fake Ceph.
type ceph struct {
	*testing.T
	env    *embedded.Cluster
	folder string
}

func newCeph(t *testing.T, env *embedded.Cluster) *ceph {
	t.Helper()
	c := &ceph{T: t, env: env, folder: t.TempDir()}
	script := ""
	var known []string
	for document := range strings.SplitSeq(read(t, "docs/examples/ceph.yaml"), "\n---\n") {
		switch {
		case strings.Contains(document, "\nkind: Deployment\n"):
			var hook appsv1.Deployment
			if err := yaml.UnmarshalStrict([]byte(document), &hook); err != nil {
				t.Fatal(err)
			}
			script = hook.Spec.Template.Spec.Containers[0].Args[0]
		case strings.Contains(document, "\nkind: CephClient\n"): // Rook's
			continue
		}
		known = append(known, document)
	}
	c.file("example.yaml", strings.Join(known, "\n---\n"))
	c.file("hook", script)
	c.file("bin/ceph", `#!/bin/sh
test -e "$HOME/quorum" || { echo no quorum; exit 1; }
echo "$*" >>"$HOME/asked"
`)
	c.file("bin/kubectl", fmt.Sprintf("#!/bin/sh\nexec %q --as=system:serviceaccount:rook-ceph:reboot-noout \"$@\"\n", filepath.Join(testenv.Assets(), "kubectl")))
	c.shell("kubectl create namespace rook-ceph && kubectl apply --validate=strict -f example.yaml")
	return c
}

func (c *ceph) file(name, text string) {
	c.Helper()
	path := filepath.Join(c.folder, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
		c.Fatal(err)
	}
}

func (c *ceph) shell(script string) string {
	c.Helper()
	out, err := c.env.Shell(c.Context(), c.folder, script)
	if err != nil {
		c.Fatal(err)
	}
	return out
}

// ask writes the status with which the manager starts the hooks of a run.
func (c *ceph) ask(stage string, number int) {
	c.Helper()
	c.shell(fmt.Sprintf(`kubectl patch rebootpolicy ceph --subresource=status --type=merge -p '{"status":{"limit":0,"run":{
		"startedAt":"2026-11-23T22:00:00Z","seq":0,"rebooted":0,"failed":0,"hooks":{"stage":%q,"number":%d,"at":"2026-11-23T22:00:00Z"}}}}'`, stage, number))
}

// await waits for an answer of the hook.
func (c *ceph) await(verb, want string) {
	c.Helper()
	c.shell(fmt.Sprintf(`kubectl wait rebootpolicy ceph --timeout=2m --for=jsonpath='{.metadata.annotations.example\.com/noout-%s}'=%q`, verb, want))
}

// testCeph checks that the hook of docs/examples/ceph.yaml sets noout before a run and unsets it
// after the run, once for each number. If Ceph refuses, the hook reports that and tries again. It may
// write only its two answers.
func testCeph(t *testing.T, env *embedded.Cluster) {
	t.Helper()
	c := newCeph(t, env)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := c.env.Shell(ctx, c.folder, `exec env PATH="$PWD/bin:$PATH" HOME="$PWD" POLICY=ceph PERIOD=0.2 MONITORS=a=10.0.0.1:6789 sh ./hook`)
		ended <- err
	}()
	t.Cleanup(func() { stop(); <-ended })

	c.ask("Before", 7)
	c.await("set", "7: failed: no quorum")
	c.file("quorum", "")
	c.await("set", "7: true")
	c.ask("Running", 7)
	c.ask("After", 9)
	c.await("unset", "9: true")
	c.ask("Before", 10)
	c.await("set", "10: true")
	asked, err := os.ReadFile(filepath.Join(c.folder, "asked"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(asked), "osd set noout\nosd unset noout\nosd set noout\n"; got != want {
		t.Errorf("Ceph was asked %q, want %q", got, want)
	}
	for name, patch := range map[string]string{
		"another annotation": `{"metadata":{"annotations":{"reboot-operator.io/resume":"why"}}}`,
		"a label":            `{"metadata":{"labels":{"a":"b"}}}`,
		"the spec":           `{"spec":{"mode":"DryRun"}}`,
	} {
		_, err := c.env.Shell(t.Context(), c.folder, fmt.Sprintf(`bin/kubectl patch rebootpolicy ceph --type=merge -p '%s'`, patch))
		if err == nil || !strings.Contains(err.Error(), "the hook may change no") {
			t.Errorf("%s: %v, want a refusal by the admission policy", name, err)
		}
	}
	if _, err := c.env.Shell(t.Context(), c.folder, "bin/kubectl annotate rebootpolicy another example.com/noout-set=true"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("another policy: %v, want a refusal", err)
	}
}
