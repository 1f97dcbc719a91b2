package protocol

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// maxRecordBytes bounds what is parsed from an annotation. A record has a few hundred bytes, and at most fifteen pods and a few
// messages of 512 bytes, escaped.
const maxRecordBytes = 32768

// maxPolicyBytes is the longest name that a RebootPolicy may have.
const maxPolicyBytes = 63

// GrantState states what a grant still permits.
type GrantState string

const (
	// GrantActive permits one reboot.
	GrantActive GrantState = "Active"
	// GrantCancelled permits nothing any more. An agent that has not passed the point of no return aborts.
	GrantCancelled GrantState = "Cancelled"
	// GrantFinished permits nothing: the reboot is done and the node is back in service.
	GrantFinished GrantState = "Finished"
)

// Grant is the manager's permission for one reboot. It names the boot it was given for, so it dies with that boot.
type Grant struct {
	// Policy is the RebootPolicy that granted.
	Policy string `json:"policy"`
	// Ledger is the RebootPolicy whose ledger has the grant, where the one that granted shares its limit. Empty: that one's own.
	Ledger string `json:"ledger,omitempty"`
	// Seq only grows, over all grants of a node.
	Seq int64 `json:"seq"`
	// BootID is the boot that may be ended.
	BootID string `json:"bootID"`
	// State is Active, Cancelled or Finished.
	State GrantState `json:"state"`
	// At is when the state was written.
	At metav1.Time `json:"at"`
	// Reason states why a grant was cancelled.
	Reason v1alpha1.Reason `json:"reason,omitempty"`
	// Message is a sentence for people that goes with Reason, at most 512 bytes. Absent: the reason reports all.
	Message string `json:"message,omitempty"`
	// Need is the reason of RebootRequired for which it was given, for measuring.
	Need v1alpha1.Reason `json:"need,omitempty"`
	// Annotations are the autoscaler annotations to remove once autoscaler.grace has passed since the grant's end. This grant has set
	// them, or the one before. Absent: none.
	Annotations []string `json:"annotations,omitempty"`
	// Excluded reports whether the label that keeps load balancers off the node was set with this grant and goes with its end.
	Excluded bool `json:"excluded,omitempty"`
}

// Phase states how far an agent is with its grant.
type Phase string

const (
	// PhaseDraining: the node is cordoned and its pods are leaving. A cancelled grant still stops it.
	PhaseDraining Phase = "Draining"
	// PhaseRebooting: past the point of no return. Only a new boot ID ends it.
	PhaseRebooting Phase = "Rebooting"
	// PhaseAborted: the attempt ended without a reboot and the agent's own cordon is undone.
	PhaseAborted Phase = "Aborted"
)

// Progress is what the agent does with a grant.
type Progress struct {
	// Seq is the grant it acts on.
	Seq int64 `json:"seq"`
	// Phase is Draining, Rebooting or Aborted.
	Phase Phase `json:"phase"`
	// BootID is the boot in which the attempt was begun.
	BootID string `json:"bootID"`
	// Cordoned is true only if the agent itself cordoned the node.
	Cordoned bool `json:"cordoned"`
	// Reason states why an attempt was aborted, or that a drain timed out and the reboot goes on regardless.
	Reason v1alpha1.Reason `json:"reason,omitempty"`
	// Message is a sentence for people, at most 512 bytes.
	Message string `json:"message,omitempty"`
	// At is when this phase began.
	At metav1.Time `json:"at"`
	// Failures counts the attempts in a row that failed (not those that were cancelled); a reboot ends the row.
	Failures int32 `json:"failures,omitempty"`
	// PodsForced counts the pods that were not evicted. They were still there when the node was rebooted regardless (drain.onTimeout:
	// Reboot), or a rule with action Delete removed them. An agent that was restarted while it drained does not know what was deleted
	// before. It is written with the end of the drain.
	PodsForced int32 `json:"podsForced,omitempty"`
	// DrainStartedAt is when the drain of this attempt began, for measuring.
	DrainStartedAt *metav1.Time `json:"drainStartedAt,omitempty"`
	// Try reports whether the drain began although a PodDisruptionBudget allowed no eviction. If it runs into its time-out it counts
	// for no halt.
	Try bool `json:"try,omitempty"`
	// Recalls counts the calls of logind after the first, with the one that is about to be made. It is written before each, so that it
	// survives the boot. A call that logind has refused is made again without being counted.
	Recalls int32 `json:"recalls,omitempty"`
	// CalledAt is when the last of them was written. Nil for the first call, which is written with the phase.
	CalledAt *metav1.Time `json:"calledAt,omitempty"`
	// UpSeconds is how long the host had been up at the point of no return. 0: unknown.
	UpSeconds int64 `json:"upSeconds,omitempty"`
	// Rebooted reports whether the uptime has shown that the host has booted since, although its boot ID is the same.
	Rebooted bool `json:"rebooted,omitempty"`
	// Update is what the attempt is to apply. Nil: no engine asked, or by a broadcast only.
	Update *Update `json:"update,omitempty"`
}

