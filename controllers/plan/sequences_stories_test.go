package plan_test

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// sequences returns the stories by the name of their transcript.
func sequences() map[string]sequence {
	all := map[string]sequence{}
	for _, stories := range []map[string]sequence{limits(), owners(), clocks(), troubles(), conflicts(), people(), gateSequences(), pods()} {
		maps.Copy(all, stories)
	}
	return all
}

func limits() map[string]sequence {
	return map[string]sequence{
		"limit-1": {
			about:    "Three nodes take turns, and the one that has waited longest goes first (behaviour 14).",
			policies: []*v1alpha1.RebootPolicy{policy("workers")},
			hosts: []*host{
				needy("worker-1"), needy("worker-2", needsSince(5*time.Hour)), needy("worker-3"), newHost("worker-4"),
			},
		},
		"zero-percent": {
			about:    "0% lets no node go. 1% of three nodes is less than one node, but lets one go.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("0%"))},
			hosts:    hosts(needy, "worker-1 worker-2 worker-3"),
			script:   []act{{10 * minute, "an administrator sets maxUnavailable to 1%", edits("workers", atMost("1%"))}},
		},
		"limit-lowered-in-progress": {
			about:    "The limit is lowered from 3 to 1 while three nodes drain: they finish, and no other node starts (behaviour 20).",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("3"))},
			hosts:    hosts(needy, "worker-1 worker-2 worker-3 worker-4 worker-5"),
			script:   []act{{minute, "an administrator lowers maxUnavailable to 1", edits("workers", atMost("1"))}},
		},
		"shared-limit": {
			about: "Two pools share the limit 2 of policy workers: never more than two of the six nodes are down. Policy gpu lets one of its own nodes go at a time.",
			policies: []*v1alpha1.RebootPolicy{
				policy("workers", atMost("2"), selects("pool", "cpu")), policy("gpu", atMost("1"), selects("pool", "gpu"), sharing("workers")),
			},
			hosts: slices.Concat(hosts(needy, "worker-1 worker-2 worker-3", label("pool", "cpu")), hosts(needy, "gpu-1 gpu-2 gpu-3", label("pool", "gpu"))),
		},
		"shared-limit-set-and-removed": {
			about: "Policy gpu begins to share the limit 1 of workers while a node of each drains: the next one goes once both are back. It gets a limit of " +
				"its own again while its node holds the slot, and grants more only once that has ended.",
			policies: []*v1alpha1.RebootPolicy{
				policy("workers", selects("pool", "cpu")), policy("gpu", selects("pool", "gpu")),
			},
			hosts: slices.Concat(hosts(needy, "worker-1 worker-2", label("pool", "cpu")),
				hosts(needy, "gpu-1 gpu-2 gpu-3 gpu-4", label("pool", "gpu"), drains(5*minute))),
			script: []act{
				{minute, "an administrator makes policy gpu share the limit of workers", edits("gpu", sharing("workers"))},
				{25 * minute, "an administrator gives policy gpu its own limit, 2", edits("gpu", atMost("2"))},
			},
		},
		"shared-limit-deleted": {
			about: "The policy whose limit is shared is deleted while a node of each policy drains. It stays until the node of the other policy is back. " +
				"The other policy grants nothing more until the deleted one exists again.",
			policies: []*v1alpha1.RebootPolicy{
				policy("workers", atMost("2"), selects("pool", "cpu")), policy("gpu", atMost("1"), selects("pool", "gpu"), sharing("workers")),
			},
			hosts: slices.Concat(hosts(needy, "worker-1", label("pool", "cpu")), hosts(needy, "gpu-1 gpu-2", label("pool", "gpu"), drains(5*minute))),
			script: []act{
				{minute, "an administrator deletes policy workers", deletePolicy("workers")},
				{30 * minute, "an administrator makes policy workers again, with limit 1", applies(policy("workers", selects("pool", "cpu")))},
			},
		},
		"startup-taints": {
			about: "A network plugin keeps pods off each node for 40 seconds after its boot, and nodes settle for 5 seconds: they go one at a time, because settling " +
				"begins once the taint is gone. worker-1 always has a taint of its pool. On worker-3 the plugin's taint stays: the reboot has failed until somebody uncordons the node.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", settles(5*time.Second))},
			hosts: []*host{
				needy("worker-1", startsUpIn(40*time.Second), tainted("pool", corev1.TaintEffectNoSchedule), needsSince(5*time.Hour)),
				needy("worker-2", startsUpIn(40*time.Second), needsSince(4*time.Hour)),
				needy("worker-3", startsUpIn(24*time.Hour), needsSince(3*time.Hour)), needy("worker-4"),
			},
			script: []act{{time.Hour, "somebody uncordons worker-3", changes("worker-3", uncordon)}},
		},
		"spacing": {
			about:    "Two at a time, with a spacing of ten minutes: worker-3 and worker-4 wait until the later of the first two has been back for ten minutes.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("2"), spacing(10*minute))},
			hosts:    append(hosts(needy, "worker-1 worker-3 worker-4"), needy("worker-2", drains(6*minute), needsSince(2*time.Hour))),
		},
		"first-batch": {
			about: "Three nodes may be unavailable, but the run begins with one: it comes back and soaks for half an hour, and then three go at once. The next run, " +
				"for worker-1, begins with one node again.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("3"), firstBatch("1", 30*minute))},
			hosts:    hosts(needy, "worker-1 worker-2 worker-3 worker-4 worker-5"),
			script: []act{{2 * time.Hour, "worker-1 and worker-2 need a reboot again", func(c *cluster) {
				asks("worker-1")(c)
				asks("worker-2")(c)
			}}},
		},
		"first-batch-fails": {
			about:    "The drain of the first node of a run fails: the run does not grow, and the nodes go one at a time.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("3"), firstBatch("1", 30*minute))},
			hosts:    append(hosts(needy, "worker-2 worker-3 worker-4"), needy("worker-1", needsSince(2*time.Hour), func(h *host) { h.failDrains = 1 })),
		},
		"deadline": {
			about:    "A deadline of a day: worker-3 is past it and goes first, although its zone comes last.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", deadline(24*time.Hour), domains(corev1.LabelTopologyZone))},
			hosts: slices.Concat(
				hosts(needy, "worker-1 worker-2", label(corev1.LabelTopologyZone, "a"), needsSince(23*time.Hour)),
				hosts(needy, "worker-3", label(corev1.LabelTopologyZone, "b"), needsSince(24*time.Hour)),
			),
		},
		"nodes-deleted-in-their-reboots": {
			about: "An update breaks machines, and a health check deletes each Node that has been down for 5 minutes, long before reboot.timeout. After two " +
				"failures the policy halts. worker-3 is deleted while it drains, which does not count as a failure. An administrator resumes the policy.",
			policies: []*v1alpha1.RebootPolicy{policy("workers")},
			hosts: []*host{
				needy("worker-1", isLost, needsSince(5*time.Hour)), needy("worker-3", drains(10*minute), needsSince(4*time.Hour)), needy("worker-2", isLost), needy("worker-4"), newHost("worker-5"),
			},
			script: []act{
				{7 * minute, "the health check deletes Node worker-1", deleteNode("worker-1")},
				{8 * minute, "an administrator deletes Node worker-3", deleteNode("worker-3")},
				{15 * minute, "the health check deletes Node worker-2", deleteNode("worker-2")},
				{time.Hour, "an administrator withdraws the update, and resumes the policy", edits("workers", resume("update withdrawn"))},
			},
		},
		"canary-deleted-in-its-reboot": {
			about:    "The Node of the only canary is deleted during its reboot and does not register again. The nodes outside the rings wait until an administrator resumes the policy.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", inRings("ring", ring("canary", soaks(30*minute))))},
			hosts:    append(hosts(needy, "worker-1"), needy("worker-9", label("ring", "canary"), isLost)),
			script: []act{
				{7 * minute, "the health check deletes Node worker-9", deleteNode("worker-9")},
				{2 * time.Hour, "an administrator resumes the policy", edits("workers", resume("its disk broke"))},
			},
		},
		"urgent-request-in-another-zone": {
			about: "Two nodes of zone a go at a time, so the zone is always busy. worker-9 of zone b gets an urgent request: no other node of " +
				"zone a is granted, worker-9 goes once the reboots in progress are over, and then zone a continues.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("2"), domains(corev1.LabelTopologyZone), allowsUrgent)},
			hosts: slices.Concat(
				hosts(needy, "worker-1 worker-3 worker-4 worker-5", label(corev1.LabelTopologyZone, "a")),
				hosts(needy, "worker-2", label(corev1.LabelTopologyZone, "a"), drains(6*minute)),
				hosts(needy, "worker-9", label(corev1.LabelTopologyZone, "b"), needsSince(time.Hour)),
			),
			script: []act{{minute, "somebody asks for worker-9, urgently", changes("worker-9", sets(v1alpha1.AnnotationRebootRequested, "urgent: CVE-2026-12345"))}},
		},
		"out-of-load-balancers": {
			about:    "Load balancers exclude a node from its grant until it is back or its attempt is over. The label that an administrator put on worker-2 stays.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", excludes)},
			hosts: []*host{
				needy("worker-1", drains(10*minute), needsSince(2*time.Hour)), needy("worker-2", label(v1alpha1.LabelExcludeFromLoadBalancers, "true")),
			},
			script: []act{{minute, "somebody uncordons worker-1", changes("worker-1", uncordon)}},
		},
		"kept-from-autoscalers": {
			about: "Autoscalers are kept off a node until 15 minutes after it is back or its attempt was given up. worker-1 is granted " +
				"its second reboot within that time and keeps its annotations. worker-2 leaves its policy within that time and loses them at once.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", selects("pool", "x"))},
			hosts: []*host{
				needy("worker-1", label("pool", "x"), drains(4*minute), needsSince(2*time.Hour), showsAutoscalers),
				needy("worker-2", label("pool", "x"), showsAutoscalers), needy("worker-3", label("pool", "x"), showsAutoscalers),
			},
			script: []act{
				{minute, "somebody uncordons worker-1", changes("worker-1", uncordon)},
				{10 * minute, "an administrator takes worker-2 out of the pool", changes("worker-2", relabel("pool", "y"))},
			},
		},
		"rings": {
			about: "Ring canary goes first, one node at a time, and soaks for half an hour after its last node. Then ring staging goes, and then the node outside the rings.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("2"),
				inRings("ring", ring("canary", ringAtMost("1"), soaks(30*minute)), ring("staging")))},
			hosts: slices.Concat(
				[]*host{needy("worker-0", needsSince(5*time.Hour))},
				hosts(needy, "worker-1 worker-2", label("ring", "staging")), hosts(needy, "worker-3 worker-4", label("ring", "canary")),
			),
		},
		"hooks-of-a-run": {
			about: "noout is set before the first node goes and unset after the last one. worker-3 needs a reboot before the second hook has answered, and " +
				"waits. Then noout is set again, because the answers of the first run do not count.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", runHooked)},
			hosts:    append(hosts(needy, "worker-1 worker-2"), newHost("worker-3")),
			script: []act{
				{minute, "noout is set", answersRun("workers", setNoout, "true")},
				{30 * minute, "worker-3 asks for a reboot", asks("worker-3")},
				{40 * minute, "noout is unset", answersRun("workers", unsetNoout, "true")},
				{50 * minute, "noout is set", answersRun("workers", setNoout, "true")},
				{time.Hour, "noout is unset", answersRun("workers", unsetNoout, "true")},
			},
			lasts: 3 * time.Hour,
		},
		"hooks-of-a-run-fail": {
			about: "A hook before the run refuses. The hooks after the run start, and a quarter of an hour later those before the next run, which do not answer for " +
				"an hour. The hook after that run refuses and then does not answer for an hour, until somebody answers for it.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", runHooked)},
			hosts:    hosts(needy, "worker-1 worker-2"),
			script: []act{
				{minute, "noout cannot be set", answersRun("workers", setNoout, "failed: no quorum")},
				{2 * minute, "noout is unset", answersRun("workers", unsetNoout, "true")},
				{80 * minute, "noout cannot be unset", answersRun("workers", unsetNoout, "failed: no quorum")},
				{180 * minute, "noout is unset", answersRun("workers", unsetNoout, "true")},
				{200 * minute, "noout is set", answersRun("workers", setNoout, "true")},
				{220 * minute, "noout is unset", answersRun("workers", unsetNoout, "true")},
			},
			lasts: 5 * time.Hour,
		},
		"hooks-of-a-run-soak": {
			about: "A soak of two hours and a gate that closes for a while do not end the run, and noout stays set. A gate that stays closed for " +
				"an hour does. A pause ends the next run once the draining node is back.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", runHooked, gated("errors"), inRings("ring", ring("canary", soaks(2*time.Hour))))},
			hosts:    slices.Concat(hosts(needy, "worker-1", label("ring", "canary")), hosts(needy, "worker-2 worker-3 worker-4")),
			script: []act{
				{0, "the gate is clear", gatesAnswer("workers", quiet("errors"))},
				{minute, "noout is set", answersRun("workers", setNoout, "true")},
				{20 * minute, "the gate fires", gatesAnswer("workers", firing("errors"))},
				{140 * minute, "the gate is clear", gatesAnswer("workers", quiet("errors"))},
				{142 * minute, "the gate fires", gatesAnswer("workers", firing("errors"))},
				{210 * minute, "noout is unset", answersRun("workers", unsetNoout, "true")},
				{220 * minute, "the gate is clear", gatesAnswer("workers", quiet("errors"))},
				{221 * minute, "noout is set", answersRun("workers", setNoout, "true")},
				{222 * minute, "an administrator pauses the policy", edits("workers", paused(nil, "disk"))},
				{240 * minute, "noout is unset", answersRun("workers", unsetNoout, "true")},
			},
			lasts: 5 * time.Hour,
		},
		"hooks-of-a-run-and-deletion": {
			about: "The policy is deleted during a run. Its node comes back, and the hook after the run starts. It does not answer, and after an hour the " +
				"policy goes.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", runHooked)},
			hosts:    hosts(needy, "worker-1 worker-2"),
			script: []act{
				{minute, "noout is set", answersRun("workers", setNoout, "true")},
				{2 * minute, "an administrator deletes the policy", deletePolicy("workers")},
			},
			lasts: 3 * time.Hour,
		},
		"ring-with-a-stuck-node": {
			about:    "worker-1 of ring canary is inhibited, so the others wait until somebody pauses it.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("2"), inRings("ring", ring("canary", soaks(30*minute))))},
			hosts: []*host{
				needy("worker-1", label("ring", "canary"), agentBlocking(`{"reason":"Inhibited","message":"dpkg: upgrading"}`)),
				needy("worker-2", label("ring", "canary")), needy("worker-3"),
			},
			script: []act{{time.Hour, "somebody pauses worker-1", changes("worker-1", pause)}},
		},
		"one-zone-at-a-time": {
			about:    "Zone by zone in the order of their names, two nodes at a time. The node without a zone comes last, and a node that is not Ready does not make its zone busy.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("3"), domains("zone"))},
			hosts: slices.Concat(
				hosts(needy, "worker-1 worker-4", label("zone", "b")), hosts(needy, "worker-2 worker-3 worker-5", label("zone", "a")),
				[]*host{needy("worker-0", needsSince(5*time.Hour)), newHost("worker-6", label("zone", "c"), notReady)},
			),
		},
		"unavailable-node-uses-budget": {
			about:    "worker-3 is not Ready for another reason, and uses up the budget until it is repaired (behaviour 18).",
			policies: []*v1alpha1.RebootPolicy{policy("workers")},
			hosts:    append(hosts(needy, "worker-1 worker-2"), newHost("worker-3", notReady)),
			script:   []act{{10 * minute, "somebody repairs worker-3", setReady("worker-3", corev1.ConditionTrue)}},
		},
		"control-planes-one-at-a-time": {
			about:    "Control-plane nodes go one at a time at any limit, after equal workers, and only while the others are Ready (behaviour 28).",
			policies: []*v1alpha1.RebootPolicy{policy("everything", atMost("4"))},
			hosts: slices.Concat(
				hosts(needy, "cp-1 cp-2 cp-3", label("node-role.kubernetes.io/control-plane", "")), hosts(needy, "worker-1 worker-2"),
			),
			script: []act{
				{3 * minute, "cp-3 fails", setReady("cp-3", corev1.ConditionFalse)},
				{10 * minute, "somebody repairs cp-3", setReady("cp-3", corev1.ConditionTrue)},
			},
		},
	}
}

