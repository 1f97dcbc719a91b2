package controllers

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// BenchmarkPass measures the pass after one event of a node, with a fast API server that checks no
// rules. In one case the event ends a reboot, and the slot goes to the next node. handover is the
// part of the pass before that grant is published. In the other case the event belongs to a node
// that is being rebooted, and changes nothing.
func BenchmarkPass(b *testing.B) {
	for _, size := range []int{1000, 5000, 15000} {
		b.Run(fmt.Sprintf("handover/nodes=%d", size), func(b *testing.B) {
			s := newServerWith(b, nil, size, clock.RealClock{})
			var handover time.Duration
			for b.Loop() {
				from := time.Now()
				s.comeBack(b)
				s.pass(b)
				handover += s.published.Sub(from)
			}
			b.ReportMetric(float64(handover.Microseconds())/1000/float64(b.N), "ms/handover")
		})
		b.Run(fmt.Sprintf("idle/nodes=%d", size), func(b *testing.B) {
			s := newServerWith(b, nil, size, clock.RealClock{})
			for b.Loop() {
				change(b, s, s.ledger()[slots-1].Node, beat)
				s.pass(b)
			}
		})
	}
}