// FailedTry reports whether the attempt was a try that failed. Its back-off ends early if the budget opens.
func (p Progress) FailedTry() bool {
	return p.Phase == PhaseAborted && p.Try && p.Reason == v1alpha1.ReasonUndrainablePod
}

// HasBooted reports whether the host, which has a boot ID now, has booted since the attempt began.
func (p Progress) HasBooted(bootID string) bool { return p.BootID != bootID || p.Rebooted }

// Update is what an attempt is to apply. It detects a need that reboots do not end. The same version is asked for again over the
// same system, or a need without a version is there again right after the reboot.
type Update struct {
	// Version is what the engine asked for when the attempt began. Empty: it named none.
	Version string `json:"version,omitempty"`
	// Running is what ran then, as the engine names it, or the version of os-release. Empty: unknown.
	Running string `json:"running,omitempty"`
	// VainReboots counts the confirmed reboots in a row for Version before this attempt. Each left Running as it was and did not end
	// the need.
	VainReboots int32 `json:"vainReboots,omitempty"`
}

// HookPhase is the phase of hooks that a node is in. It begins with the removal of every stale answer. It names all that it
// is for: an answer counts for this grant of this policy, in this boot, and for no other.
type HookPhase struct {
	// Policy is the RebootPolicy that asks: numbers of two policies may be the same.
	Policy string `json:"policy"`
	// Seq is the ledger entry it belongs to.
	Seq int64 `json:"seq"`
	// BootID is the boot in which it began: what was well then may not be after another boot.
	BootID string `json:"bootID"`
	// Stage is Before or After.
	Stage v1alpha1.HookStage `json:"stage"`
	// Hooks are the annotations that are asked. A hook that the policy names later has not been: its answer may be a stale one.
	Hooks []v1alpha1.AnnotationKey `json:"hooks,omitempty"`
	// At is when it began.
	At metav1.Time `json:"at"`
}

// ParseHookPhase reads the phase of hooks. It returns nil, nil when there is none.
func ParseHookPhase(annotations map[string]string) (*HookPhase, error) {
	return parse[HookPhase](annotations, v1alpha1.AnnotationHooks)
}

func (h *HookPhase) validate() error {
	switch {
	case h.Stage != v1alpha1.HooksBefore && h.Stage != v1alpha1.HooksAfter:
		return fmt.Errorf("unknown stage %.64q", h.Stage)
	case h.Seq <= 0 || h.BootID == "" || h.Policy == "":
		return errIncomplete
	}
	return fits(h.BootID, h.At)
}

// String formats the phase as its annotation's value.
func (h HookPhase) String() string { return format(h) }

// ParseGrant reads the grant of a Node. It returns nil, nil when there is none, and an error when it is not one of
// ours: then there is no permission.
func ParseGrant(annotations map[string]string) (*Grant, error) {
	return parse[Grant](annotations, v1alpha1.AnnotationGrant)
}

func (g *Grant) validate() error {
	switch g.State {
	case GrantActive, GrantCancelled, GrantFinished:
	default:
		return fmt.Errorf("unknown state %.64q", g.State)
	}
	switch {
	case g.Seq <= 0 || g.BootID == "" || g.Policy == "":
		return errIncomplete
	case len(g.Policy) > maxPolicyBytes || len(g.Ledger) > maxPolicyBytes:
		return fmt.Errorf("the name of the policy has more than %d bytes", maxPolicyBytes)
	case !absentOrValid(g.Reason) || !absentOrValid(g.Need):
		return errReason
	}
	return fits(g.BootID, g.At)
}

// ParseProgress reads the progress of a Node. It returns nil, nil when there is none, and an error when it is not one
// of ours.
func ParseProgress(annotations map[string]string) (*Progress, error) {
	return parse[Progress](annotations, v1alpha1.AnnotationProgress)
}

func (p *Progress) validate() error {
	switch p.Phase {
	case PhaseDraining, PhaseRebooting, PhaseAborted:
	default:
		return fmt.Errorf("unknown phase %.64q", p.Phase)
	}
	switch {
	case p.Seq <= 0 || p.BootID == "":
		return errors.New("seq and bootID must be set")
	case !absentOrValid(p.Reason):
		return errReason
	case p.Recalls < 0:
		return errors.New("recalls must not be negative")
	case p.Failures < 0 || p.PodsForced < 0 || p.Update != nil && p.Update.VainReboots < 0:
		return errors.New("failures, podsForced and vainReboots must not be negative")
	}
	return fits(p.BootID, p.At, p.DrainStartedAt, p.CalledAt)
}

