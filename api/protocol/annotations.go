package protocol

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// maxRecordBytes is the longest annotation that is parsed. A record has a few hundred bytes, at
// most fifteen pods, and a few escaped messages of 512 bytes.
const maxRecordBytes = 32768

// maxPolicyBytes is the length of the longest name of a RebootPolicy.
const maxPolicyBytes = 63

// GrantState says what a grant still permits.
type GrantState string

const (
	// GrantActive permits one reboot.
	GrantActive GrantState = "Active"
	// GrantCancelled permits nothing. An agent that has not passed the point of no return aborts.
	GrantCancelled GrantState = "Cancelled"
	// GrantFinished permits nothing, because the reboot is done and the node is back in service.
	GrantFinished GrantState = "Finished"
)

// Grant is the manager's permission to reboot one node once. It is for one boot and ends with it.
type Grant struct {
	// Policy is the RebootPolicy that granted the reboot.
	Policy string `json:"policy"`
	// Ledger is the RebootPolicy whose ledger has the grant if Policy shares its limit, and empty
	// otherwise.
	Ledger string `json:"ledger,omitempty"`
	// Seq increases with every grant of a node.
	Seq int64 `json:"seq"`
	// BootID is the boot that the reboot may end.
	BootID string `json:"bootID"`
	// State is Active, Cancelled or Finished.
	State GrantState `json:"state"`
	// At is the time when the state was written.
	At metav1.Time `json:"at"`
	// Reason says why a grant was cancelled.
	Reason v1alpha1.Reason `json:"reason,omitempty"`
	// Message explains Reason to people in at most 512 bytes. It may be empty.
	Message string `json:"message,omitempty"`
	// Need is the reason of RebootRequired at the time of the grant, for metrics.
	Need v1alpha1.Reason `json:"need,omitempty"`
	// Annotations are the autoscaler annotations that this grant, or the one before, has set. The
	// manager removes them once autoscaler.grace has passed since the end of the grant.
	Annotations []string `json:"annotations,omitempty"`
	// Excluded reports whether this grant has set the label that keeps load balancers off the node.
	Excluded bool `json:"excluded,omitempty"`
	// Unremediated reports the same for the label that keeps health controllers off the node.
	Unremediated bool `json:"unremediated,omitempty"`
	// Taints are the taints that kept pods off the node when its reboot was granted, as key:effect.
	// One that comes with the reboot is not among them.
	Taints []string `json:"taints,omitempty"`
}

// Phase is the state of the agent's attempt.
type Phase string

const (
	// PhaseDraining means the node is cordoned and its pods are leaving. A cancelled grant still
	// stops it.
	PhaseDraining Phase = "Draining"
	// PhaseRebooting means the node is past the point of no return. Only a new boot ID ends it.
	PhaseRebooting Phase = "Rebooting"
	// PhaseAborted means the attempt ended without a reboot, and the agent's own cordon is undone.
	PhaseAborted Phase = "Aborted"
)

