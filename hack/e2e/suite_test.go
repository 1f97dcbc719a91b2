// Package e2e_test tests the operator on real nodes: make e2e.
package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// asked is the variable that `make e2e` sets. Otherwise go test ./... skips the suite.
const asked = "E2E"

// TestRealNodes runs the suite. It is skipped, with the reason, if machines cannot run here.
func TestRealNodes(t *testing.T) {
	if os.Getenv(asked) == "" {
		t.Skip("`make e2e` runs this")
	}
	why, err := exec.CommandContext(t.Context(), filepath.Join(testenv.Root(), "hack", "e2e", "prepare.sh"), "--why-not").Output()
	if err != nil {
		t.Fatal(err)
	}
	if len(why) > 0 {
		t.Skip(strings.TrimSpace(string(why)))
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "real nodes")
}

// here is the site that all specs share.
var here *site

var _ = BeforeSuite(func(ctx context.Context) {
	here = build(ctx)
	if here.release != nil {
		here.release.reboot(ctx)
	}
})

// A kubelet refuses pods while its machine goes down, so the DaemonSet controller backs off longer
// with each reboot. A new generation resets the back-off.
var generation = 10

var _ = BeforeEach(func(ctx context.Context) {
	generation++
	Expect(here.cluster.Kubectl(ctx, nil, "patch", "daemonset", "-n", operator, agents, "--type=merge",
		"--patch", fmt.Sprintf(`{"spec":{"revisionHistoryLimit":%d}}`, generation))).Error().NotTo(HaveOccurred())
})

// Print everything useful when a spec fails.
var _ = JustAfterEach(func(ctx context.Context) {
	if CurrentSpecReport().Failed() {
		here.logf("FAILED: %s", CurrentSpecReport().LeafNodeText)
		here.show(context.WithoutCancel(ctx))
	}
})