func owners() map[string]sequence {
	return map[string]sequence{
		"conflict": {
			about: "Two policies with the same priority select worker-2: it waits and reports that, until one has a higher priority (behaviour 21).",
			policies: []*v1alpha1.RebootPolicy{
				policy("blue", selects("blue", "yes")), policy("green", selects("green", "yes")),
			},
			hosts: []*host{
				needy("worker-1", label("blue", "yes")), needy("worker-3", label("green", "yes")),
				needy("worker-2", label("blue", "yes"), label("green", "yes")),
			},
			script: []act{{20 * minute, "an administrator raises the priority of green to 5", edits("green", priority(5))}},
		},
		"priority": {
			about: "The policy with the highest priority governs a node, among those that select it. Each policy keeps its own limit (behaviour 21).",
			policies: []*v1alpha1.RebootPolicy{
				policy("all", atMost("2")), policy("databases", selects("pool", "db"), priority(10)),
			},
			hosts: slices.Concat(hosts(needy, "db-1 db-2", label("pool", "db")), hosts(needy, "web-1 web-2 web-3")),
		},
		"node-moves-to-another-policy": {
			about: "db-1 moves to another policy while it drains, and finishes under the first. db-2 moves before it begins, and its grant is cancelled.",
			policies: []*v1alpha1.RebootPolicy{
				policy("databases", selects("pool", "db"), atMost("2")), policy("webs", selects("pool", "web")),
			},
			hosts: []*host{
				needy("db-1", label("pool", "db")), needy("db-2", label("pool", "db"), slow(3*minute)), needy("web-1", label("pool", "web")),
			},
			script: []act{
				{minute, "an administrator labels db-1 pool=web", changes("db-1", relabel("pool", "web"))},
				{minute + 10*time.Second, "an administrator labels db-2 pool=web", changes("db-2", relabel("pool", "web"))},
			},
		},
		"same-number-from-two-policies": {
			about: "db-1 was number 1 of policy old, whose hook ran, and moves to policy new, which also gives it number 1: " +
				"the new policy's grant counts, and the old one gives its slot to db-2.",
			policies: []*v1alpha1.RebootPolicy{
				policy("old", selects("pool", "db"), hooked("example.com/backup"), holding(1, entry("db-1", 1))),
				policy("new", selects("pool", "new"), holding(1, entry("db-1", 1))),
			},
			hosts: []*host{
				needy("db-1", label("pool", "new"), phase(1, v1alpha1.HooksBefore, 0, askedBy("old", "example.com/backup"))),
				needy("db-2", label("pool", "db")),
			},
			script: []act{
				{2 * minute, "the backup of db-2 is done", changes("db-2", sets("example.com/backup", "true"))},
				{10 * minute, "the check of db-2 is done", changes("db-2", sets("example.com/backup", "true"))},
			},
		},
		"hooks-of-two-policies": {
			about: "The same, but both policies use the same hook, which has approved for the old one: the phase belongs to the old policy, " +
				"so the approval does not count, and the hook runs again (behaviour 51).",
			policies: []*v1alpha1.RebootPolicy{
				policy("old", selects("pool", "db"), hooked("example.com/backup"), holding(1, entry("db-1", 1))),
				policy("new", selects("pool", "new"), hooked("example.com/backup"), holding(1, entry("db-1", 1))),
			},
			hosts: []*host{
				needy("db-1", label("pool", "new"), phase(1, v1alpha1.HooksBefore, 0, askedBy("old", "example.com/backup")),
					annotated("example.com/backup", "true")),
			},
			script: []act{
				{2 * minute, "the backup of db-1 is done again", changes("db-1", sets("example.com/backup", "true"))},
				{10 * minute, "the check of db-1 is done", changes("db-1", sets("example.com/backup", "true"))},
			},
		},
		"policy-deleted-in-progress": {
			about:    "A policy is deleted: the drain in progress finishes, the grant that has not begun is cancelled, and then the policy is gone.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("2"))},
			hosts:    []*host{needy("worker-1"), needy("worker-2", slow(3*minute)), needy("worker-3")},
			script:   []act{{minute, "an administrator deletes policy workers", deletePolicy("workers")}},
		},
		"policy-vanished": {
			about:    "A policy is removed by force, with its finalizer, while a node is down: the policy that governs the node now finishes its reboot.",
			policies: []*v1alpha1.RebootPolicy{policy("old", priority(1)), policy("new")},
			hosts:    hosts(needy, "worker-1 worker-2"),
			script: []act{{3 * minute, "somebody removes policy old with its finalizer", func(c *cluster) {
				c.remove("old")
			}}},
		},
		"status-lost-and-adopted": {
			about:    "The status is lost while two nodes drain, and the limit is lowered to 1: both grants are adopted before anything else is granted (behaviours 16, 61).",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("2"))},
			hosts:    hosts(needy, "worker-1 worker-2 worker-3"),
			script: []act{
				{minute, "an administrator lowers maxUnavailable to 1", edits("workers", atMost("1"))},
				{minute, "the status of workers is lost, and another manager takes over", loseStatus("workers")},
			},
		},
	}
}

