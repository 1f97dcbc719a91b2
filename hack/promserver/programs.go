// Package promserver runs the Prometheus server and promtool of bin/prometheus in tests.
package promserver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// Program is the path of prometheus or promtool. A test is skipped where `make prometheus` has not built them, and fails
// where PROMETHEUS_REQUIRED is set: `make ci` sets it.
func Program(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(testenv.Root(), "bin", "prometheus", name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if os.Getenv("PROMETHEUS_REQUIRED") != "" {
		t.Fatalf("%s is missing, and PROMETHEUS_REQUIRED is set: make prometheus", path)
	}
	testenv.NotShown(t, path+" is missing: make prometheus builds it")
	return ""
}
