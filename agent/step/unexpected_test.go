package step

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
)

func TestUnexpectedReboot(t *testing.T) {
	booted := now.Add(-3 * time.Minute)
	up := func(o *Observation) { o.Uptime = 3 * time.Minute }
	// lastReport is the boot of the last report on the Node, which had version 1.0.
	lastReport := func(bootID string) func(*Observation) {
		return func(o *Observation) {
			o.Before, o.VersionBefore, o.OS = &protocol.Engines{BootID: bootID}, "1.0", &OS{Version: "2.0"}
		}
	}
	attempt := func(phase protocol.Phase, instant time.Time, bootID string) func(*Observation) {
		return func(o *Observation) {
			o.Record.Progress = &protocol.Progress{Seq: 1, Phase: phase, BootID: bootID, At: metav1.NewTime(instant)}
		}
	}
	known := &protocol.UnexpectedReboot{At: metav1.NewTime(booted), FromVersion: "1.0", ToVersion: "2.0"}
	early := now.Add(-time.Hour)
	cases[*protocol.UnexpectedReboot]{
		"no report before":                                                  {makeObservation(up), nil},
		"the last report is of this boot":                                   {makeObservation(up, lastReport(boot)), nil},
		"the last report is of another boot":                                {makeObservation(up, lastReport(otherBoot)), known},
		"a later report of this boot keeps it":                              {makeObservation(up, func(o *Observation) { o.Before = &protocol.Engines{BootID: boot, Unexpected: known} }), known},
		"the uptime is unknown: the boot counts as just now":                {makeObservation(lastReport(otherBoot)), &protocol.UnexpectedReboot{At: metav1.NewTime(now), FromVersion: "1.0", ToVersion: "2.0"}},
		"a granted reboot":                                                  {makeObservation(up, lastReport(otherBoot), attempt(rebootingPhase, early, otherBoot)), nil},
		"in the middle of a drain":                                          {makeObservation(up, lastReport(otherBoot), attempt(drainingPhase, early, otherBoot)), nil},
		"in a drain that has ended because of it":                           {makeObservation(up, lastReport(otherBoot), attempt(abortedPhase, now, otherBoot)), nil},
		"after a drain that was given up":                                   {makeObservation(up, lastReport(otherBoot), attempt(abortedPhase, early, otherBoot)), known},
		"a boot after that of a granted reboot":                             {makeObservation(up, lastReport(otherBoot), attempt(rebootingPhase, early, "boot-0")), known},
		"the progress cannot be read: it is unknown whether it was granted": {makeObservation(up, lastReport(otherBoot), unreadableProgress), nil},
	}.each(t, UnexpectedReboot)
}
