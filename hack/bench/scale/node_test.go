package scale

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
)

func TestRealNode_IsAsLargeAsThoseOfRealClusters(t *testing.T) {
	text, err := json.Marshal(realNode(14999, true, time.Now()))
	if size := len(text); err != nil || size < 12<<10 || size > 18<<10 {
		t.Errorf("%d bytes of JSON (%v), want about 15 kB", size, err)
	}
}

// The manager's cache sees each heartbeat, and nothing in it.
func TestHeartbeat_ChangesTheTimesOfTheKubeletsConditions(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	before := realNode(1, false, began)
	var texts [2][]byte
	for i, value := range []any{before, heartbeat(began.Add(heartbeatPeriod))} {
		var err error
		if texts[i], err = json.Marshal(value); err != nil {
			t.Fatal(err)
		}
	}
	text, err := strategicpatch.StrategicMergePatch(texts[0], texts[1], corev1.Node{})
	if err != nil {
		t.Fatal(err)
	}
	var after corev1.Node
	if err := json.Unmarshal(text, &after); err != nil {
		t.Fatal(err)
	}
	beats := 0
	for _, c := range after.Status.Conditions {
		if !c.LastHeartbeatTime.Time.Equal(began) {
			beats++
		}
	}
	if diff := cmp.Diff(snapshot.Trim(before), snapshot.Trim(&after)); diff != "" || beats != len(kubeletConditions) {
		t.Errorf("%d of %d conditions beat; the manager sees (-before +after):\n%s", beats, len(kubeletConditions), diff)
	}
}
