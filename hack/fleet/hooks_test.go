package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// consent is a second before-hook, which stands for a person and is played by this test.
const consent = "example.com/consent"

// The hooks of docs/hooks must do what they promise. Their DaemonSets are applied unchanged, and
// their pods run as real processes with their own tokens. Two nodes are rebooted under the policy
// of config/samples/hooks.yaml.
func TestHooks(t *testing.T) {
	s := newHooked(t)
	const one, two = "node-1", "node-2"

	s.stage(s.fleet.Hosts[0], "echo worked >>worked")
	t.Run("the before-hook runs on the node that is chosen, before anything else (behaviour 51)", func(t *testing.T) {
		s := s.in(t)
		s.await("the before-hook to answer", func() bool { return s.node(one).Annotations[before] == "true" })
		if got, want := s.where(), "before-reboot on node-1"; got != want {
			t.Errorf("pods %q, want %q", got, want)
		}
		if n := s.node(one); n.Spec.Unschedulable || n.Annotations[v1alpha1.AnnotationGrant] != "" {
			t.Errorf("cordoned %t, grant %q: a hook still has to approve", n.Spec.Unschedulable, n.Annotations[v1alpha1.AnnotationGrant])
		}
	})
	t.Run("a hook that is started again does not work again", func(t *testing.T) {
		s := s.in(t)
		killed := s.kill("before-reboot")
		s.await("the hook to look again", func() bool { return s.looks("before-reboot", killed) >= 2 })
		if text := s.read("worked"); text != "worked\n" {
			t.Errorf("worked %q, want once", text)
		}
	})
	t.Run("the hook's token is good for its own node and its own answer alone (behaviour 55)", func(t *testing.T) { s.in(t).tokens(one, two) })

	s.kubectl("annotate", "node", one, consent+"=true")
	t.Run("the drain and the reboot follow, and the after-hook refuses until all is well (behaviours 26, 49, 52)", func(t *testing.T) {
		s := s.in(t)
		s.await("the after-hook to refuse", func() bool { return s.reason(one) == "True HookFailed" })
		if n := s.node(one); !n.Spec.Unschedulable || n.Annotations[after] != "failed: one is not well" {
			t.Errorf("cordoned %t, answer %q", n.Spec.Unschedulable, n.Annotations[after])
		}
		s.await("the before-hook's pod to be gone", func() bool { return s.where() == "after-reboot on node-1" })
		s.await("its event", func() bool { return s.event(one, "HookFailed", "failed: one is not well") })
		s.write("well", "")
		s.await("the node to be back in service", func() bool { return !s.node(one).Spec.Unschedulable && len(s.status().Grants) == 0 })
		s.await("every trace to be gone", func() bool { return s.traces(one) == "" })
		if text := s.read("worked"); text != "worked\n" {
			t.Errorf("worked %q, want once", text)
		}
	})

	s.stage(s.fleet.Hosts[1], "echo starting; echo no space left on device; exit 1")
	t.Run("a before-hook that fails gives the slot back, and reports why", func(t *testing.T) {
		s := s.in(t)
		s.await("the node to back off", func() bool { return s.reason(two) == "False BackingOff" })
		if message := s.permitted(two).Message; !strings.Contains(message, before+": failed: no space left on device;") {
			t.Errorf("the node shows %q", message)
		}
		s.await("its event", func() bool { return s.event(two, "HookFailed", "failed: no space left on device") })
		s.await("the slot and every trace to be gone", func() bool { return len(s.status().Grants) == 0 && s.traces(two) == "" })
		if s.node(two).Spec.Unschedulable {
			t.Error("the node is cordoned")
		}
	})

	s.stage(s.fleet.Hosts[0], "touch begun; sleep 600")
	// node-1 has just been rebooted. Only an administrator's request bypasses the interval between
	// reboots.
	s.kubectl("annotate", "node", one, v1alpha1.AnnotationRebootRequested+"=test")
	t.Run("a before-hook that is silent gives the slot back, and is ended", func(t *testing.T) {
		s := s.in(t)
		s.await("the hook to begin", func() bool {
			_, err := os.Stat(filepath.Join(s.dir, "begun"))
			return err == nil
		})
		s.kubectl("patch", "rebootpolicy", s.policy.Name, "--type=merge", `--patch={"spec":{"hooks":{"timeout":"1s"}}}`)
		s.await("the node to back off", func() bool { return s.reason(one) == "False BackingOff" })
		s.await("its event", func() bool { return s.event(one, "HookTimedOut", before) })
		s.await("the slot and every trace to be gone", func() bool { return len(s.status().Grants) == 0 && s.traces(one) == "" })
	})
	if err := s.fleet.Err(); err != nil {
		t.Error(err)
	}
}

// permitted returns the node's condition RebootPermitted, or a zero one.
func (h *hooked) permitted(node string) corev1.NodeCondition {
	return v1alpha1.NodeCondition(h.node(node).Status.Conditions, v1alpha1.NodeRebootPermitted)
}

func (h *hooked) reason(node string) string {
	c := h.permitted(node)
	return string(c.Status) + " " + c.Reason
}

// traces lists what hooks have left behind: labels and annotations of the node, and pods.
func (h *hooked) traces(node string) string {
	n, remaining := h.node(node), []string{}
	for _, key := range []string{v1alpha1.LabelBeforeReboot, v1alpha1.LabelAfterReboot, v1alpha1.AnnotationHooks, before, after, consent} {
		if n.Labels[key]+n.Annotations[key] != "" {
			remaining = append(remaining, key)
		}
	}
	if pods := h.where(); pods != "" {
		remaining = append(remaining, pods)
	}
	return strings.Join(remaining, ", ")
}

// event reports whether the node has an event with the given reason and text.
func (h *hooked) event(node, reason, text string) bool {
	events, err := h.fleet.Cluster.Client().EventsV1().Events("").List(h.Context(), metav1.ListOptions{})
	h.must(err)
	for i := range events.Items {
		e := &events.Items[i]
		if e.Regarding.Kind == "Node" && e.Regarding.Name == node && e.Reason == reason && strings.Contains(e.Note, text) {
			return true
		}
	}
	return false
}
