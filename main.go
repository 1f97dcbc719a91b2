// The manager decides which nodes may reboot, and when. The agent, which drains and reboots one node, is in ./agent.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	_ "time/tzdata" // windows name IANA zones; the image has no zone files

	_ "golang.org/x/crypto/x509roots/fallback"  // authorities for gates and notifications; the image has none
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs of people who run it by hand
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/reboot-operator/reboot-operator/controllers"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

func main() {
	var options controllers.Options
	var log lifecycle.Log
	flags := flag.CommandLine
	flags.Init(os.Args[0], flag.ContinueOnError)
	options.Bind(flags)
	log.Bind(flags)
	if err := parse(flags, &options); err != nil {
		exit(lifecycle.UsageError, err)
	}
	log.Start(os.Stderr)
	if err := run(options); err != nil {
		exit(1, err)
	}
}

// parse reads the flags; a bad one is one clear line, without the list of all flags after it.
func parse(flags *flag.FlagSet, options *controllers.Options) error {
	usage := flags.Usage
	flags.Usage = func() {}
	err := flags.Parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		usage()
		os.Exit(0)
	}
	if err != nil {
		os.Exit(lifecycle.UsageError) // flag has printed the line
	}
	if options.PrintVersion {
		fmt.Fprintf(os.Stdout, "manager %s (%s, %s/%s)\n", controllers.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		os.Exit(0)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return options.Complete()
}

func run(options controllers.Options) error {
	config, err := lifecycle.Config()
	if err != nil {
		return err
	}
	managerOptions, err := options.Manager()
	if err != nil {
		return err
	}
	if options.RemovePolicies > 0 {
		c, err := client.New(config, client.Options{Scheme: managerOptions.Scheme})
		if err != nil {
			return fmt.Errorf("making the client: %w", err)
		}
		return controllers.RemovePolicies(ctrl.SetupSignalHandler(), c, options.RemovePolicies, os.Stdout)
	}
	mgr, err := ctrl.NewManager(config, managerOptions)
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	metrics.Registry.MustRegister(lifecycle.BuildInfo(controllers.Version))
	ctx := ctrl.SetupSignalHandler()
	err = errors.Join(
		controllers.SetupProbes(mgr, options), controllers.SetupPolicies(mgr, options, clock.RealClock{}), controllers.SetupAgents(mgr, options),
		controllers.SetupFleetLock(ctx, mgr, options),
	)
	if err != nil {
		return err
	}
	return lifecycle.Run(ctx, mgr)
}

func exit(code int, err error) {
	fmt.Fprintf(os.Stderr, "manager: %v\n", err)
	os.Exit(code)
}
