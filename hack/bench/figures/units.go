package figures

import (
	"fmt"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

// Quantile is the smallest of the durations that a share of them, in (0, 1], does not exceed. None: 0.
func Quantile(durations []time.Duration, share float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	i := int(share*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// QuantileText is a quantile for people, in milliseconds.
func QuantileText(durations []time.Duration, share float64) string {
	return Milliseconds(Quantile(durations, share))
}

// Milliseconds is a short duration for people.
func Milliseconds(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// Seconds is a duration for people, to the tenth of a second.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// Mebibytes is an amount of memory for people.
func Mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// Largest is the memory of the process that holds most, or that of one that held more before.
func Largest(before process.Memory, processes []*process.Process) process.Memory {
	for _, p := range processes {
		m, err := p.Memory()
		if err == nil && m.Resident > before.Resident { // It may just have ended.
			before = m
		}
	}
	return before
}

// Memory is the whole, and what no other process of the same program shares.
func Memory(m process.Memory) string {
	return fmt.Sprintf("%s, %s of it its own", Mebibytes(m.Resident), Mebibytes(m.Anonymous))
}
