package controllers

import (
	"flag"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestFleetLockOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		args    []string
		enabled bool
		want    string
	}{
		"off by default":             {nil, false, ""},
		"on":                         {[]string{"--fleetlock-bind-address=:8444"}, true, ""},
		"longer than Zincati waits":  {[]string{"--fleetlock-bind-address=:8444", "--fleetlock-hold=30m"}, true, "--fleetlock-hold 30m0s"},
		"no hold":                    {[]string{"--fleetlock-bind-address=:8444", "--fleetlock-hold=0"}, true, ""},
		"requests of nobody":         {[]string{"--fleetlock-requests"}, false, "no effect"},
		"a check of nothing":         {[]string{"--fleetlock-check-source"}, false, "no effect"},
		"a certificate of no server": {[]string{"--fleetlock-cert-dir=/x"}, false, "no effect"},
	} {
		t.Run(name, func(t *testing.T) {
			var o FleetLockOptions
			flags := flag.NewFlagSet("manager", flag.ContinueOnError)
			o.bind(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			err := o.check()
			if o.enabled() != tc.enabled || (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("enabled %t, %v", o.enabled(), err)
			}
		})
	}
}

// The fields that identify a client are not needed for anything else, so they are kept only for the
// server.
func TestWithIdentity(t *testing.T) {
	node := &corev1.Node{}
	node.Status.NodeInfo = corev1.NodeSystemInfo{MachineID: "m", SystemUUID: "u", BootID: "b", KernelVersion: "6"}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
	node.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}}
	node.CreationTimestamp.Time = time.Now()
	kept, err := withIdentity(node)
	got, ok := kept.(*corev1.Node)
	if err != nil || !ok {
		t.Fatalf("%T, %v", kept, err)
	}
	want := corev1.NodeSystemInfo{MachineID: "m", SystemUUID: "u", BootID: "b"}
	if got.Status.NodeInfo != want || len(got.Status.Addresses) != 1 || got.Status.Images != nil {
		t.Errorf("%+v", got.Status)
	}
	if o := (&Options{FleetLock: FleetLockOptions{Address: "0"}}); o.FleetLock.enabled() {
		t.Error("0 turns it off")
	}
}
