package step

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestNodeStatusOf(t *testing.T) {
	up := with(corev1.NodeMaintenanceInProgress, corev1.ConditionTrue, "")
	reported := with(v1alpha1.NodeRebootRequired, corev1.ConditionTrue, request(makeObservation(requesting("x"))))
	const idle = `{"bootID":"boot-2","reported":[{"name":"update-engine"}]}`
	cases[NodeStatus]{
		"nothing before the engines have reported":                    {makeObservation(silent, requesting("x")), NodeStatus{}},
		"nothing after a boot before they have reported":              {makeObservation(silent, rebootedBefore, up), NodeStatus{}},
		"the progress of an attempt before the engines have reported": {makeObservation(silent, goingDown), NodeStatus{Conditions: maintenance(makeObservation(goingDown))}},
		"nothing needed": {makeObservation(), NodeStatus{
			Conditions:  []corev1.NodeCondition{need(makeObservation())},
			Labels:      map[string]*string{v1alpha1.LabelRebootRequired: nil},
			Annotations: map[string]*string{v1alpha1.AnnotationReport: nil, v1alpha1.AnnotationBootedAt: nil, v1alpha1.AnnotationEngines: new(idle)},
			Versioned:   []string{v1alpha1.AnnotationReport},
		}},
		"a need, and an operating system": {
			makeObservation(staged("1"), func(o *Observation) { o.OS = &OS{ID: "flatcar", Version: "4459.2.0"} }),
			NodeStatus{
				Conditions: []corev1.NodeCondition{need(makeObservation(staged("1")))},
				Labels: map[string]*string{
					v1alpha1.LabelRebootRequired: new("true"), v1alpha1.LabelOSID: new("flatcar"),
					v1alpha1.LabelOSVersion: new("4459.2.0"), v1alpha1.LabelOSGroup: nil,
				},
				Annotations: map[string]*string{
					v1alpha1.AnnotationReport: nil, v1alpha1.AnnotationBootedAt: nil,
					v1alpha1.AnnotationEngines: new(`{"bootID":"boot-2","reported":[{"name":"update-engine","asks":true,"version":"1"}]}`),
				},
				Versioned: []string{v1alpha1.AnnotationReport},
				Again:     now.Add(time.Minute),
			},
		},
		"the first report after a boot answers the request (behaviour 13)": {
			makeObservation(rebootedBefore, requesting("x"), reported, up, func(o *Observation) { o.Uptime = time.Minute }), NodeStatus{
				Conditions: []corev1.NodeCondition{
					need(makeObservation()),
					condition(corev1.NodeMaintenanceInProgress, corev1.ConditionFalse, v1alpha1.EventRebootSucceeded, "The node has been rebooted."),
				},
				Labels: map[string]*string{v1alpha1.LabelRebootRequired: nil},
				Annotations: map[string]*string{
					v1alpha1.AnnotationReport: nil, v1alpha1.AnnotationRebootRequested: nil, v1alpha1.AnnotationEngines: new(idle),
					v1alpha1.AnnotationBootedAt: new(now.Add(-time.Minute).UTC().Format(time.RFC3339)),
				},
				Versioned: []string{v1alpha1.AnnotationRebootRequested, v1alpha1.AnnotationReport},
			},
		},
	}.each(t, NodeStatusOf)
}

