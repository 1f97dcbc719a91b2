package limits

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	config "github.com/reboot-operator/reboot-operator/config/agent"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
	"github.com/reboot-operator/reboot-operator/hack/limits/footprint"
)

// memoryLimit returns an agent's memory limit, in bytes.
func memoryLimit(t *testing.T) int64 {
	t.Helper()
	var agents appsv1.DaemonSet
	must(t, yaml.Unmarshal([]byte(config.Manifest()), &agents))
	return agents.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value()
}

// floods maps names to functions that flood the agent with what tenants of the cluster or users of
// the machine can create, and that return once the agent has processed it.
var floods = map[string]func(h *host){
	"broadcasts of 30 MiB": func(h *host) {
		h.Engine.SetStatus(hosttest.Idle())
		h.start()
		h.shows(v1alpha1.NodeRebootRequired, "False")
		h.broadcasts(5, strings.Repeat("x", 30<<20))
	},
	"broadcasts of 60 KiB, whose values take more than ten times as much": func(h *host) {
		h.Engine.SetStatus(hosttest.Idle())
		h.start()
		h.shows(v1alpha1.NodeRebootRequired, "False")
		h.broadcasts(1000, make([]struct{ B byte }, 7<<10))
	},
	"a list of inhibitors of 28 MiB": func(h *host) {
		h.Logind.SetInhibitors(hosttest.Inhibitor{What: "shutdown", Who: "anybody", Why: strings.Repeat("x", 28<<20), Mode: "delay"})
		h.asks()
		h.grant()
		until(h.t, "the report of the inhibitors", func() bool {
			return strings.Contains(h.node().Annotations[v1alpha1.AnnotationReport], "larger than 1 MiB")
		})
	},
	"60 pods of 1 MB": func(h *host) {
		h.pods(func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LARGE", Value: strings.Repeat("x", 1_000_000)}}
		})
		h.drains()
	},
	"60 pods with labels of 1 MB": func(h *host) {
		h.pods(func(pod *corev1.Pod) {
			for i := range 5000 {
				pod.Labels[fmt.Sprintf("label-%04d-%s", i, strings.Repeat("x", 50))] = strings.Repeat("x", 60)
			}
		})
		h.drains()
	},
}

// broadcasts sends signals that any user of the machine may send, and then one that the agent waits
// for. A busy machine takes a while to read them all.
func (h *host) broadcasts(count int, body any) {
	h.t.Helper()
	conn, err := h.Bus.Connect()
	must(h.t, err)
	h.t.Cleanup(func() { _ = conn.Close() })
	for range count {
		must(h.t, conn.Emit("/com/coreos/update1", "com.coreos.update1.Manager.StatusUpdate", body))
	}
	must(h.t, conn.BusObject().Call("org.freedesktop.DBus.GetId", 0).Err)
	h.Engine.SetStatus(hosttest.NeedReboot("4593.1.0"))
	must(h.t, h.Engine.Emit(hosttest.NeedReboot("4593.1.0")))
	h.showsWithin(3*time.Minute, v1alpha1.NodeRebootRequired, "True")
}

// pods creates pods on the machine, and a budget that protects all of them.
func (h *host) pods(change func(*corev1.Pod)) {
	h.t.Helper()
	h.budget()
	for i := range 60 {
		h.podOf(fmt.Sprintf("%s-%d", h.Name, i), change)
	}
}

// drains runs the agent until it has read the pods and waits because of the budget.
func (h *host) drains() {
	h.t.Helper()
	h.granted()
	h.shows(corev1.NodeDrainInProgress, "True")
	until(h.t, "the drain to know its pods", func() bool {
		c := v1alpha1.NodeCondition(h.node().Status.Conditions, corev1.NodeDrainInProgress)
		return strings.Contains(c.Message, h.Name+"-")
	})
}

func TestAgent_StaysWithinItsMemoryLimit(t *testing.T) {
	limit := memoryLimit(t)
	for i, name := range slices.Sorted(maps.Keys(floods)) {
		if capped(i) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			h := newHost(t, fmt.Sprintf("large-%d", i+1))
			floods[name](h)
			if !h.agent.Alive() {
				t.Fatalf("the agent has ended: %v", h.agent.ExitError())
			}
			memory, err := h.agent.Memory()
			must(t, err)
			footprint.AddRow(t, "memory", "agent", name, fmt.Sprintf("%.1f MiB", float64(memory.Peak)/(1<<20)))
			if memory.Peak > limit {
				t.Errorf("%d bytes, more than the limit of %d", memory.Peak, limit)
			}
		})
	}
}
