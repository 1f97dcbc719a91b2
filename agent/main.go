// The agent reports on its Node whether the host needs a reboot, and drains and reboots it when the manager grants that. The
// manager, which decides about the whole cluster, is in the root folder.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/reboot-operator/reboot-operator/agent/reboot"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

// version is set by the linker.
var version = "dev"

func main() {
	os.Exit(run(os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run is the program: its exit code, and at most one line about what went wrong.
func run(args []string, env func(string) string, stdout, stderr io.Writer) int {
	o, err := parse(args, env, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return fail(stderr, lifecycle.UsageError, err)
	case o.printVersion:
		fmt.Fprintf(stdout, "agent %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return 0
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.log), zap.WriteTo(stderr)))
	klog.SetLogger(ctrl.Log)
	config, err := ctrl.GetConfig()
	if err != nil {
		return fail(stderr, 1, fmt.Errorf("finding the API server: %w", err))
	}
	metrics.Registry.MustRegister(lifecycle.BuildInfo(version))
	ctx := ctrl.SetupSignalHandler()
	agent, err := newAgent(ctx, config, o, hostEnvironment(), reboot.NewMetrics(metrics.Registry))
	if err != nil {
		return fail(stderr, 1, err)
	}
	if err := lifecycle.Run(ctx, agent); err != nil {
		return fail(stderr, 1, err)
	}
	return 0
}

func fail(stderr io.Writer, code int, err error) int {
	fmt.Fprintf(stderr, "agent: %v\n", err)
	return code
}