func clocks() map[string]sequence {
	opens := func(name, start string, duration time.Duration) func(*v1alpha1.RebootPolicy) {
		return func(p *v1alpha1.RebootPolicy) {
			p.Spec.Windows = []v1alpha1.Window{{Name: name, Start: start, Duration: v1alpha1.Duration{Duration: duration}}}
		}
	}
	noon := opens("noon", "12:00", time.Hour)
	frozen := func(blackout v1alpha1.Blackout) func(*v1alpha1.RebootPolicy) {
		return func(p *v1alpha1.RebootPolicy) { p.Spec.Blackouts = []v1alpha1.Blackout{blackout} }
	}
	freeze := frozen(v1alpha1.Blackout{Name: "freeze", From: "2026-06-02", To: "2026-06-03", Reason: "the quarter ends"})
	return map[string]sequence{
		"window-closing-in-between": {
			about: "The window closes at 23:00. worker-3 drains and finishes. The grant of worker-2, which has not begun, is cancelled " +
				"until the next night. worker-4 needs a reboot when too little time is left for it (behaviours 35, 36).",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("2"), opens("nightly", "22:00", time.Hour), drainTimeout(2*time.Hour))},
			hosts: []*host{
				needy("worker-1", drains(minute)), newHost("worker-2", slow(270*time.Second)), needy("worker-3", drains(70*minute), needsSince(3*time.Hour)),
				newHost("worker-4"),
			},
			script: []act{
				{56 * minute, "worker-2 asks for a reboot", asks("worker-2")}, {57 * minute, "worker-4 asks for a reboot", asks("worker-4")},
			},
			lasts: 24*time.Hour + 30*minute,
		},
		"window-over-midnight": {
			about: "The window is open from 22:00 for four hours. worker-1 takes until 01:52, and worker-2 still begins. However " +
				"long worker-1 took, reboots may begin in the first half of the next window (behaviours 30, 31).",
			policies: []*v1alpha1.RebootPolicy{policy("workers", drainTimeout(5*time.Hour), opens("night", "22:00", 4*time.Hour))},
			hosts:    append(hosts(needy, "worker-2 worker-3"), needy("worker-1", drains(228*minute), needsSince(2*time.Hour))),
			lasts:    24*time.Hour + 20*minute,
		},
		"blackout": {
			about:    "A blackout begins at midnight: the drain in progress finishes, and nothing starts until the day after.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", freeze, drainTimeout(3*time.Hour))},
			hosts:    append(hosts(needy, "worker-1", drains(150*minute)), needy("worker-2")),
			lasts:    27 * time.Hour,
		},
		"blackout-every-year": {
			about:    "A blackout on the first days of June, every year: nothing starts until its end in its time zone.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", frozen(v1alpha1.Blackout{Name: "quarter", From: "05-30", To: "06-03", TimeZone: "Europe/Berlin"}))},
			hosts:    hosts(needy, "worker-1"),
		},
		"deadline-ignores-windows": {
			about: "A deadline of a day that ignores windows. That of worker-1 ends at 22:10, in a blackout, so it goes at midnight, long before the " +
				"window at noon. That of worker-2 ends at 00:30. worker-3 waits for the window, and its message names the time.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", deadline(24*time.Hour), ignoresWindows, noon,
				frozen(v1alpha1.Blackout{Name: "month-end", From: "2026-06-01", To: "2026-06-02"}))},
			hosts: []*host{
				needy("worker-1", needsSince(24*time.Hour-10*minute)), needy("worker-2", needsSince(24*time.Hour-150*minute)), needy("worker-3"),
			},
			lasts: 15 * time.Hour,
		},
		"urgent": {
			about: "The policy is paused in a blackout, and no window is open. It is urgent from 22:10 to 22:40 and ignores all three: worker-1 and " +
				"worker-2 go, one at a time as always. worker-3 needs a reboot when too little time is left, and waits.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", paused(nil, "audit"), noon,
				frozen(v1alpha1.Blackout{Name: "month-end", From: "2026-06-01", To: "2026-06-03"}))},
			hosts: append(hosts(needy, "worker-1 worker-2"), newHost("worker-3")),
			script: []act{
				{10 * minute, "an administrator makes it urgent until 22:40", edits("workers", urgent(evening.Add(40*minute), "Windows", "Blackouts", "Pause"))},
				{39 * minute, "worker-3 asks for a reboot", asks("worker-3")},
			},
			lasts: time.Hour,
		},
		"urgent-request": {
			about: "No window is open. worker-2 gets an urgent request and goes at once. worker-1, which has waited longer, does not. Its request " +
				"becomes urgent while the policy is paused, so it waits until the pause ends.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", allowsUrgent, noon)},
			hosts:    []*host{needy("worker-1", needsSince(3*time.Hour)), needy("worker-2"), newHost("worker-3")},
			script: []act{
				{10 * minute, "somebody asks for worker-2, urgently", changes("worker-2", sets(v1alpha1.AnnotationRebootRequested, "urgent: CVE-2026-12345"))},
				{20 * minute, "an administrator pauses the policy", edits("workers", paused(nil, "incident"))},
				{21 * minute, "somebody asks for worker-1, urgently", changes("worker-1", sets(v1alpha1.AnnotationRebootRequested, "urgent: CVE-2026-12345"))},
				{30 * minute, "an administrator ends the pause", edits("workers", func(p *v1alpha1.RebootPolicy) { p.Spec.Pause = nil })},
			},
			lasts: time.Hour,
		},
		"policy-paused": {
			about:    "The policy is paused until 22:30: worker-1 finishes, the grant of worker-2, which has not begun, is cancelled, and worker-3 waits (behaviour 22).",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("2"))},
			hosts:    []*host{needy("worker-1"), needy("worker-2", slow(3*minute)), needy("worker-3")},
			script:   []act{{minute, "an administrator pauses the policy until 22:30", edits("workers", paused(new(at(30*minute)), "Black Friday"))}},
		},
	}
}