// Progress records what the agent does with a grant.
type Progress struct {
	// Seq is the number of the grant that the agent acts on.
	Seq int64 `json:"seq"`
	// Phase is Draining, Rebooting or Aborted.
	Phase Phase `json:"phase"`
	// BootID is the boot in which the attempt began.
	BootID string `json:"bootID"`
	// Cordoned reports whether the agent itself cordoned the node.
	Cordoned bool `json:"cordoned"`
	// Reason says why an attempt was aborted, or that a drain timed out and the reboot goes on
	// regardless.
	Reason v1alpha1.Reason `json:"reason,omitempty"`
	// Message explains Reason to people in at most 512 bytes.
	Message string `json:"message,omitempty"`
	// At is the time when this phase began.
	At metav1.Time `json:"at"`
	// Failures counts the failed attempts in a row. Cancelled attempts do not count, and a reboot
	// resets the number.
	Failures int32 `json:"failures,omitempty"`
	// PodsForced counts the pods that were not evicted: those that remained when the node rebooted
	// with drain.onTimeout Reboot, and those that a rule with action Delete removed since the agent
	// last started. It is written at the end of the drain.
	PodsForced int32 `json:"podsForced,omitempty"`
	// DrainStartedAt is the time when the drain of this attempt began, for metrics.
	DrainStartedAt *metav1.Time `json:"drainStartedAt,omitempty"`
	// Try reports whether the drain began although a PodDisruptionBudget allowed no eviction. If
	// such a drain times out, it does not count towards maxFailures.
	Try bool `json:"try,omitempty"`
	// Budgeted reports whether a drain timed out, and all pods that held it up were terminating or
	// protected by PodDisruptionBudgets. The back-off ends early once the node has no such pods.
	Budgeted bool `json:"budgeted,omitempty"`
	// Recalls counts the calls of logind after the first one. It is written before each call, so
	// that the count survives the boot. A repetition of a call that logind refused does not count.
	Recalls int32 `json:"recalls,omitempty"`
	// CalledAt is the time when Recalls was last written, or nil if logind was called only once.
	// The time of the first call is in At.
	CalledAt *metav1.Time `json:"calledAt,omitempty"`
	// UpSeconds is the uptime of the host at the point of no return, or 0 if unknown.
	UpSeconds int64 `json:"upSeconds,omitempty"`
	// Rebooted reports whether the uptime proves that the host has rebooted although its boot ID is
	// the same.
	Rebooted bool `json:"rebooted,omitempty"`
	// Update is the update that the attempt should apply. It is nil if no engine requires a reboot,
	// or only a broadcast does.
	Update *Update `json:"update,omitempty"`
}

// Update is the update that an attempt should apply. It helps to detect a need that a reboot does
// not end. Such a need requires the same version on the same system again, or has no version and is
// back right after the reboot.
type Update struct {
	// Version is the version that the engine required when the attempt began, or empty.
	Version string `json:"version,omitempty"`
	// Running is the version that ran then, as the engine or os-release names it, or empty.
	Running string `json:"running,omitempty"`
	// VainReboots counts the confirmed reboots in a row for Version before this attempt that
	// neither changed Running nor ended the need.
	VainReboots int32 `json:"vainReboots,omitempty"`
}

// HookPhase is the current phase of hooks of a node. When it begins, all earlier values are
// removed. A value counts only for this grant of this policy in this boot.
type HookPhase struct {
	// Policy is the RebootPolicy that has the hooks. Two policies may use the same number.
	Policy string `json:"policy"`
	// Seq is the number of the ledger entry.
	Seq int64 `json:"seq"`
	// BootID is the boot in which the phase began. The values do not count after another boot.
	BootID string `json:"bootID"`
	// Stage is Before or After.
	Stage v1alpha1.HookStage `json:"stage"`
	// Hooks are the annotations that the phase waits for. A hook that is added to the policy later
	// is not included, because its value may be old.
	Hooks []v1alpha1.AnnotationKey `json:"hooks,omitempty"`
	// At is the time when the phase began, or when TakesPods last changed.
	At metav1.Time `json:"at"`
	// TakesPods is false while a startup taint that came with the reboot keeps pods off the node,
	// and true once it is gone. It is nil if such a taint was not seen.
	TakesPods *bool `json:"takesPods,omitempty"`
}

// ParseHookPhase reads the phase of hooks, or returns nil, nil if the annotation is absent.
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

// String formats the phase as the value of its annotation.
func (h HookPhase) String() string { return format(h) }

// ParseGrant reads the grant of a Node. It returns nil, nil if the annotation is absent. An invalid
// grant is an error and permits nothing.
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

// ParseProgress reads the progress of a Node. It returns nil, nil if the annotation is absent, and
// an error if it is invalid.
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

// absentOrValid reports whether a reason is empty, or valid as the reason of a condition.
func absentOrValid(r v1alpha1.Reason) bool { return r == "" || r.IsValid() }

