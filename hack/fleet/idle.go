package fleet

import (
	"context"

	"k8s.io/apimachinery/pkg/util/wait"
)

// engineState is what an agent has reported of its engine.
type engineState struct{ reports, needs bool }

// letIdle lets update engines leave that do so when nobody has called them for a while. On these machines nobody has once
// the agent has reported what it read, which is sooner than the minute that it takes elsewhere.
func letIdle(ctx context.Context, f *Fleet) {
	last := map[string]engineState{}
	_ = wait.PollUntilContextCancel(ctx, readyPoll, true, func(context.Context) (bool, error) {
		for _, v := range f.views() {
			now := engineState{v.Reports, v.Needs}
			if h := f.kubelet.hosts[v.Node]; h != nil && now != last[v.Node] {
				h.idle()
			}
			last[v.Node] = now
		}
		return false, nil // Until ctx ends, which is no error here.
	})
}

// idle lets the update engine leave if it is one that does.
func (h *Host) idle() {
	if engine, leaves := h.updates.(idler); leaves {
		engine.idle()
	}
}