func troubles() map[string]sequence {
	return map[string]sequence{
		"node-lost": {
			about: "worker-1 does not come back: it fails after 30 minutes and keeps its slot, and the policy continues with the other one. " +
				"Two hours later somebody repairs the machine (behaviours 26, 47).",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("2"))},
			hosts:    append(hosts(needy, "worker-2 worker-3 worker-4"), needy("worker-1", needsSince(2*time.Hour), isLost, showsAutoscalers)),
			script:   []act{{2 * time.Hour, "somebody repairs the machine of worker-1", func(c *cluster) { c.hosts["worker-1"].backAt = c.now }}},
		},
		"drain-failed-and-backs-off": {
			about: "The drain of worker-1 fails twice: it is back in service at once, and tried again 5 and then 10 minutes later; " +
				"worker-2 does not wait for worker-1 (behaviour 38).",
			policies: []*v1alpha1.RebootPolicy{policy("workers")},
			hosts:    append(hosts(needy, "worker-2"), needy("worker-1", needsSince(2*time.Hour), func(h *host) { h.failDrains = 2 })),
		},
		"halted-and-resumed": {
			about:    "Two drains fail in a row: the policy halts until an administrator resumes it. Failures count from that time.",
			policies: []*v1alpha1.RebootPolicy{policy("workers")},
			hosts: append(hosts(needy, "worker-1 worker-2", needsSince(2*time.Hour), func(h *host) { h.failDrains = 1 }),
				needy("worker-3", drains(10*minute))),
			script: []act{{time.Hour, "an administrator resumes the policy", edits("workers", resume("the budget of db is fixed"))}},
		},
		"agent-silent": {
			about: "The agent of worker-1 is dead: its grant is cancelled after 5 minutes, it waits for 15, and worker-2 goes. " +
				"The second time the agent lives.",
			policies: []*v1alpha1.RebootPolicy{policy("workers")},
			hosts:    append(hosts(needy, "worker-2"), needy("worker-1", needsSince(2*time.Hour), func(h *host) { h.silent = true })),
			script:   []act{{18 * minute, "somebody repairs the agent of worker-1", func(c *cluster) { c.hosts["worker-1"].silent = false }}},
		},
		"update-rolls-back": {
			about: "worker-1 boots the old version, and its engine asks for the same update again: it gets two reboots, and no third one. " +
				"A new version starts over, and so does an administrator's request (behaviour 27).",
			policies: []*v1alpha1.RebootPolicy{policy("workers")},
			hosts:    append(hosts(needy, "worker-2"), needy("worker-1", needsSince(2*time.Hour), rollsBack("2.0"))),
			script: []act{
				{time.Hour, "the engine of worker-1 asks for version 2.1", asksFor("worker-1", "2.1")},
				{2 * time.Hour, "an administrator asks for a reboot of worker-1", changes("worker-1", sets(v1alpha1.AnnotationRebootRequested, "repaired"))},
			},
			lasts: 4 * time.Hour,
		},
		"node-condition": {
			about: "Another program detects a deadlock on worker-1: after ten minutes the node is rebooted, and not again although the condition stays. It ends and comes " +
				"back: another reboot. When it comes back once more, a third one would be in vain. On worker-2 it never lasts.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", watches)},
			hosts:    hosts(newHost, "worker-1 worker-2", isWatched),
			script: []act{
				{minute, "a deadlock on worker-1 and worker-2", func(c *cluster) {
					detects("worker-1", corev1.ConditionTrue)(c)
					detects("worker-2", corev1.ConditionTrue)(c)
				}},
				{10 * minute, "the deadlock on worker-2 ends", detects("worker-2", corev1.ConditionFalse)},
				{60 * minute, "the deadlock on worker-1 ends", detects("worker-1", corev1.ConditionFalse)},
				{61 * minute, "the deadlock on worker-1 comes back", detects("worker-1", corev1.ConditionTrue)},
				{90 * minute, "the deadlock on worker-1 ends", detects("worker-1", corev1.ConditionFalse)},
				{91 * minute, "the deadlock on worker-1 comes back", detects("worker-1", corev1.ConditionTrue)},
			},
			lasts: 2 * time.Hour,
		},
		"update-rolls-back-before-drain": {
			about: "worker-1 has a grant for version 2.1, and then its engine asks for 2.0 again, which two reboots did not apply: " +
				"the grant is cancelled, and worker-2 goes (behaviour 27).",
			policies: []*v1alpha1.RebootPolicy{policy("workers")},
			hosts: append(hosts(needy, "worker-2"), needy("worker-1", needsSince(2*time.Hour), slow(3*minute), rollsBack("2.1"),
				grant(1, protocol.GrantFinished, grantedAt(-3*time.Hour)), rebootedInVain("2.0"))),
			script: []act{{minute, "the engine of worker-1 asks for version 2.0", asksFor("worker-1", "2.0")}},
			lasts:  time.Hour,
		},
		"agent-dies-draining": {
			about: "The agent of worker-1 dies while it drains: the slot stays taken, and is reported to have failed after 30 minutes. " +
				"A new agent continues the drain (behaviour 48).",
			policies: []*v1alpha1.RebootPolicy{policy("workers")},
			hosts:    append(hosts(needy, "worker-2"), needy("worker-1", needsSince(2*time.Hour))),
			script: []act{
				{minute, "the agent of worker-1 dies", func(c *cluster) { c.hosts["worker-1"].silent = true }},
				{time.Hour, "the agent of worker-1 starts again", func(c *cluster) {
					c.hosts["worker-1"].silent = false
					c.wakeAll()
				}},
			},
		},
	}
}

