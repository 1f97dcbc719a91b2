package limits

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// agentPhases brings an agent into a phase and returns while it is in it.
var agentPhases = map[string]func(h *host){
	"it waits for an API server that accepts and does not answer": func(h *host) {
		address, connected := mute(h.t, "tcp", "127.0.0.1:0")
		h.startAt("http://"+address, h.Bus.Address())
		<-connected
	},
	"the list of its Node hangs": func(h *host) { h.hangs(watch("nodes"), h.start) },
	"the bus accepts and does not answer": func(h *host) {
		bus := filepath.Join(h.t.TempDir(), "bus")
		_, connected := mute(h.t, "unix", bus)
		h.startAt(h.URL, "unix:path="+bus)
		<-connected
	},
	"nothing needs to be done": func(h *host) {
		h.Engine.SetStatus(hosttest.Idle())
		h.start()
		h.shows(v1alpha1.NodeRebootRequired, "False")
	},
	"the write that asks for a reboot hangs": func(h *host) { h.hangs(request(http.MethodPatch, "/status"), h.start) },
	"it waits for a grant":                   (*host).asks,
	"it reads the policy, which hangs":       func(h *host) { h.hangs(request(http.MethodGet, "/rebootpolicies/"), h.granted) },
	"it looks at the pods, which hangs":      func(h *host) { h.hangs(watch("pods"), h.granted) },
	"the write that cordons hangs": func(h *host) {
		h.asks()
		h.hangs(request(http.MethodPatch, "/nodes/"), h.grant)
	},
	"a budget holds the drain up": (*host).guarded,
	"an eviction hangs": func(h *host) {
		h.pod()
		h.hangs(request(http.MethodPost, "/eviction"), h.granted)
	},
	"the whole API server hangs in a drain": func(h *host) {
		h.guarded()
		h.hangs(everything, nothing)
	},
	"it waits for volumes": func(h *host) {
		h.status(func(s *corev1.NodeStatus) {
			s.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/disk.example.com^a"}
		})
		h.granted()
		h.shows(corev1.NodeDrained, "True VolumesInUse")
	},
	"a block inhibitor holds the reboot up": func(h *host) {
		h.guarded()
		h.Logind.SetInhibitors(hosttest.BlockShutdown("backup", "not now"))
		must(h.t, api.Delete(h.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: h.name}}))
		h.shows(corev1.NodeDrained, "True")
	},
	"logind does not list its inhibitors": func(h *host) {
		h.t.Cleanup(h.Logind.Hold("ListInhibitors"))
		h.start()
		h.called("ListInhibitors")
	},
	"logind does not answer the call to reboot": func(h *host) {
		h.t.Cleanup(h.Logind.Hold("RebootWithFlags"))
		h.granted()
		h.called("RebootWithFlags")
	},
	"the write of the point of no return hangs": func(h *host) {
		h.guarded()
		h.hangs(request(http.MethodPatch, "/status"), func() {
			must(h.t, api.Delete(h.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: h.name}}))
		})
	},
	"the host goes down": func(h *host) {
		h.granted()
		h.called("RebootWithFlags")
	},
	"its first report after the boot hangs": func(h *host) {
		h.granted()
		h.called("RebootWithFlags")
		h.agent.Kill()
		h.boot(2)
		h.Engine.SetStatus(hosttest.Idle())
		h.hangs(request(http.MethodPatch, "/status"), h.start)
	},
	"its events hang": func(h *host) { h.hangs(request(http.MethodPost, "/events"), h.asks) },
}

func TestAgent_EndsWithinFiveSecondsInEveryPhase_Behaviour58(t *testing.T) {
	t.Parallel()
	for i, phase := range slices.Sorted(maps.Keys(agentPhases)) {
		if capped(i) {
			continue
		}
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, fmt.Sprintf("host-%d", i+1))
			agentPhases[phase](h)
			ends(t, "agent", phase, h.agent)
		})
	}
}
