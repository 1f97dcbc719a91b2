package reboot

import (
	"context"
	"reflect"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

// Looker checks the pods of a node. Package drain implements it.
type Looker interface {
	Look(ctx context.Context, node string, q drain.PodRules) (drain.Findings, error)
	Follow(ctx context.Context, node string, q drain.PodRules, report func(drain.Findings)) error
}

// lookout checks the node's pods in the background as long as the manager asks for it.
type lookout struct {
	*background

	node     string
	looker   Looker
	policies client.Reader
	clock    clock.Clock
	wake     Wake

	mu sync.Mutex
	// asked is the current request, or nil. again reports whether the check has to restart for the
	// same request.
	asked *protocol.Preflight
	again bool
	look  step.Look
}

// newLookout returns the lookout of a node, which starts with the manager that it is added to. Wake
// is triggered whenever the findings change.
func newLookout(node string, looker Looker, policies client.Reader, clock clock.Clock, wake Wake) *lookout {
	return &lookout{background: newBackground("lookout"), node: node, looker: looker, policies: policies, clock: clock, wake: wake}
}

// run checks until ctx ends. It reads the policy once, and again after an error. When the policy
// changes, the manager sends a new request.
func (l *lookout) run(ctx context.Context, asked protocol.Preflight) {
	for ctx.Err() == nil {
		failed, err := l.follow(ctx, asked)
		if ctx.Err() != nil {
			return
		}
		ctrl.LoggerFrom(ctx).Error(err, "Looking at the node's pods again later", "RebootPolicy", asked.Policy)
		l.put(failed)
		lifecycle.Pause(ctx, l.clock, step.LookRetry)
	}
}

// follow checks until ctx ends or an error occurs, and returns a Look with the error. A policy that
// cannot be read may have gates.
func (l *lookout) follow(ctx context.Context, asked protocol.Preflight) (failed step.Look, err error) {
	asking, err := policyNamed(ctx, l.policies, asked.Policy)
	if err != nil {
		failed = found(step.Settings{}, l.clock.Now(), drain.Findings{}, err)
		failed.Gated = true
		return failed, err
	}
	s := settingsOf(asking)
	rules := podRules(s)
	rules.Refused = asked.Failed > 0
	err = l.looker.Follow(ctx, l.node, rules, func(f drain.Findings) { l.put(found(s, l.clock.Now(), f, nil)) })
	return found(s, l.clock.Now(), drain.Findings{}, err), err
}

// once checks the pods now. If it finds something that the check in the background has missed, it
// restarts that check.
func (l *lookout) once(ctx context.Context, s step.Settings) step.Look {
	findings, err := l.looker.Look(ctx, l.node, podRules(s))
	look := found(s, l.clock.Now(), findings, err)
	l.mu.Lock()
	l.again = l.asked != nil && (l.again || missed(l.look, look))
	l.mu.Unlock()
	return look
}

// missed reports whether the check in the background has missed what another check found. A restart
// causes a reconcile, which may check again, so it is false if both found the same. Otherwise that
// would never end. A check that failed is repeated by itself.
func missed(background, other step.Look) bool {
	nothing := step.Look{At: other.At, Gated: other.Gated}
	background.At, background.Gated, background.Refused = other.At, other.Gated, nil
	return background.Problem == "" && !reflect.DeepEqual(other, nothing) && !reflect.DeepEqual(other, background)
}

func (l *lookout) put(look step.Look) {
	l.mu.Lock()
	l.look = look
	l.mu.Unlock()
	l.wake.Trigger()
}

// of returns what is known for a request.
func (l *lookout) of(asked *protocol.Preflight) step.Look {
	l.mu.Lock()
	defer l.mu.Unlock()
	if asked == nil || l.asked == nil || *l.asked != *asked || l.again {
		return step.Look{}
	}
	return l.look
}

// ask starts the check for a request, or stops it if the request is nil.
func (l *lookout) ask(ctx context.Context, asked *protocol.Preflight) error {
	l.mu.Lock()
	same := !l.again && (l.asked == nil) == (asked == nil) && (asked == nil || *l.asked == *asked)
	l.mu.Unlock()
	if same {
		return nil
	}
	// The running check may find something until it has ended. That answers another request, so it
	// is forgotten.
	var begin func(ctx context.Context) func()
	if asked != nil {
		begin = func(ctx context.Context) func() {
			l.forget(asked)
			return func() { l.run(ctx, *asked) }
		}
	}
	err := l.order(ctx, begin)
	if err == nil && asked == nil {
		l.forget(nil)
	}
	return err
}

func (l *lookout) forget(asked *protocol.Preflight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked, l.again, l.look = asked, false, step.Look{}
}

// podRules returns the rules that a check follows under a policy.
func podRules(s step.Settings) drain.PodRules {
	return drain.PodRules{Drain: s.Drain, Blocking: s.BlockingPods}
}

// found returns the result of a check under a policy.
func found(s step.Settings, t time.Time, f drain.Findings, err error) step.Look {
	l := step.Look{
		At: t, Blocking: drain.Named(f.Blocking), Kept: drain.Named(f.Kept), Guarded: drain.Named(f.Guarded), Closed: drain.Named(f.Closed),
		Refused: drain.Named(f.Refused), Gated: len(s.BlockingPods) > 0,
	}
	if err != nil {
		l.Problem = engine.Shorten(err.Error())
	}
	return l
}