// fits returns an error if a status would not accept the boot ID or a time. A ledger takes
// outstanding records back, and the API server rejects the whole status if RFC 3339 cannot
// represent one of its times. A time from a clock that was never set is an error too. The reader
// decides how far a time may be in the future, because this package has no clock.
func fits(bootID string, instant metav1.Time, others ...*metav1.Time) error {
	if len(bootID) > v1alpha1.MaxBootIDBytes {
		return fmt.Errorf("bootID has more than %d bytes", v1alpha1.MaxBootIDBytes)
	}
	if instant.IsZero() {
		return errors.New("at must be set")
	}
	for _, t := range append(others, &instant) {
		// RFC 3339 requires years of four digits, and an offset can move a time out of that range.
		if t != nil && (t.UTC().Year() < v1alpha1.FirstYear || t.UTC().Year() > v1alpha1.LastYear) {
			return fmt.Errorf("a time is before the year %d or beyond the year %d", v1alpha1.FirstYear, v1alpha1.LastYear)
		}
	}
	return nil
}

// LedgerName returns the name of the policy whose ledger holds the grant.
func (g *Grant) LedgerName() string { return cmp.Or(g.Ledger, g.Policy) }

// String formats the grant as the value of its annotation.
func (g Grant) String() string { return format(g) }

// String formats the progress as the value of its annotation.
func (p Progress) String() string { return format(p) }

// Engines holds what the engines have reported in this boot, for the next agent process. By then an
// engine may have forgotten the version, may not repeat its report, or may be gone.
type Engines struct {
	// BootID is the boot in which the engines reported.
	BootID string `json:"bootID"`
	// Reported are the engines of the host, in their order.
	Reported []EngineRecord `json:"reported"`
	// Unexpected is the reboot that began this boot, if nobody granted it.
	Unexpected *UnexpectedReboot `json:"unexpected,omitempty"`
}

// EngineRecord holds what one engine has reported.
type EngineRecord struct {
	Name string `json:"name"`
	// Asks reports whether the engine requires a reboot.
	Asks bool `json:"asks,omitempty"`
	// Again reports whether the last granted reboot should have ended the need: the engine has
	// required it since before that reboot, or required it again soon after the boot.
	Again bool `json:"again,omitempty"`
	// Rebooted reports whether the engine required a reboot when the granted reboot ended the
	// previous boot.
	Rebooted bool `json:"rebooted,omitempty"`
	// Until is the time when a need from a broadcast expires, or nil if the need does not expire.
	Until *metav1.Time `json:"until,omitempty"`
	// Version is the version that runs after the reboot, or empty if it is unknown.
	Version string `json:"version,omitempty"`
	// Running is the version that Version replaces, as the engine names it. It is empty if it is
	// unknown or is the version in os-release.
	Running string `json:"running,omitempty"`
	// Client is the FleetLock client that finalizes the update and reboots the host. If it is
	// empty, the agent reboots the host.
	Client string `json:"client,omitempty"`
}

// ParseEngines reads what the engines have reported. It returns nil, nil if the annotation is
// absent. If it is invalid, it returns an error and nothing is known.
func ParseEngines(annotations map[string]string) (*Engines, error) {
	return parse[Engines](annotations, v1alpha1.AnnotationEngines)
}

// validate accepts any content, because the agent compares the boot itself.
func (*Engines) validate() error { return nil }

// String formats the report as the value of its annotation.
func (e Engines) String() string { return format(e) }

// parse reads an annotation. It returns nil, nil if the annotation is absent, and an error if its
// value is invalid.
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
		return nil, fmt.Errorf("annotation %s: null is not a record", key)
	}
	if err := t.validate(); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", key, err)
	}
	return t, nil
}

func format(record any) string {
	// The records hold strings, integers, booleans and times, which can always be marshalled.
	value, err := json.Marshal(record)
	if err != nil {
		panic(err)
	}
	return string(value)
}