// The manager's answer is removed in the same write as the need, and the announcement in the same
// write as the maintenance.
func TestRemoved(t *testing.T) {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason}
	}
	type list = []corev1.NodeCondition
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	const need, progress, planned = v1alpha1.NodeRebootRequired, corev1.NodeMaintenanceInProgress, corev1.NodeMaintenancePlanned
	answer, ours := condition(v1alpha1.NodeRebootPermitted, yes, ""), condition(planned, yes, v1alpha1.EventRebootGranted)
	back := condition(progress, no, v1alpha1.EventRebootSucceeded)
	cases := map[string]struct {
		have, reported list
		want           []corev1.NodeConditionType
	}{
		"the need falls":                        {list{condition(need, yes, ""), answer}, list{condition(need, no, "")}, []corev1.NodeConditionType{v1alpha1.NodeRebootPermitted}},
		"the need is unknown":                   {list{condition(need, yes, ""), answer}, list{condition(need, unknown, "")}, []corev1.NodeConditionType{v1alpha1.NodeRebootPermitted}},
		"the need stays":                        {list{condition(need, yes, ""), answer}, list{condition(need, yes, "")}, nil},
		"the need falls without an answer":      {list{condition(need, yes, "")}, list{condition(need, no, "")}, nil},
		"the need has fallen before":            {list{condition(need, no, ""), answer}, list{condition(need, unknown, "")}, nil},
		"the host is back":                      {list{condition(progress, yes, ""), ours}, list{back}, []corev1.NodeConditionType{planned}},
		"another program announced maintenance": {list{condition(progress, yes, ""), condition(planned, yes, "Theirs")}, list{back}, nil},
		"the host goes down":                    {list{ours}, list{condition(progress, yes, string(v1alpha1.ReasonRebooting))}, nil},
		"the drain goes on":                     {list{ours}, list{condition(corev1.NodeDrainInProgress, yes, v1alpha1.EventDraining)}, nil},
		"the agent was not rebooting the host":  {list{condition(progress, no, ""), ours}, list{back}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, removed(Observation{Conditions: tc.have}, tc.reported)); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBlockedBy(t *testing.T) {
	blocked := func(o *Observation) { o.Inhibitors.Message = "Blocked by x." }
	rivalled := func(o *Observation) { o.Coordinators.Found, o.Coordinators.Message = true, "Rival y." }
	unknown := func(o *Observation) { o.Coordinators.Message = "Nobody knows." }
	refused := func(o *Observation) { o.Call = Call{Refusals: 1, RefusedAt: now, Message: "No."} }
	accepted := func(o *Observation) { o.Call.AcceptedAt = now }
	const kept = "kept"
	cases := map[string]struct {
		o      Observation
		asking bool
		want   string
	}{
		"none": {makeObservation(), true, ""},
		"a host that has just booted": {
			makeObservation(up(20*time.Second, 0), blocked), true, `{"reason":"JustBooted","message":"The host has just booted. Its drain waits until ` +
				`Sat 2026-11-21 22:01:40 UTC, because an earlier reboot could undo an update that is not marked as good yet."},{"reason":"Inhibited","message":"Blocked by x."}`,
		},
		"a host that has just booted, with the same message at the next look": {
			makeObservation(up(25*time.Second, 0), func(o *Observation) { o.BootedAt = now.Add(-20 * time.Second) }), true,
			`{"reason":"JustBooted","message":"The host has just booted. Its drain waits until ` +
				`Sat 2026-11-21 22:01:40 UTC, because an earlier reboot could undo an update that is not marked as good yet."}`,
		},
		"a host that has been up for two minutes": {makeObservation(up(2*time.Minute, 0)), true, ""},
		"an inhibitor (behaviour 46)":             {makeObservation(blocked), true, `{"reason":"Inhibited","message":"Blocked by x."}`},
		"another coordinator (behaviour 57)":      {makeObservation(rivalled), true, `{"reason":"CoordinatorConflict","message":"Rival y."}`},
		"an inhibitor and another coordinator, in the order of the checks": {
			makeObservation(rivalled, blocked), true,
			`{"reason":"Inhibited","message":"Blocked by x."},{"reason":"CoordinatorConflict","message":"Rival y."}`,
		},
		"another coordinator is reported before there is a need": {
			makeObservation(rivalled, blocked), false, `{"reason":"CoordinatorConflict","message":"Rival y."}`,
		},
		"unknown coordinators are not reported without a need": {makeObservation(unknown), false, ""},
		"unknown coordinators delay a reboot": {
			makeObservation(unknown), true, `{"reason":"CoordinatorConflict","message":"Nobody knows."}`,
		},
		"kept at rest until coordinators are looked for":                 {makeObservation(unseen), false, kept},
		"another coordinator is reported during the drain":               {makeObservation(rivalled, beingDrained), false, `{"reason":"CoordinatorConflict","message":"Rival y."}`},
		"kept during the drain until coordinators are looked for":        {makeObservation(unseen, beingDrained), true, kept},
		"another coordinator does not count past the point of no return": {makeObservation(rivalled, goingDown), true, kept},
		"an inhibitor is not reported without a need":                    {makeObservation(blocked), false, ""},
		"an inhibitor is reported during the drain":                      {makeObservation(blocked, beingDrained), false, `{"reason":"Inhibited","message":"Blocked by x."}`},
		"kept until inhibitors are known":                                {makeObservation(unasked, beingDrained), true, kept},
		"a grant that the ledger does not hold": {
			makeObservation(granted(7, active), unlisted), true,
			`{"reason":"GrantWithdrawn","message":"The agent does not use grant 7: the ledger of policy workers does not hold it. The manager cancels the grant."}`,
		},
		"a grant that the ledger holds as withdrawn": {
			makeObservation(granted(7, active), withdrawnGrant), true,
			`{"reason":"GrantWithdrawn","message":"The agent does not use grant 7: the ledger of policy workers holds it as withdrawn since Sat 2026-11-21 22:00:00 UTC. The manager cancels the grant."}`,
		},
		"nothing until the ledger is read":                        {makeObservation(granted(7, active), unlisted, noPolicy), true, ""},
		"nothing if the grant is for another boot":                {makeObservation(granted(7, active), unlisted, func(o *Observation) { o.Record.Grant.BootID = otherBoot }), true, ""},
		"nothing once the drain has begun":                        {makeObservation(beingDrained, unlisted), true, ""},
		"nothing when the drained node is free":                   {makeObservation(beingDrained), true, ""},
		"a refusal (behaviour 45)":                                {makeObservation(refused, goingDown), true, `{"reason":"RebootRefused","message":"No."}`},
		"a refusal stays until logind has answered":               {makeObservation(goingDown), true, kept},
		"a refusal stays until the boot ends":                     {makeObservation(refused, accepted, goingDown), true, kept},
		"a refusal ends with the boot":                            {makeObservation(refused, rebootedBefore), false, ""},
		"an inhibitor does not count past the point of no return": {makeObservation(blocked, goingDown), true, kept},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			blockers, known := blockedBy(tc.o, tc.asking)
			got := kept
			if known {
				got = ""
				if blockers != nil {
					got = strings.TrimSuffix(strings.TrimPrefix(protocol.AgentReport{BlockedBy: blockers}.String(), `{"blockedBy":[`), "]}")
				}
			}
			if got != tc.want {
				t.Errorf("blocked by %s, want %s", got, tc.want)
			}
		})
	}
}

