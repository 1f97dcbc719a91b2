package fleet

import (
	"strings"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// In a cluster of one node, the managers are drained with it, and no other manager could put it
// back in service. Their PodDisruptionBudget keeps one of them there, so the drain times out, and
// is given up or the reboot continues.
func TestSingleNode_IsPutBackInServiceByTheManagerOnIt_Behaviour29(t *testing.T) {
	empty := []byte(`{apiVersion: v1, kind: Namespace, metadata: {name: empty}}`)
	s := newTrial(t, Options{Nodes: 1, Workload: empty}, func(spec *v1alpha1.RebootPolicySpec) {
		spec.Reboot = &v1alpha1.Reboot{Settle: &v1alpha1.Duration{}}
		spec.Drain = &v1alpha1.Drain{Timeout: &v1alpha1.Duration{Duration: 3 * time.Second}, OnTimeout: v1alpha1.DrainTimeoutReboot}
	})
	before := s.fleet.kubelet.of(agentProgram)[0]
	s.must(s.fleet.Stage())
	s.awaitFinished()
	if err := before.ExitError(); before.Alive() || err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("a power cut has left the agent: %v", err)
	}
	for _, v := range s.fleet.Recorder.Read().Views {
		if v.Reboots != 1 || v.Cordoned {
			t.Errorf("%s was rebooted %d times, cordoned: %t", v.Node, v.Reboots, v.Cordoned)
		}
	}
	checkWeight(t, s.fleet)

	t.Run("a need that is soon back waits until the node has been in service for half an hour", func(t *testing.T) {
		s.must(s.fleet.Stage())
		name := s.fleet.Recorder.Read().Views[0].Node
		s.await("the manager to say why", func() bool {
			permitted := v1alpha1.NodeCondition(s.node(name).Status.Conditions, v1alpha1.NodeRebootPermitted)
			return permitted.Reason == string(v1alpha1.ReasonBackingOff) && strings.Contains(permitted.Message, "the next may begin 30m0s later")
		})
	})
}
