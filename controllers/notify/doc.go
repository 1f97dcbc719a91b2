// Package notify notifies people of what happens to a policy's nodes, through the services of shoutrrr. It never holds a
// reboot up: a message that cannot be delivered is tried again a few times, and then given up, which an event reports.
package notify
