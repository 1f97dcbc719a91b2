package kured

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
)

func TestParse(t *testing.T) {
	args := []string{
		"--period", "30m", "--force-reboot", "--annotate-nodes=false", "--concurrency=2", "--concurrency=0x3", "stray",
		"--reboot-days=mon,tue", "--reboot-days", "wed", "--blocking-pod-selector=a=b,c=d", "--blocking-pod-selector=e=f",
	}
	k := makeInstallation(args...)
	f := newKuredFlags()
	if err := f.parse(k.args); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{
		"force": f.forceReboot, "concurrency": f.concurrency, "days": f.days, "pods": f.blockingPods,
		"period": f.set.Lookup("period").Value.String(), "written": f.find("reboot-days").texts, "last": f.find("concurrency").texts,
	}
	want := map[string]any{
		"force": true, "concurrency": 3, "days": []string{"mon", "tue", "wed"}, "pods": []string{"a=b,c=d", "e=f"},
		"period": "30m0s", "written": []string{"--reboot-days=mon,tue", "--reboot-days=wed"}, "last": []string{"--concurrency=0x3"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The precedence changed in kured 1.16.2.
func TestEnvironment_WhoWins(t *testing.T) {
	for name, tc := range map[string]struct {
		image       string
		concurrency int
		days        []string
		pods        []string
	}{
		"the flag, before 1.16.2":                   {"kured:1.16.1", 2, []string{"mon"}, []string{"a=b"}},
		"the flag, long before":                     {"weaveworks/kured:v1.4.0", 2, []string{"mon"}, []string{"a=b"}},
		"the flag, in a line before":                {"kured:1.15", 2, []string{"mon"}, []string{"a=b"}},
		"the variable, in the newest of its line":   {"kured:1.16", 3, []string{"mon", "tue"}, nil},
		"the variable, since 1.16.2":                {"kured:1.16.2", 3, []string{"mon", "tue"}, nil},
		"the variable, with a later version":        {"ghcr.io/kubereboot/kured:1.23.0-arm64@sha256:1", 3, []string{"mon", "tue"}, nil},
		"the variable, without a tag":               {"localhost:5000/kured", 3, []string{"mon", "tue"}, nil},
		"the variable, with a tag without a number": {"kured:latest", 3, []string{"mon", "tue"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := makeInstallation("--concurrency=2", "--reboot-days=mon")
			k.container.Image = tc.image
			k.container.Env = []corev1.EnvVar{
				{Name: "KURED_CONCURRENCY", Value: "3"}, {Name: "KURED_REBOOT_DAYS", Value: "tue"}, {Name: "KURED_BLOCKING_POD_SELECTOR", Value: "a=b"},
			}
			c, err := convert(k)
			if err != nil {
				t.Fatal(err)
			}
			got := []any{c.flags.concurrency, c.flags.days, c.flags.blockingPods}
			if diff := cmp.Diff([]any{tc.concurrency, tc.days, tc.pods}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnvironment_Sources(t *testing.T) {
	k := makeInstallation("--lock-annotation=$(LOCK)/$$(LOCK)/$(NOBODY)")
	k.container.EnvFrom = []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "elsewhere"}}},
	}
	k.container.Env = []corev1.EnvVar{
		{Name: "LOCK", Value: "example.com"},
		{Name: "KURED_DRAIN_TIMEOUT", Value: "2h"},
		{Name: "KURED_TIME_ZONE", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "options"}, Key: "zone",
		}}},
		{Name: "KURED_END_TIME", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{}}},
	}
	k.findContainerAgain()
	c, err := convert(k)
	if err != nil {
		t.Fatal(err)
	}
	got := []any{c.flags.concurrency, moment.Short(c.flags.drainTimeout), c.flags.zone, c.flags.lockAnnotation}
	if diff := cmp.Diff([]any{1, "2h", "UTC", "example.com/$(LOCK)/$(NOBODY)"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var open []string
	for _, l := range c.report.open {
		open = append(open, l.subject)
	}
	want := []string{"KURED_END_TIME", "KURED_TIME_ZONE", "envFrom ConfigMap elsewhere"}
	if diff := cmp.Diff(want, open); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// findContainerAgain reads the container after a test has changed it.
func (k *installation) findContainerAgain() {
	k.daemonSet.Spec.Template.Spec.Containers[0] = k.container
	k.findContainer()
}

func TestFindContainer(t *testing.T) {
	other := corev1.Container{Name: "proxy", Image: "example.com/proxy:1", Command: []string{"/proxy"}, Args: []string{"--period=1s"}}
	for name, tc := range map[string]struct {
		container corev1.Container
		want      []string
	}{
		"command":              {corev1.Container{Command: []string{"/usr/bin/kured", "--a"}}, []string{"--a"}},
		"command and args":     {corev1.Container{Command: []string{"/usr/bin/kured", "--a"}, Args: []string{"--b"}}, []string{"--a", "--b"}},
		"started by a wrapper": {corev1.Container{Command: []string{"/sbin/tini", "--", "kured"}, Args: []string{"--b"}}, []string{"--b"}},
		"entry point":          {corev1.Container{Image: "reg:5000/x/kured:1@sha256:2", Args: []string{"--b"}}, []string{"--b"}},
		"another flag with the value kured": {
			corev1.Container{Image: "kured:1", Args: []string{"--reboot-days", "mon", "--ds-namespace", "kured", "--b"}},
			[]string{"--reboot-days", "mon", "--ds-namespace", "kured", "--b"},
		},
		"a patched image":       {corev1.Container{Image: "example.com/my-kured"}, nil},
		"a script":              {corev1.Container{Command: []string{"bash", "-xc", "X=1 kured --a"}}, nil},
		"a script of two lines": {corev1.Container{Command: []string{"sh", "-c"}, Args: []string{"sleep 1\n/usr/bin/kured --a"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := &installation{}
			k.daemonSet.Spec.Template.Spec.Containers = []corev1.Container{other, tc.container}
			if !k.findContainer() {
				t.Fatal("not found")
			}
			if diff := cmp.Diff(tc.want, append([]string(nil), k.args...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		k := &installation{}
		shells := []corev1.Container{other, {Command: []string{"sh", "-c", "sleep 1"}}, {Command: []string{"sh"}}, {Command: []string{"sh", "-c"}}, {Args: []string{"--namespace", "kured"}}}
		k.daemonSet.Spec.Template.Spec.Containers = shells
		if k.findContainer() {
			t.Errorf("found %v", k.container)
		}
	})
}