// TestAgentReport shows that parts of the report that are unknown now stay as they are on the Node.
func TestAgentReport(t *testing.T) {
	rival := protocol.Blocker{Reason: v1alpha1.ReasonCoordinatorConflict, Message: "Rival y."}
	earlier := func(o *Observation) {
		o.Reported = protocol.AgentReport{BlockedBy: []protocol.Blocker{{Reason: v1alpha1.ReasonInhibited, Message: "Before."}}, Preflight: migration.Report(asked, boot)}
	}
	rivalled := func(o *Observation) { o.Coordinators.Found, o.Coordinators.Message = true, rival.Message }
	before := makeObservation(earlier).Reported
	cases := map[string]struct {
		o    Observation
		want *protocol.AgentReport
	}{
		"both parts are known":            {makeObservation(staged("1"), earlier, rivalled, isAsked, sees(time.Hour, protected)), &protocol.AgentReport{BlockedBy: []protocol.Blocker{rival}, Preflight: protected.Report(asked, boot)}},
		"both are empty":                  {makeObservation(earlier), &protocol.AgentReport{}},
		"the pods are unknown":            {makeObservation(staged("1"), earlier, rivalled, isAsked), &protocol.AgentReport{BlockedBy: []protocol.Blocker{rival}, Preflight: before.Preflight}},
		"the pods do not matter any more": {makeObservation(earlier, rivalled, beingDrained), &protocol.AgentReport{BlockedBy: []protocol.Blocker{rival}, Preflight: before.Preflight}},
		"the host is unknown":             {makeObservation(staged("1"), earlier, unseen, isAsked, sees(time.Hour, protected)), &protocol.AgentReport{BlockedBy: before.BlockedBy, Preflight: protected.Report(asked, boot)}},
		"pods and host are unknown":       {makeObservation(earlier, unseen, beingDrained), nil},
		"what cannot be read is replaced": {makeObservation(staged("1"), rivalled, isAsked), &protocol.AgentReport{BlockedBy: []protocol.Blocker{rival}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := map[string]*string{}
			if tc.want != nil {
				want[v1alpha1.AnnotationReport] = nil
			}
			if tc.want != nil && tc.want.String() != "" {
				want[v1alpha1.AnnotationReport] = new(tc.want.String())
			}
			got := NodeStatusOf(tc.o).Annotations
			delete(got, v1alpha1.AnnotationEngines)
			delete(got, v1alpha1.AnnotationBootedAt)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNodeStatusOf_ReportsWhenTheHostBooted(t *testing.T) {
	bootedAfter := func(uptime time.Duration) *string { return new(now.Add(-uptime).UTC().Format(time.RFC3339)) }
	reported := func(uptime time.Duration) func(*Observation) {
		return func(o *Observation) {
			o.BootedAt = v1alpha1.BootedAt(map[string]string{v1alpha1.AnnotationBootedAt: *bootedAfter(uptime)})
		}
	}
	day := up(24*time.Hour, 0)
	cases[*string]{
		"for the first time":               {makeObservation(day), bootedAfter(24 * time.Hour)},
		"unknown":                          {makeObservation(reported(24 * time.Hour)), nil},
		"a time that is about right stays": {makeObservation(day, reported(24*time.Hour-59*time.Second)), bootedAfter(24*time.Hour - 59*time.Second)},
		"a clock that was set":             {makeObservation(day, reported(24*time.Hour-time.Minute)), bootedAfter(24 * time.Hour)},
		"another boot":                     {makeObservation(up(time.Minute, 0), reported(24*time.Hour)), bootedAfter(time.Minute)},
		"the uptime has a maximum":         {makeObservation(up(24*time.Hour, 720*time.Hour)), bootedAfter(24 * time.Hour)},
	}.each(t, func(o Observation) *string { return NodeStatusOf(o).Annotations[v1alpha1.AnnotationBootedAt] })
}

func TestMaintenance(t *testing.T) {
	all := func(o *Observation) {
		with(corev1.NodeDrainInProgress, corev1.ConditionTrue, "")(o)
		with(corev1.NodeDrained, corev1.ConditionTrue, "")(o)
		with(corev1.NodeMaintenanceInProgress, corev1.ConditionTrue, "")(o)
	}
	early := func(o *Observation) { o.Now = begun.Add(2*time.Second - 1) }
	timedOutBefore := func(o *Observation) {
		o.Record.Progress.Reason, o.Record.Progress.Message = v1alpha1.ReasonDrainTimedOut, "Too long."
	}
	reportedAgo := func(ago time.Duration) func(*Observation) {
		return func(o *Observation) {
			reported := condition(corev1.NodeDrainInProgress, corev1.ConditionTrue, "Draining", "before")
			reported.LastHeartbeatTime = metav1.NewTime(o.Now.Add(-ago))
			o.Conditions = append(o.Conditions, reported)
		}
	}
	forced := func(o *Observation) {
		o.Policy = &Settings{Drain: v1alpha1.Drain{OnTimeout: v1alpha1.DrainTimeoutReboot}}
	}
	deadline := begun.Add(20 * time.Minute).UTC().Format("Mon 2006-01-02 15:04:05 UTC")
	until := " The drain may take until " + deadline + "; then the node is uncordoned and backs off."
	const no, yes = corev1.ConditionFalse, corev1.ConditionTrue
	unread := []corev1.NodeCondition{condition(corev1.NodeDrainInProgress, yes, "Draining", "The node is not drained while policy workers cannot be read."+until)}
	heldUpUntil := " The reboot waits until " + deadline + " at most; then the node is uncordoned and backs off. Blocked by x."
	waitsForPeople := podsHaveLeft + " The reboot waits until " + now.Add(10*time.Minute).UTC().Format("Mon 2006-01-02 15:04:05 UTC") + " at most. People are x."
	const disk = podsHaveLeft + " The reboot waits at most 5m0s for the kubelet to release disk (status.volumesInUse)."
	cases[[]corev1.NodeCondition]{
		"at rest, absent ones stay absent":           {makeObservation(), nil},
		"a short drain is not reported":              {makeObservation(beingDrained, drainIs(Drain{State: DrainRunning}), early), nil},
		"a drain that has not begun is not reported": {makeObservation(beingDrained), nil},
		"the lead time is reported with its end": {
			makeObservation(beingDrained, lead(7*time.Minute)), []corev1.NodeCondition{condition(corev1.NodeDrainInProgress, yes, "Draining",
				"The node is cordoned. Its pods are evicted from "+begun.Add(7*time.Minute).UTC().Format("Mon 2006-01-02 15:04:05 UTC")+" on (drain.leadTime).")},
		},
		"a short drain after the lead time is not reported": {
			makeObservation(beingDrained, lead(5*time.Minute-2*time.Second+1), drainIs(Drain{State: DrainRunning})), nil,
		},
		"a longer drain is reported": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainRunning})),
			[]corev1.NodeCondition{condition(corev1.NodeDrainInProgress, yes, "Draining", leaving+until)},
		},
		"a drain that waits for pods names them": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainRunning, Waits: "a/db-0 (PodDisruptionBudget db)"})),
			[]corev1.NodeCondition{condition(corev1.NodeDrainInProgress, yes, "Draining", "The drain waits for a/db-0 (PodDisruptionBudget db)."+until)},
		},
		"a drain that waits for pods counts those that have left": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainRunning, Waits: "a/db-0", Gone: 9, Total: 12})),
			[]corev1.NodeCondition{condition(corev1.NodeDrainInProgress, yes, "Draining", "The drain waits for a/db-0. 9 of 12 pods have left."+until)},
		},
		"pods that are terminating are counted": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainRunning, Gone: 9, Total: 12})),
			[]corev1.NodeCondition{condition(corev1.NodeDrainInProgress, yes, "Draining", leaving+" 9 of 12 pods have left."+until)},
		},
		"the count changes 10 seconds after the last write at the earliest": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainRunning, Gone: 9, Total: 12}), reportedAgo(10*time.Second-1)),
			[]corev1.NodeCondition{condition(corev1.NodeDrainInProgress, yes, "Draining", "before")},
		},
		"what happens at the time-out depends on the policy": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainRunning}), forced),
			[]corev1.NodeCondition{condition(corev1.NodeDrainInProgress, yes, "Draining", leaving+
				" The drain may take until "+deadline+"; then the node is rebooted with the pods that are left.")},
		},
		"the pods change 10 seconds after the last write at the earliest": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainRunning, Waits: "a/db-1"}), reportedAgo(10*time.Second-1)),
			[]corev1.NodeCondition{condition(corev1.NodeDrainInProgress, yes, "Draining", "before")},
		},
		"the pods change 10 seconds after the last write": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainRunning, Waits: "a/db-1"}), reportedAgo(10*time.Second)),
			[]corev1.NodeCondition{condition(corev1.NodeDrainInProgress, yes, "Draining", "The drain waits for a/db-1."+until)},
		},
		"a write in the future delays nothing": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainRunning, Waits: "a/db-1"}), reportedAgo(-time.Hour)),
			[]corev1.NodeCondition{condition(corev1.NodeDrainInProgress, yes, "Draining", "The drain waits for a/db-1."+until)},
		},
		"a drain that cannot read the pods says why": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainRunning, Unread: "The node's pods could not be read: too busy."})),
			[]corev1.NodeCondition{condition(corev1.NodeDrainInProgress, yes, "Draining", "The node's pods could not be read: too busy."+until)},
		},
		"a failed drain says why": {
			makeObservation(beingDrained, forced, drainIs(Drain{State: DrainFailed, Failures: 1, FailedAt: now, Message: "The last error was: no right."})),
			[]corev1.NodeCondition{condition(corev1.NodeDrainInProgress, yes, "Draining", "The drain failed and is tried again. The last error was: no right."+until)},
		},
		"a failed drain says why until it is known whether it fails again": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainRunning, Failures: 1}), reportedAgo(time.Minute)), nil,
		},
		"a drain that goes on after a failure": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainRunning, Failures: 1, Listed: true}), reportedAgo(time.Minute)),
			[]corev1.NodeCondition{condition(corev1.NodeDrainInProgress, yes, "Draining", leaving+until)},
		},
		"a failed drain of an unreadable policy": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainFailed, Failures: 1, FailedAt: now, Message: "x"}), noPolicy), unread,
		},
		"a drain of another process with an unreadable policy": {makeObservation(beingDrained, noPolicy), unread},
		"a drain that was stopped because its grant is gone":   {makeObservation(beingDrained, noPolicy, func(o *Observation) { o.Record.Grant = nil }), nil},
		"a finished drain that waits": {makeObservation(beingDrained, drainIs(Drain{State: DrainDone})), []corev1.NodeCondition{
			condition(corev1.NodeDrainInProgress, no, "Drained", podsHaveLeft), condition(corev1.NodeDrained, yes, "Drained", podsHaveLeft),
		}},
		"a finished drain whose host is held up": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainDone}), func(o *Observation) { o.Inhibitors.Message = "Blocked by x." }), []corev1.NodeCondition{
				condition(corev1.NodeDrainInProgress, no, "Drained", podsHaveLeft+heldUpUntil), condition(corev1.NodeDrained, yes, "Drained", podsHaveLeft+heldUpUntil),
			},
		},
		"a finished drain that waits for people": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainDone, DoneAt: now}), func(o *Observation) { o.Inhibitors.Sessions = "People are x." }), []corev1.NodeCondition{
				condition(corev1.NodeDrainInProgress, no, "PeopleLoggedIn", waitsForPeople), condition(corev1.NodeDrained, yes, "PeopleLoggedIn", waitsForPeople),
			},
		},
		"a finished drain whose pods came back and may not go": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainDone, Refused: "a/b (why)."})), []corev1.NodeCondition{
				condition(corev1.NodeDrainInProgress, no, "Drained", podsHaveLeft+" a/b (why)."+until), condition(corev1.NodeDrained, yes, "Drained", podsHaveLeft+" a/b (why)."+until),
			},
		},
		"past the point of no return, and a shutdown is blocked": {
			makeObservation(goingDown, func(o *Observation) { o.Inhibitors.Message = "Blocked by x." }), []corev1.NodeCondition{
				condition(corev1.NodeDrainInProgress, no, "Drained", podsHaveLeft), condition(corev1.NodeDrained, yes, "Drained", podsHaveLeft),
				condition(corev1.NodeMaintenanceInProgress, yes, "Rebooting", down),
			},
		},
		"a finished drain that waits for volumes": {makeObservation(hasDrained, using("disk")), []corev1.NodeCondition{
			condition(corev1.NodeDrainInProgress, no, "VolumesInUse", disk), condition(corev1.NodeDrained, yes, "VolumesInUse", disk),
		}},
		"a finished drain that has waited long enough for volumes": {makeObservation(hasDrained, using("disk"), waiting(time.Minute)), []corev1.NodeCondition{
			condition(corev1.NodeDrainInProgress, no, "Drained", podsHaveLeft), condition(corev1.NodeDrained, yes, "Drained", podsHaveLeft),
		}},
		"past the point of no return, with volumes in use": {
			makeObservation(hasDrained, using("disk"), inPhase(1, rebootingPhase)), []corev1.NodeCondition{
				condition(corev1.NodeDrainInProgress, no, "Drained", podsHaveLeft), condition(corev1.NodeDrained, yes, "Drained", podsHaveLeft),
				condition(corev1.NodeMaintenanceInProgress, yes, "Rebooting", down),
			},
		},
		"past the point of no return": {makeObservation(goingDown), []corev1.NodeCondition{
			condition(corev1.NodeDrainInProgress, no, "Drained", podsHaveLeft), condition(corev1.NodeDrained, yes, "Drained", podsHaveLeft),
			condition(corev1.NodeMaintenanceInProgress, yes, "Rebooting", down),
		}},
		"past the point of no return, with pods left": {makeObservation(goingDown, timedOutBefore), []corev1.NodeCondition{
			condition(corev1.NodeDrainInProgress, no, "DrainTimedOut", "Too long."), condition(corev1.NodeDrained, yes, "DrainTimedOut", "Too long."),
			condition(corev1.NodeMaintenanceInProgress, yes, "Rebooting", down),
		}},
		"after the boot": {makeObservation(rebootedBefore, all), []corev1.NodeCondition{
			condition(corev1.NodeDrainInProgress, no, "RebootSucceeded", "The node has been rebooted."), condition(corev1.NodeDrained, no, "RebootSucceeded", "The node has been rebooted."),
			condition(corev1.NodeMaintenanceInProgress, no, "RebootSucceeded", "The node has been rebooted."),
		}},
		"after an abort": {makeObservation(inPhase(1, abortedPhase), with(corev1.NodeDrainInProgress, yes, "")), []corev1.NodeCondition{
			condition(corev1.NodeDrainInProgress, no, "DrainAborted", "The attempt ended without a reboot."),
		}},
		"after a drain that timed out": {makeObservation(inPhase(1, abortedPhase), with(corev1.NodeDrainInProgress, yes, ""), func(o *Observation) {
			o.Record.Progress.Message = "The drain was given up: default/db-0 stayed."
		}), []corev1.NodeCondition{
			condition(corev1.NodeDrainInProgress, no, "DrainAborted", "The attempt ended without a reboot. The drain was given up: default/db-0 stayed."),
		}},
		"an unreadable progress":                               {makeObservation(all, unreadableProgress), nil},
		"another program's conditions stay after the boot":     {makeObservation(rebootedBefore, theirs), nil},
		"another program's conditions stay after an abort":     {makeObservation(inPhase(1, abortedPhase), theirs), nil},
		"another program's conditions stay without an attempt": {makeObservation(theirs), nil},
		"the message of another program's drain is not kept": {
			makeObservation(beingDrained, theirs, drainIs(Drain{State: DrainRunning})), []corev1.NodeCondition{condition(corev1.NodeDrainInProgress, yes, "Draining", leaving+until)},
		},
	}.each(t, maintenance)
}

