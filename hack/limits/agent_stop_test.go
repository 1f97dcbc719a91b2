package limits

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// patient waits for volumes for an hour.
var patient = v1alpha1.Drain{VolumeDetachTimeout: &metav1.Duration{Duration: time.Hour}}

// agentPhases brings an agent into a phase and returns while it is in it.
var agentPhases = map[string]func(h *host){
	"it waits for an API server that accepts and says nothing": func(h *host) {
		address, connected := mute(h.t, "tcp", "127.0.0.1:0")
		h.startAt("http://"+address, h.Bus.Address())
		<-connected
	},
	"the list of its Node hangs": func(h *host) {
		h.front.hold(watch("nodes"))
		h.start()
		h.front.waits(h.t)
	},
	"the bus accepts and says nothing": func(h *host) {
		bus := filepath.Join(h.t.TempDir(), "bus")
		_, connected := mute(h.t, "unix", bus)
		h.startAt(h.front.URL, "unix:path="+bus)
		<-connected
	},
	"nothing needs to be done": func(h *host) {
		h.Engine.SetStatus(hosttest.Idle())
		h.start()
		h.shows(v1alpha1.NodeRebootRequired, "False")
	},
	"the write that asks for a reboot hangs": func(h *host) {
		h.front.hold(request(http.MethodPatch, "/status"))
		h.start()
		h.front.waits(h.t)
	},
	"it waits for a grant": func(h *host) {
		h.start()
		h.asks()
	},
	"it reads the policy, which hangs": func(h *host) {
		h.front.hold(request(http.MethodGet, "/rebootpolicies/"))
		h.start()
		h.asks()
		h.grant()
		h.front.waits(h.t)
	},
	"it looks at the pods, which hangs": func(h *host) {
		h.front.hold(watch("pods"))
		h.start()
		h.asks()
		h.grant()
		h.front.waits(h.t)
	},
	"the write that cordons hangs": func(h *host) {
		h.start()
		h.asks()
		h.front.hold(request(http.MethodPatch, "/nodes/"))
		h.grant()
		h.front.waits(h.t)
	},
	"a budget holds the drain up": func(h *host) {
		h.pod()
		h.budget()
		h.start()
		h.asks()
		h.grant()
		h.shows(corev1.NodeDrainInProgress, "True")
	},
	"an eviction hangs": func(h *host) {
		h.pod()
		h.front.hold(request(http.MethodPost, "/eviction"))
		h.start()
		h.asks()
		h.grant()
		h.front.waits(h.t)
	},
	"the whole API server hangs in a drain": func(h *host) {
		h.pod()
		h.budget()
		h.start()
		h.asks()
		h.grant()
		h.in(protocol.PhaseDraining)
		h.front.hold(everything)
		h.front.waits(h.t)
	},
	"it waits for volumes": func(h *host) {
		h.status(func(s *corev1.NodeStatus) {
			s.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/disk.example.com^a"}
		})
		h.start()
		h.asks()
		h.grant()
		h.shows(corev1.NodeDrained, "True VolumesInUse")
	},
	"a block inhibitor holds the reboot up": func(h *host) {
		h.start()
		h.asks()
		h.Logind.SetInhibitors(hosttest.BlockShutdown("backup", "not now"))
		h.grant()
		h.in(protocol.PhaseDraining)
		h.shows(corev1.NodeDrained, "True")
	},
	"logind does not say who blocks": func(h *host) {
		h.t.Cleanup(h.Logind.Hold("ListInhibitors"))
		h.start()
		h.called("ListInhibitors")
	},
	"logind does not answer the call to reboot": func(h *host) {
		h.t.Cleanup(h.Logind.Hold("RebootWithFlags"))
		h.start()
		h.asks()
		h.grant()
		h.called("RebootWithFlags")
	},
	"the write of the point of no return hangs": func(h *host) {
		h.pod()
		h.budget()
		h.start()
		h.asks()
		h.grant()
		h.shows(corev1.NodeDrainInProgress, "True")
		h.front.hold(request(http.MethodPatch, "/status"))
		must(h.t, api.Delete(h.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: h.name}}))
		h.front.waits(h.t)
	},
	"the host goes down": func(h *host) {
		h.start()
		h.asks()
		h.grant()
		h.in(protocol.PhaseRebooting)
		h.called("RebootWithFlags")
	},
	"its first report after the boot hangs": func(h *host) {
		h.start()
		h.asks()
		h.grant()
		h.called("RebootWithFlags")
		h.agent.Kill()
		h.boot(2)
		h.Engine.SetStatus(hosttest.Idle())
		h.front.hold(request(http.MethodPatch, "/status"))
		h.start()
		h.front.waits(h.t)
	},
	"its events hang": func(h *host) {
		h.front.hold(request(http.MethodPost, "/events"))
		h.start()
		h.asks()
		h.front.waits(h.t)
	},
}

func TestAgent_EndsWithinFiveSecondsInEveryPhase_Behaviour58(t *testing.T) {
	t.Parallel()
	var hosts atomic.Int32
	for phase, reach := range agentPhases {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, fmt.Sprintf("host-%d", hosts.Add(1)), patient)
			reach(h)
			ends(t, "agent", phase, h.agent)
		})
	}
}

// mute accepts connections and reports nothing; received is closed with the first one.
func mute(t *testing.T, network, address string) (at string, connected <-chan struct{}) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	must(t, err)
	first := make(chan struct{})
	go func() {
		once := sync.OnceFunc(func() { close(first) })
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			once()
			defer func() { _ = conn.Close() }()
		}
	}()
	t.Cleanup(func() { must(t, listener.Close()) })
	return listener.Addr().String(), first
}
