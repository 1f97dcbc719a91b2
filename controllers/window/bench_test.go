package window_test

import (
	"fmt"
	"testing"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// BenchmarkAt measures one window, and the largest number that a policy may have. The last case is
// the worst one known: windows of half an hour a day that together are always open.
func BenchmarkAt(b *testing.B) {
	zones := []string{"Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC", "Australia/Lord_Howe"}
	nightly := make([]v1alpha1.Window, 50)
	monthly := make([]v1alpha1.Window, 50)
	always := make([]v1alpha1.Window, 50)
	turns := make([]v1alpha1.Window, 50)
	for i := range 50 {
		name, zone := named(fmt.Sprintf("w%d", i)), zones[i%len(zones)]
		nightly[i] = daily(fmt.Sprintf("%02d:30", 20+i%4), "2h", zone, name)
		monthly[i] = daily("02:00", "4h", zone, name, on("Sun"), weeks(5))
		always[i] = daily(fmt.Sprintf("%02d:00", i%24), "25h", zone, name)
		turns[i] = daily(fmt.Sprintf("%02d:%02d", i*29/60, i*29%60), "30m", "UTC", name)
	}
	for _, bc := range []struct {
		name    string
		windows []v1alpha1.Window
		now     string
	}{
		{"one nightly, closed", nightly[:1], "2026-06-01 12:00"},
		{"one nightly, open", nightly[:1], "2026-06-01 19:00"},
		{"one always open", always[:1], "2026-06-01 12:00"},
		{"50 nightly, closed", nightly, "2026-06-01 12:00"},
		{"50 nightly, open", nightly, "2026-06-01 22:45"},
		{"50 monthly, closed", monthly, "2026-06-01 12:00"},
		{"50 always open", always, "2026-06-01 12:00"},
		{"50 that cover the day in turns", turns, "2026-06-01 12:00"},
	} {
		b.Run(bc.name, func(b *testing.B) {
			s := compile(b, bc.windows, blackout("b", "2026-12-19", "2027-01-04", "Europe/Berlin"))
			now := at(bc.now)
			for b.Loop() {
				s.At(now)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	windows := []v1alpha1.Window{daily("22:00", "6h", "Europe/Berlin"), daily("23:00", "6h", "America/New_York", named("x"))}
	for b.Loop() {
		compile(b, windows)
	}
}