func TestAgain(t *testing.T) {
	cases := map[string]struct {
		o      Observation
		asking bool
		want   time.Time
	}{
		"never at rest": {makeObservation(), false, time.Time{}},
		"each minute while a grant is waited for":       {makeObservation(), true, now.Add(time.Minute)},
		"when the host has been up for two minutes":     {makeObservation(up(80*time.Second, 0)), true, now.Add(40 * time.Second)},
		"when a drain is long enough to be reported":    {makeObservation(beingDrained, func(o *Observation) { o.Now = begun }), true, begun.Add(2 * time.Second)},
		"not once the drain is reported":                {makeObservation(beingDrained), true, time.Time{}},
		"not past the point of no return":               {makeObservation(goingDown), true, time.Time{}},
		"after a boot that did not end all of the need": {makeObservation(rebootedBefore), true, now.Add(time.Minute)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := again(tc.o, tc.asking); !got.Equal(tc.want) {
				t.Errorf("again = %s, want %s", got, tc.want)
			}
		})
	}
}

// The status of a node at rest changes when its uptime reaches the limit, and not before.
func TestNodeStatusOf_LooksAgainWhenTheUptimeReachesItsMaximum(t *testing.T) {
	cases := map[string]struct {
		is, most time.Duration
		want     time.Time
	}{
		"in an hour":                        {23 * time.Hour, 24 * time.Hour, now.Add(time.Hour)},
		"without a maximum":                 {23 * time.Hour, 0, time.Time{}},
		"the uptime is unknown":             {0, 24 * time.Hour, time.Time{}},
		"each minute while a reboot is due": {24 * time.Hour, 24 * time.Hour, now.Add(time.Minute)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := NodeStatusOf(makeObservation(up(tc.is, tc.most))).Again; !got.Equal(tc.want) {
				t.Errorf("again = %s, want %s", got, tc.want)
			}
		})
	}
}