var (
	errReason     = errors.New("the reason must be letters and digits, such as Inhibited")
	errIncomplete = errors.New("seq, bootID and policy must be set")
)

// absentOrValid reports whether a condition takes a reason, or it is absent.
func absentOrValid(r v1alpha1.Reason) bool { return r == "" || r.IsValid() }

// fits refuses what a status does not take. A ledger takes outstanding records back, and the API server refuses the whole status for
// one entry without a time that RFC 3339 can write. A clock that was never set is refused as well. How far a time may be ahead is for
// the reader to judge: this package has no clock.
func fits(bootID string, at metav1.Time, others ...*metav1.Time) error {
	if len(bootID) > v1alpha1.MaxBootIDBytes {
		return fmt.Errorf("bootID has more than %d bytes", v1alpha1.MaxBootIDBytes)
	}
	if at.IsZero() {
		return errors.New("at must be set")
	}
	for _, t := range append(others, &at) {
		// RFC 3339 has years of four digits, but an offset can move a time out of them.
		if t != nil && (t.UTC().Year() < v1alpha1.FirstYear || t.UTC().Year() > v1alpha1.LastYear) {
			return fmt.Errorf("a time is before the year %d or beyond the year %d", v1alpha1.FirstYear, v1alpha1.LastYear)
		}
	}
	return nil
}

// LedgerName is the policy whose ledger has the grant.
func (g *Grant) LedgerName() string { return cmp.Or(g.Ledger, g.Policy) }

// String formats the grant as its annotation's value.
func (g Grant) String() string { return format(g) }

// String formats the progress as its annotation's value.
func (p Progress) String() string { return format(p) }

// Engines is what the agent's engines have reported, for its next process. An engine may not repeat what it reported, may have
// forgotten the version, or may be gone. In another boot none of that holds. Absent: none has reported.
type Engines struct {
	// BootID is the boot in which they reported.
	BootID string `json:"bootID"`
	// Reported are the engines that the host has, in their order.
	Reported []EngineRecord `json:"reported"`
}

// EngineRecord is what one engine has reported.
type EngineRecord struct {
	Name string `json:"name"`
	// Asks reports whether it asks for a reboot.
	Asks bool `json:"asks,omitempty"`
	// Again reports whether it asks for what the last granted reboot was to end: it has asked since before that, or asked again soon
	// after the boot.
	Again bool `json:"again,omitempty"`
	// Rebooted reports whether it asked when the granted reboot ended the boot before this one.
	Rebooted bool `json:"rebooted,omitempty"`
	// Until is when a need ends by itself that was received in a broadcast. Absent: it lasts.
	Until *metav1.Time `json:"until,omitempty"`
	// Version is what runs after the reboot. Absent: unknown.
	Version string `json:"version,omitempty"`
	// Running is what Version is to replace, as the engine names it. Absent: unknown, or the version of os-release.
	Running string `json:"running,omitempty"`
	// Client is the FleetLock client that finalizes the update and reboots the host. Absent: the agent reboots it.
	Client string `json:"client,omitempty"`
}

// ParseEngines reads what the engines have reported. It returns nil, nil when there is none, and an error when it is not one of
// ours: then nothing is known.
func ParseEngines(annotations map[string]string) (*Engines, error) {
	return parse[Engines](annotations, v1alpha1.AnnotationEngines)
}

// validate accepts any content: the agent compares the boot by itself.
func (*Engines) validate() error { return nil }

// String formats what the engines have reported as its annotation's value.
func (e Engines) String() string { return format(e) }

// parse reads an annotation. It returns nil, nil when there is none, and an error when the value is not valid.
func parse[T any, P interface {
	*T
	validate() error
}](annotations map[string]string, key string) (P, error) {
	value, ok := annotations[key]
	if !ok {
		return nil, nil
	}
	if len(value) > maxRecordBytes {
		return nil, fmt.Errorf("annotation %s: %d bytes are too many", key, len(value))
	}
	var t P
	if err := json.Unmarshal([]byte(value), &t); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", key, err)
	}
	if t == nil {
		return nil, fmt.Errorf("annotation %s: null is no record", key)
	}
	if err := t.validate(); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", key, err)
	}
	return t, nil
}

func format(record any) string {
	// The records hold strings, integers, booleans and times: none of them can fail to marshal.
	value, err := json.Marshal(record)
	if err != nil {
		panic(err)
	}
	return string(value)
}
