package forecast_test

import (
	"fmt"
	"testing"

	"github.com/reboot-operator/reboot-operator/controllers/forecast"
)

// BenchmarkOf measures the forecast of a fleet in which every node waits, with limits of one node
// and of 5%.
func BenchmarkOf(b *testing.B) {
	for effort, name := range map[forecast.Effort]string{forecast.Quick: "quick", forecast.Thorough: "thorough"} {
		for _, limit := range []string{"1", "5%"} {
			for _, size := range []int{10, 100, 1000, 5000, 15000} {
				s := snapshotOf(policy(weeknights, atMost(limit)), pool(size))
				b.Run(fmt.Sprintf("%s/limit=%s/nodes=%d", name, limit, size), func(b *testing.B) {
					var f forecast.Forecast
					for b.Loop() {
						f = forecast.Of(s, effort)
					}
					b.ReportMetric(float64(f.Extrapolated), "extrapolated")
					b.ReportMetric(f.CompletionAt.Sub(f.At).Hours(), "hours")
				})
			}
		}
	}
}
