package v1alpha1

// Reboot configures how the node is rebooted.
type Reboot struct {
	// timeout is the longest that a node may take from the point of no return to Ready on a new boot ID, such as 1h.
	// After that, the node counts as failed and keeps its slot.
	// Defaults to 30m.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,12}ms)?$') && [timestamp(self.contains('d') ? 86400 * int(self.substring(0, self.indexOf('d'))) : 0) - timestamp(0) + duration('0s' + self.substring(self.indexOf('d') + 1))].all(d, d > duration('0s') && d <= duration('168h'))",message="timeout must be a duration of more than 0 and at most 7d, such as 30m or 2h"
	Timeout *Duration `json:"timeout,omitempty"`

	// settle is the time for which a rebooted node must stay Ready before it is back in service, such as 5m.
	// It starts once taints that came with the reboot are gone, and 0s does not wait.
	// Defaults to 60s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,12}ms)?$') && [timestamp(self.contains('d') ? 86400 * int(self.substring(0, self.indexOf('d'))) : 0) - timestamp(0) + duration('0s' + self.substring(self.indexOf('d') + 1))].all(d, d <= duration('24h'))",message="settle must be a duration of at most 24h, such as 90s or 5m"
	Settle *Duration `json:"settle,omitempty"`

	// inhibitors configures what a logind block inhibitor on the host means, such as one that a package manager takes:
	// - Block: no reboot is granted or begun while anything on the host blocks a shutdown.
	// - Ignore: the host is rebooted regardless.
	// Defaults to Block.
	// Example: Ignore.
	// +optional
	Inhibitors Obstacle `json:"inhibitors,omitempty"`

	// coordinators configures what happens if another program may reboot the host, such as an active locksmithd:
	// - Block: no reboot is granted until no other program may reboot the host.
	// - Ignore: the host is rebooted regardless, by two programs that do not know of each other.
	// Defaults to Block.
	// Example: Ignore.
	// +optional
	Coordinators Obstacle `json:"coordinators,omitempty"`

	// sessions configures what happens while people are logged in on the host, on a terminal or from another host:
	// - Ignore: the host is rebooted regardless.
	// - Wait: the drained node waits until they have logged out, for 10 minutes at most.
	// Defaults to Ignore.
	// Example: Wait.
	// +optional
	Sessions SessionPolicy `json:"sessions,omitempty"`
}

// SessionPolicy says whether a reboot waits for people who are logged in.
// +kubebuilder:validation:Enum=Ignore;Wait
type SessionPolicy string

const (
	// SessionsIgnore reboots the host regardless of people who are logged in.
	SessionsIgnore SessionPolicy = "Ignore"
	// SessionsWait waits until they have logged out, for a limited time.
	SessionsWait SessionPolicy = "Wait"
)

// Obstacle says whether something that stands in the way of a reboot counts.
// +kubebuilder:validation:Enum=Block;Ignore
type Obstacle string

const (
	// ObstacleBlock waits until the obstacle is gone.
	ObstacleBlock Obstacle = "Block"
	// ObstacleIgnore reboots regardless of the obstacle.
	ObstacleIgnore Obstacle = "Ignore"
)
