package step

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// hasDrained is a node in attempt 1 whose drain was done a minute ago, while the kubelet still uses
// volumes.
func hasDrained(o *Observation) {
	beingDrained(o)
	o.Drain = Drain{State: DrainDone, DoneAt: now.Add(-time.Minute), LeftAt: now}
}

func using(volumes ...corev1.UniqueVolumeName) func(*Observation) {
	return func(o *Observation) { o.VolumesInUse = volumes }
}

func accountingFor(volumes ...corev1.UniqueVolumeName) func(*Observation) {
	return func(o *Observation) { o.Kept.Names = volumes }
}

func unread(o *Observation) { o.Kept.Unread = `reading claim "a/b": no` }

func waiting(timeout time.Duration) func(*Observation) {
	return func(o *Observation) { o.Policy.Drain.VolumeDetachTimeout = &v1alpha1.Duration{Duration: timeout} }
}

// reported adds the condition that the agent wrote before.
func reported(reason, message string, transition, heartbeat time.Time) func(*Observation) {
	return func(o *Observation) {
		o.Conditions = append(o.Conditions, corev1.NodeCondition{
			Type: corev1.NodeDrained, Status: corev1.ConditionTrue, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(transition), LastHeartbeatTime: metav1.NewTime(heartbeat),
		})
	}
}

