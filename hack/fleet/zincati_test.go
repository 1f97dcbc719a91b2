package fleet

import (
	"slices"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Zincati stages locked updates and asks for permission. Each node is drained first, one at a time,
// and then rebooted by Zincati. One of them waits for users, one restarts while it asks, and for
// one the manager is killed. If Zincati has died, the agent finalizes the update.
func TestZincati_RebootsWhenThePolicyPermits_Behaviour65(t *testing.T) {
	engines, err := ParseEngines(zincatiName)
	must(t, err)
	empty := []byte(`{apiVersion: v1, kind: Namespace, metadata: {name: empty}}`)
	s := newTrial(t, Options{Nodes: 4, Engines: engines, Workload: empty}, func(spec *v1alpha1.RebootPolicySpec) {
		spec.Reboot = &v1alpha1.Reboot{Settle: &v1alpha1.Duration{}, Timeout: &v1alpha1.Duration{Duration: 20 * time.Second}}
	})
	hosts := s.fleet.Hosts
	hosts[1].Zincati.LogIn(5)
	s.must(s.fleet.Stage())
	hosts[2].Zincati.Restart()
	hosts[3].Zincati.Kill()
	s.fleet.Managers()[0].Kill()
	s.awaitFinished()
	for i, h := range hosts {
		// Nobody but the agent finalized the update of the last machine, whose Zincati got no
		// answer.
		answers := h.Zincati.Answers()
		if yes, finalized := slices.Contains(answers, "pre-reboot 200"), h.Zincati.Finalized(); yes != (i != 3) || finalized != 1 {
			t.Errorf("%s: finalized %d times, answers: %q", h.Name, finalized, answers)
		}
	}
	for _, v := range s.fleet.Recorder.Read().Views {
		if v.Reboots != 1 || v.Cordoned {
			t.Errorf("%s was rebooted %d times, cordoned: %t", v.Node, v.Reboots, v.Cordoned)
		}
	}
}
