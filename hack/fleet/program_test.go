package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

func pod(container string, env ...corev1.EnvVar) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "agent-x", Namespace: namespace},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{
			Name: container, Args: []string{"--host-root=/host", "--health-probe-bind-address=:8081"}, Env: env,
		}}},
	}
}

func field(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

// What reports where things are on this machine comes last, so that it wins over the pod's own arguments.
func TestProgramOf(t *testing.T) {
	bus := hosttest.StartFor(t)
	host := &Host{Name: "node-1", Root: "/r", Bus: bus, machine: &embedded.Machine{BootIDFile: "/r/boot_id"}}
	env := []corev1.EnvVar{
		field("NODE_NAME", "spec.nodeName"), field("POD_NAME", "metadata.name"), field("POD_NAMESPACE", "metadata.namespace"),
		{Name: "PLAIN", Value: "text"},
	}
	cases := map[string]struct {
		pod     *corev1.Pod
		want    process.Program
		wantErr string
	}{
		"the agent": {pod: pod("agent", env...), want: process.Program{
			Name: "agent-x", Path: "/bin/agent",
			Args: []string{
				"--host-root=/host", "--health-probe-bind-address=:8081", "--kubeconfig=/k", "--health-probe-bind-address=127.0.0.1:0",
				"--metrics-bind-address=0", "--dbus-address=" + bus.Address(), "--host-root=/r", "--boot-id-file=/r/boot_id",
			},
			Env: []string{"NODE_NAME=node-1", "POD_NAME=agent-x", "POD_NAMESPACE=reboot-operator-system", "PLAIN=text"},
		}},
		"the manager": {pod: pod("manager"), want: process.Program{
			Name: "agent-x", Path: "/bin/manager",
			Args: []string{
				"--host-root=/host", "--health-probe-bind-address=:8081", "--kubeconfig=/k", "--health-probe-bind-address=127.0.0.1:0",
				"--metrics-bind-address=0",
			},
		}},
		"a stranger":             {pod: pod("sidecar"), wantErr: `pod agent-x: no program for container "sidecar"`},
		"a field nobody can say": {pod: pod("agent", field("IP", "status.podIP")), wantErr: "pod agent-x: variable IP comes from something that is not simulated"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := programOf(tc.pod, "/bin", "/k", noMetrics, host)
			if err != nil || tc.wantErr != "" {
				if err == nil || err.Error() != tc.wantErr {
					t.Errorf("error %v, want %s", err, tc.wantErr)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A pod that states what it runs runs just that, and finds what its image would have.
func TestCommandOf(t *testing.T) {
	t.Setenv("PATH", "/usr/bin")
	script := pod("hook", field("NODE_NAME", "spec.nodeName"), field("HOST_IP", "status.hostIP"))
	script.Spec.Containers[0].Command, script.Spec.Containers[0].Args = []string{"/bin/sh", "-c"}, []string{"true"}
	want := process.Program{
		Name: "agent-x", Path: "/bin/sh", Args: []string{"-c", "true"},
		Env: []string{"NODE_NAME=node-1", "HOST_IP=127.0.0.1", "KUBECONFIG=/k", "HOME=/home", "TMPDIR=/home", "PATH=/tools:/usr/bin"},
	}
	got, err := commandOf(script, "/home", "/k", "/tools")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
