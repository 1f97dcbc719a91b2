package kured

// carryElsewhere reports flags whose values mean nothing to a policy.
func carryElsewhere(c *conversion) error {
	for _, f := range elsewhere {
		if f.open {
			c.unconverted(f.name, f.how)
		} else {
			c.unneeded(f.name, f.how)
		}
	}
	return nil
}

const (
	notifies = "spec.notify notifies services, of runs, failures and halts, not of each node: put the address, in the form of shoutrrr, into key url of a Secret, and name it there; docs/policy.md says how"
	labelled = "no labels of yours are set. Conditions RebootPermitted and MaintenanceInProgress of the node say the same; with hooks the node is labelled " +
		"reboot-operator.io/before-reboot=true, later after-reboot=true, and a hook of yours may label it"
	served = "the manager serves metrics at --metrics-bind-address, :8443 with TLS, the agents at :8080; kured_reboot_required is reboot_operator_nodes{state=\"reboot_required\"}"
)

var elsewhere = []struct {
	name, how string
	open      bool
}{
	{name: "period", how: "nothing is polled: the agent notices when its host needs a reboot, the manager acts when a window opens"},
	{name: nodeID, how: "the agent has its node's name from the pod's spec"},
	{name: "annotate-nodes", how: "conditions RebootRequired and MaintenanceInProgress of the node say it, with the time since when; point whoever reads kured's annotations at them"},
	{name: "metrics-host", how: served},
	{name: "metrics-port", how: served},
	{name: "log-format", how: "--zap-encoder of the manager and the agent; json is the default"},
	{name: "prefer-no-schedule-taint", open: true, how: "nodes that wait for nothing but their turn get taint reboot-operator.io/reboot-pending by themselves. Take kured's taint off the nodes: kubectl taint node --all NAME-"},
	{name: "pre-reboot-node-labels", open: true, how: labelled},
	{name: "post-reboot-node-labels", open: true, how: labelled},
	{name: "notify-url", open: true, how: notifies},
	{name: "slack-hook-url", open: true, how: notifies},
	{name: "slack-username", open: true, how: notifies},
	{name: "slack-channel", open: true, how: notifies},
	{name: "message-template-drain", open: true, how: notifies},
	{name: "message-template-reboot", open: true, how: notifies},
	{name: "message-template-uncordon", open: true, how: notifies},
}
