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
	node := realNode(14999, true, time.Now())
	if size := len(encode(node)); size < 12<<10 || size > 18<<10 {
		t.Errorf("%d bytes of JSON, want about 15 kB", size)
	}
	if len(node.Status.Images) != images || node.Labels[labelReboots] == "" || realNode(0, false, time.Now()).Labels[labelReboots] != "" {
		t.Errorf("%d images, labels %v", len(node.Status.Images), node.Labels)
	}
}

func TestNodeName_NoTwoAreTheSame(t *testing.T) {
	seen := map[string]bool{}
	for i := range 1 << 16 {
		seen[nodeName(i)] = true
	}
	if len(seen) != 1<<16 {
		t.Errorf("%d names of %d nodes", len(seen), 1<<16)
	}
}

// The manager's cache sees each heartbeat, and nothing in it.
func TestHeartbeat_ChangesTheTimesOfFourConditions(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	before := realNode(1, false, began)
	text, err := strategicpatch.StrategicMergePatch(encode(before), heartbeat(began.Add(heartbeatPeriod)), corev1.Node{})
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
	if diff := cmp.Diff(snapshot.Trim(before), snapshot.Trim(&after)); diff != "" || beats != len(heartbeats) {
		t.Errorf("%d of %d conditions beat; the manager sees (-before +after):\n%s", beats, len(heartbeats), diff)
	}
}
