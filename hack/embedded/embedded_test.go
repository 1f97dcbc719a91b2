package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// leavesNothing fails if child processes or data of etcd are left.
func leavesNothing(t *testing.T) {
	t.Helper()
	if remaining, err := process.Children(os.Getpid()); err != nil || len(remaining) > 0 {
		t.Errorf("processes are left: %v %v", remaining, err)
	}
	remaining, err := filepath.Glob(filepath.Join("/dev/shm", fmt.Sprintf("reboot-operator.%d.*", os.Getpid())))
	if err != nil || len(remaining) > 0 {
		t.Errorf("data is left: %v %v", remaining, err)
	}
}

// The tests of hack/fleet start whole clusters, and those of hack/demo check that nothing is left
// of one.
func TestStart_HalfWayLeavesNothing(t *testing.T) {
	cases := map[string]struct {
		assets string
		limit  time.Duration
		want   string
	}{
		"a program is missing":        {assets: programs(t, ""), limit: time.Minute, want: "starting kube-apiserver"},
		"a program ends by itself":    {assets: programs(t, "/bin/false"), limit: time.Minute, want: "kube-apiserver ended: exit status 1"},
		"the caller gives up at once": {limit: 300 * time.Millisecond, want: "context deadline exceeded"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), tc.limit)
			defer cancel()
			t.Setenv("KUBEBUILDER_ASSETS", tc.assets)
			_, err := embedded.Start(ctx, embedded.Options{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			leavesNothing(t)
		})
	}
}

// programs returns a folder with etcd, and with another program as the API server, or "" for none.
func programs(t *testing.T, server string) string {
	t.Helper()
	dir := t.TempDir()
	err := os.Symlink(filepath.Join(testenv.Assets(), "etcd"), filepath.Join(dir, "etcd"))
	if server != "" {
		err = errors.Join(err, os.Symlink(server, filepath.Join(dir, "kube-apiserver")))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
