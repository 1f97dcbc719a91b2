package scale

import (
	"encoding/json"
	"testing"
	"time"
)

func TestRealNode_IsAsLargeAsThoseOfRealClusters(t *testing.T) {
	text, err := json.Marshal(realNode(14999, true, time.Now()))
	if size := len(text); err != nil || size < 12<<10 || size > 18<<10 {
		t.Errorf("%d bytes of JSON (%v), want about 15 kB", size, err)
	}
}