// The reboot waits for the volumes of evicted pods, up to a limit (behaviour 42).
func TestDetached_Behaviour42(t *testing.T) {
	doneAt := now.Add(-time.Minute)
	reportedAt := func(instant time.Time) func(*Observation) {
		return reported(v1alpha1.EventVolumesInUse, "", instant, instant)
	}
	evicted := func(o *Observation) { o.Drain.Evicted = true }
	cutShort := func(o *Observation) { o.Drain = Drain{State: DrainRunning} }
	for name, tc := range map[string]struct {
		o    Observation
		want time.Time // zero if it does not wait
	}{
		"no volumes":                   {o: makeObservation(hasDrained)},
		"a volume of an evicted pod":   {makeObservation(hasDrained, using("disk")), doneAt.Add(5 * time.Minute)},
		"a volume of a pod that stays": {o: makeObservation(hasDrained, using("disk"), accountingFor("disk"))},
		"pods that stay may have as many claims that the kubelet never lists": {
			makeObservation(hasDrained, using("disk"), accountingFor("", "")), doneAt.Add(5 * time.Minute),
		},
		"a volume in use, and a pod that stays uses another one":            {makeObservation(hasDrained, using("disk"), accountingFor("other")), doneAt.Add(5 * time.Minute)},
		"a volume that an evicted pod and a pod that stays share":           {o: makeObservation(hasDrained, using("shared", "shared"), accountingFor("shared"))},
		"waits as long as the policy specifies":                             {makeObservation(hasDrained, using("disk"), waiting(time.Hour)), doneAt.Add(time.Hour)},
		"does not wait if the policy specifies 0":                           {o: makeObservation(hasDrained, using("disk"), waiting(0))},
		"waits no longer than the policy specifies":                         {o: makeObservation(hasDrained, using("disk"), waiting(time.Minute))},
		"does not wait if the drain is cut short":                           {o: makeObservation(hasDrained, using("disk"), cutShort)},
		"a claim that cannot be read is tried again soon":                   {makeObservation(hasDrained, using("disk"), unread), now.Add(15 * time.Second)},
		"a claim that cannot be read delays no longer than a volume":        {makeObservation(hasDrained, using("disk"), unread, waiting(61*time.Second)), now.Add(time.Second)},
		"a claim that cannot be read does not matter without other volumes": {o: makeObservation(hasDrained, using("disk"), accountingFor("disk"), unread)},
		"a new process continues the wait of the last": {
			makeObservation(hasDrained, using("disk"), reportedAt(now.Add(-3*time.Minute))), now.Add(2 * time.Minute),
		},
		"a new process does not start the wait again": {o: makeObservation(hasDrained, using("disk"), reportedAt(begun))},
		"a new process that evicted a pod starts the wait again": {
			makeObservation(hasDrained, using("disk"), reportedAt(now.Add(-3*time.Minute)), evicted), doneAt.Add(5 * time.Minute),
		},
		"a condition of an earlier attempt does not count": {
			makeObservation(hasDrained, using("disk"), reportedAt(begun.Add(-time.Second))), doneAt.Add(5 * time.Minute),
		},
		"another program's condition does not count": {makeObservation(hasDrained, using("disk"), theirs), doneAt.Add(5 * time.Minute)},
		"a condition of a later time does not count": {makeObservation(hasDrained, using("disk"), reportedAt(now)), doneAt.Add(5 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			until, waits := detached(tc.o)
			if diff := cmp.Diff(tc.want, until); diff != "" || waits == tc.want.IsZero() {
				t.Errorf("waits %v (-want,+got):\n%s", waits, diff)
			}
			want := Step(Wait{Until: tc.want})
			if !waits {
				want = CommitReboot{}
			}
			got := Next(tc.o)
			if _, commits := got.(CommitReboot); commits {
				got = CommitReboot{}
			}
			if diff := cmp.Diff(want, got); diff != "" && tc.o.Drain.State == DrainDone {
				t.Errorf("Next (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestVolumesReported(t *testing.T) {
	const one = podsHaveLeft + " The reboot waits at most 5m0s for the kubelet to release disk (status.volumesInUse)."
	minuteAgo, latest := now.Add(-time.Minute), now.Add(-time.Minute+1)
	for name, tc := range map[string]struct {
		o    Observation
		want string
		then time.Time
	}{
		"nothing": {o: makeObservation(hasDrained, using("disk"), accountingFor("disk"))},
		"one":     {o: makeObservation(hasDrained, using("disk")), want: one},
		"five at most by name": {
			o:    makeObservation(hasDrained, using("g", "f", "e", "d", "c", "b", "a"), accountingFor("c")),
			want: strings.Replace(one, "disk", "a, b, d, e, f and 1 more", 1),
		},
		"a claim that could not be read": {
			o:    makeObservation(hasDrained, using("disk"), unread),
			want: one + ` Some may belong to pods that stay: reading claim "a/b": no.`,
		},
		"a change is reported once a minute": {
			o: makeObservation(hasDrained, using("disk"), reported("VolumesInUse", "before", begun, minuteAgo)), want: one,
		},
		"a change within a minute is not reported": {
			o:    makeObservation(hasDrained, using("disk"), reported("VolumesInUse", "before", begun, latest)),
			want: "before", then: now.Add(1),
		},
		"a report from before the host's clock was set back is not kept": {
			o: makeObservation(hasDrained, using("disk"), reported("VolumesInUse", "before", begun, now.Add(time.Hour))), want: one,
		},
		"nothing new":             {o: makeObservation(hasDrained, using("disk"), reported("VolumesInUse", one, begun, latest)), want: one},
		"another reason is older": {o: makeObservation(hasDrained, using("disk"), reported("Drained", podsHaveLeft, begun, latest)), want: one},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.Policy.Drain.VolumeDetachTimeout = nil
			message, then := volumesReported(tc.o)
			if diff := cmp.Diff([]any{tc.want, tc.then}, []any{message, then}); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			if got := again(tc.o, false); !got.Equal(tc.then) {
				t.Errorf("again = %s, want %s", got, tc.then)
			}
		})
	}
	long := makeObservation(hasDrained, using(corev1.UniqueVolumeName(strings.Repeat("ä", 2000))))
	if message, _ := volumesReported(long); len(message) > 1024 {
		t.Errorf("a message of %d bytes", len(message))
	}
}

// A process that has just drained and the next process wait until the same time.
func TestDrainedAt_IsTheTimeThatTheFirstProcessReported(t *testing.T) {
	first := makeObservation(hasDrained, using("disk"))
	conditions := maintenance(first)
	for i := range conditions {
		conditions[i].LastHeartbeatTime, conditions[i].LastTransitionTime = metav1.NewTime(first.Now), metav1.NewTime(first.Now)
	}
	next := makeObservation(hasDrained, using("disk"), func(o *Observation) { o.Now = now.Add(time.Minute) })
	next.Conditions, next.Drain.DoneAt = conditions, next.Now
	if got := drainedAt(next); !got.Equal(first.Now) {
		t.Errorf("drained at %s, reported at %s", got, first.Now)
	}
	if c := next.Condition(corev1.NodeDrained); c.Reason != v1alpha1.EventVolumesInUse {
		t.Errorf("condition %+v", c)
	}
}