func people() map[string]sequence {
	return map[string]sequence{
		"paused-node-before-drain": {
			about:    "worker-1 is paused between its grant and its drain: the grant is cancelled, and worker-2 goes (behaviours 23, 62).",
			policies: []*v1alpha1.RebootPolicy{policy("workers")},
			hosts:    append(hosts(needy, "worker-2"), needy("worker-1", needsSince(2*time.Hour), slow(3*minute))),
			script: []act{
				{minute, "an administrator pauses worker-1", changes("worker-1", pause)},
				{20 * minute, "an administrator goes on with worker-1", changes("worker-1", unpause)},
			},
		},
		"dry-run": {
			about:    "A dry run reports which node would go now and which would wait. Then the mode is set to Enforce.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", dryRun)},
			hosts:    hosts(needy, "worker-1 worker-2"),
			script: []act{{10 * minute, "an administrator sets mode Enforce", edits("workers", func(p *v1alpha1.RebootPolicy) {
				p.Spec.Mode = v1alpha1.ModeEnforce
			})}},
		},
		"admin-cordoned-node": {
			about: "An administrator has cordoned worker-2: it goes first, because that disrupts nothing, and stays cordoned. " +
				"As a cordoned node it uses the budget (behaviours 18, 43).",
			policies: []*v1alpha1.RebootPolicy{policy("workers")},
			hosts:    append(hosts(needy, "worker-1", needsSince(5*time.Hour)), needy("worker-2", cordoned)),
			script:   []act{{30 * minute, "an administrator uncordons worker-2", changes("worker-2", uncordon)}},
		},
		"hooks": {
			about: "A backup hook runs before the drain: its old approval does not count, and a refusal frees the slot for a quarter of an hour. " +
				"A check hook runs after the boot: until it approves, the node stays cordoned and keeps its slot (behaviours 49, 51, 52).",
			policies: []*v1alpha1.RebootPolicy{policy("workers", func(p *v1alpha1.RebootPolicy) {
				p.Spec.Hooks = &v1alpha1.Hooks{Before: []v1alpha1.AnnotationKey{"example.com/backup"}, After: []v1alpha1.AnnotationKey{"example.com/check"}}
			})},
			hosts: []*host{needy("worker-1", needsSince(2*time.Hour), annotated("example.com/backup", "true")), needy("worker-2")},
			script: []act{
				{minute, "the backup of worker-1 fails", changes("worker-1", sets("example.com/backup", "failed: no space left"))},
				{2 * minute, "the backup of worker-2 is done", changes("worker-2", sets("example.com/backup", "true"))},
				{10 * minute, "the check of worker-2 is done", changes("worker-2", sets("example.com/check", "true"))},
				{20 * minute, "the backup of worker-1 is done", changes("worker-1", sets("example.com/backup", "true"))},
				{3 * time.Hour, "the check of worker-1 is done at last", changes("worker-1", sets("example.com/check", "true"))},
			},
		},
		"admin-cordons-during-reboot": {
			about:    "An administrator uncordons worker-1 while it is down, and cordons it again: the cordon no longer belongs to the agent, and stays (behaviour 44).",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("2"))},
			hosts:    hosts(needy, "worker-1 worker-2"),
			script: []act{{3 * minute, "an administrator uncordons worker-1 and cordons it again", changes("worker-1", func(h *host, node *corev1.Node) {
				node.Spec.Unschedulable, h.cordonedBy = true, byAdmin
			})}},
		},
		"rebooted-by-hand": {
			about: "Somebody reboots worker-1 while it drains, and worker-2 after its grant: neither is rebooted again, " +
				"and both are in service (behaviour 50).",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("2"))},
			hosts:    []*host{needy("worker-1"), needy("worker-2", slow(3*minute)), needy("worker-3")},
			script: []act{
				{minute, "somebody reboots worker-1 by hand", func(c *cluster) { c.hosts["worker-1"].comeBack(c) }},
				{minute, "somebody reboots worker-2 by hand", func(c *cluster) { c.hosts["worker-2"].comeBack(c) }},
			},
		},
		"grant-removed-by-hand": {
			about:    "Somebody removes the grant of worker-1 while it is down: it is written again, so that the reboot can be finished.",
			policies: []*v1alpha1.RebootPolicy{policy("workers")},
			hosts:    hosts(needy, "worker-1 worker-2"),
			script: []act{{3 * minute, "somebody removes annotation grant of worker-1", changes("worker-1", func(_ *host, node *corev1.Node) {
				delete(node.Annotations, v1alpha1.AnnotationGrant)
			})}},
		},
	}
}
