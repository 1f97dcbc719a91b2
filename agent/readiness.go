package main

import (
	"context"
	"errors"
	"net/http"
)

// errNotListed is why an agent is not ready. What the API server answers instead is in its log, and nobody else's business.
var errNotListed = errors.New("the API server has not listed this agent's Node yet; the agent's log says why")

// readiness is closed when the caches are filled, and never opened again: a rollout of agents that may not read their Nodes
// stops at the DaemonSet's maxUnavailable, and an API server that is away later makes no agent unready. It implements
// manager.Runnable.
type readiness chan struct{}

// Start is called once.
func (r readiness) Start(context.Context) error {
	close(r)
	return nil
}

// NeedLeaderElection tells that it is started right after the caches.
func (r readiness) NeedLeaderElection() bool { return false }

// check implements healthz.Checker.
func (r readiness) check(*http.Request) error {
	select {
	case <-r:
		return nil
	default:
		return errNotListed
	}
}
