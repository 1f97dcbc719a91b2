package fleet

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

// obedient represents the agent. It states what happens to it, and takes its time to end.
const obedient = `#!/bin/sh
echo "$NODE_NAME starts"
trap 'sleep 0.5; echo asked to end; exit 0' TERM
while :; do sleep 0.02; done
`

const broken = `#!/bin/sh
echo "bad flag"
exit 2
`

// others is a namespace whose pods state what they run.
const others = "others"

// stage is one machine with a kubelet that runs a script as the agent.
type stage struct {
	t       *testing.T
	cluster *embedded.Cluster
	host    *Host
	kubelet *kubelet
	failed  chan error
}

func newStage(t *testing.T) *stage {
	t.Helper()
	cluster := emptyCluster(t, func() [][]byte { return nil })
	s := &stage{t: t, cluster: cluster, failed: make(chan error, 1)}
	s.must(cluster.AddNode(t.Context(), "node-1", nil))
	var err error
	s.host, err = newHost(t.Context(), cluster, t.TempDir(), "node-1", engineNamed(t, DefaultEngine))
	s.must(err)
	t.Cleanup(func() { s.must(s.host.Bus.Stop()) })
	for _, space := range []string{namespace, others} {
		for _, object := range []string{"namespace/" + space, "serviceaccount/agent"} {
			kind, name, _ := strings.Cut(object, "/")
			_, err := cluster.Kubectl(t.Context(), nil, "create", kind, name, "--namespace="+space)
			s.must(err)
		}
	}
	programs := t.TempDir()
	s.must(os.WriteFile(filepath.Join(programs, "agent"), []byte(obedient), 0o700))
	s.must(os.WriteFile(filepath.Join(programs, "manager"), []byte(broken), 0o700))
	ctx, cancel := context.WithCancel(t.Context())
	s.kubelet = &kubelet{
		cluster: cluster, programs: programs, namespaces: []string{namespace, others}, hosts: map[string]*Host{"node-1": s.host},
		fail: func(err error) { s.failed <- err },
		pods: map[types.UID]context.CancelFunc{}, processes: map[types.UID]*process.Process{},
	}
	s.must(s.kubelet.watch(ctx))
	t.Cleanup(func() {
		cancel()
		s.kubelet.wait()
		for _, pod := range []string{"agent", "script", "manager"} { // their names come again
			must(t, os.Remove(filepath.Join(cluster.Dir, pod+".log")))
		}
	})
	return s
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) until(what string, done func() bool) {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.t.Context(), 5*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		return done(), nil
	})
	if err != nil {
		s.t.Fatalf("waiting for %s: %v", what, err)
	}
}

func field(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

func (s *stage) create(name, program string, edit ...func(*corev1.Pod)) {
	s.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PodSpec{
			ServiceAccountName: "agent",
			Tolerations:        []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:         []corev1.Container{{Name: program, Image: "example.com/x", Env: []corev1.EnvVar{field("NODE_NAME", "spec.nodeName")}}},
		},
	}
	for _, e := range edit {
		e(pod)
	}
	_, err := s.cluster.Client().CoreV1().Pods(pod.Namespace).Create(s.t.Context(), pod, metav1.CreateOptions{})
	s.must(err)
}

// log is what the pod's processes have reported, as one line.
func (s *stage) log(name string) string {
	text, err := os.ReadFile(filepath.Join(s.cluster.Dir, name+".log"))
	if err != nil {
		return ""
	}
	return strings.Join(strings.Split(strings.TrimSpace(string(text)), "\n"), ", ")
}

func TestKubelet(t *testing.T) {
	s := newStage(t)
	const start = "node-1 starts"
	s.create("agent", agentProgram)
	s.until("the agent to run", func() bool { return s.log("agent") == start && len(s.kubelet.of(agentProgram)) == 1 })

	before := s.kubelet.of(agentProgram)[0]
	s.must(s.host.reboot(t.Context(), 100*time.Millisecond))
	s.until("the agent to run again", func() bool { return s.log("agent") == start+", "+start })
	if before.Alive() || !strings.Contains(before.ExitError().Error(), "signal: killed") {
		t.Errorf("a power cut leaves the agent %v", before.ExitError())
	}
	node, err := s.cluster.Client().CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
	s.must(err)
	bootID, err := os.ReadFile(s.host.machine.BootIDFile)
	s.must(err)
	if got := strings.TrimSpace(string(bootID)); got != node.Status.NodeInfo.BootID || !embedded.NodeIsReady(node) {
		t.Errorf("the machine's boot ID is %q, the node's %q, Ready is %t", got, node.Status.NodeInfo.BootID, embedded.NodeIsReady(node))
	}

	pods := s.cluster.Client().CoreV1().Pods(namespace)
	s.must(pods.Delete(t.Context(), "agent", metav1.DeleteOptions{}))
	s.until("the pod to be gone", func() bool {
		_, err := pods.Get(t.Context(), "agent", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	// The pod goes after its process has: its token, which dies with it, is good for the process' last words.
	if got, want := s.log("agent"), start+", "+start+", asked to end"; got != want || len(s.kubelet.of(agentProgram)) != 0 {
		t.Errorf("the agent reported %q, want %q; %d still run", got, want, len(s.kubelet.of(agentProgram)))
	}

	s.create("script", "any", func(pod *corev1.Pod) {
		pod.Namespace, pod.Spec.Containers[0].Command = others, []string{"/bin/sh", "-c"}
		pod.Spec.Containers[0].Args = []string{`echo "on $NODE_NAME"; kubectl auth whoami -o "jsonpath={.status.userInfo.username}"; echo; echo "$0" >"$HOME/$(basename "$TMPDIR")"; cat "$HOME"/*; sleep 600`, "wrote"}
	})
	const did = "on node-1, system:serviceaccount:others:agent, wrote"
	s.until("the script to run", func() bool { return s.log("script") == did })

	s.create("manager", managerProgram)
	const want = "on node-1: manager ended: exit status 2\n  bad flag\n  bad flag\n  bad flag\n  bad flag"
	if err := <-s.failed; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}