// The agent reports what keeps the host up, and when that ends, even if only the uptime requires
// the reboot.
func TestDecide_ANodeThatIsUpForTooLongReportsWhoKeepsItUp(t *testing.T) {
	inhibited := protocol.Blocker{Reason: v1alpha1.ReasonInhibited, Message: "Blocked by x."}
	for name, tc := range map[string]struct {
		reported []protocol.Blocker
		message  string
		want     *string
	}{
		"an inhibitor is held":            {nil, inhibited.Message, new(protocol.AgentReport{BlockedBy: []protocol.Blocker{inhibited}}.String())},
		"an inhibitor was released since": {[]protocol.Blocker{inhibited}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := makeObservation(up(24*time.Hour, 24*time.Hour))
			o.Reported.BlockedBy, o.Inhibitors, o.Coordinators = tc.reported, Inhibitors{}, Coordinators{}
			d := Decide(o)
			for ; d.Missing != FactNone; d = Decide(o) {
				if d.Missing == FactInhibitors {
					o.Inhibitors = Inhibitors{Known: true, Message: tc.message}
				}
				o.Coordinators.Known = o.Coordinators.Known || d.Missing == FactCoordinators
				o.Sought = append(o.Sought, d.Missing)
			}
			got, known := d.Status.Annotations[v1alpha1.AnnotationReport]
			if diff := cmp.Diff(tc.want, got); !known || diff != "" {
				t.Errorf("reported %v (-want +got):\n%s", known, diff)
			}
		})
	}
}

