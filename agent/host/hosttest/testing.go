package hosttest

// TB is what StartFor and NewMachine need of a *testing.T, a *testing.B or a Ginkgo suite's GinkgoT().
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	TempDir() string
	Cleanup(func())
}

// StartFor starts a bus for a test and stops it when the test ends. What goes wrong fails the test.
func StartFor(t TB) *Bus {
	t.Helper()
	bus, err := Start(t.TempDir())
	if err != nil {
		t.Fatalf("starting a bus: %v", err)
	}
	t.Cleanup(func() {
		if err := bus.Stop(); err != nil {
			t.Fatalf("stopping the bus: %v", err)
		}
	})
	return bus
}