// TestNodeStatusOf_New shows that only lasting reasons that the Node does not show yet are new.
func TestNodeStatusOf_New(t *testing.T) {
	rival := protocol.Blocker{Reason: v1alpha1.ReasonCoordinatorConflict, Message: "locksmithd"}
	other := protocol.Blocker{Reason: v1alpha1.ReasonCoordinatorConflict, Message: "kured"}
	inhibited := protocol.Blocker{Reason: v1alpha1.ReasonInhibited, Message: "blocked"}
	finds := func(o *Observation) {
		staged("1")(o)
		o.Coordinators.Message, o.Inhibitors.Message = rival.Message, inhibited.Message
	}
	shown := func(all ...protocol.Blocker) func(*Observation) {
		return func(o *Observation) { o.Reported.BlockedBy = all }
	}
	conflict := []v1alpha1.Reason{v1alpha1.ReasonCoordinatorConflict}
	cases[[]v1alpha1.Reason]{
		"the obstacle is new":                        {makeObservation(finds), conflict},
		"the obstacle was there before":              {makeObservation(finds, shown(inhibited, rival)), nil},
		"another obstacle was there before":          {makeObservation(finds, shown(other)), conflict},
		"the obstacle is gone":                       {makeObservation(staged("1"), shown(rival)), nil},
		"it is unknown whether there is an obstacle": {makeObservation(staged("1"), unseen, shown(rival)), nil},
		"an update that does not take effect":        {makeObservation(survived), []v1alpha1.Reason{v1alpha1.ReasonUpdateNotApplied}},
	}.each(t, func(o Observation) (reasons []v1alpha1.Reason) {
		for _, b := range NodeStatusOf(o).New {
			reasons = append(reasons, b.Reason)
		}
		return reasons
	})
}
