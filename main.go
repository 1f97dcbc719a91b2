// The manager decides which nodes may reboot, and when. The agent, which drains and reboots one node, is in ./agent.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
	_ "time/tzdata" // windows name IANA zones; the image has no zone files

	_ "golang.org/x/crypto/x509roots/fallback"  // authorities for gates and notifications; the image has none
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs of people who run it by hand
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/reboot-operator/reboot-operator/controllers"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

const (
	usageError = 2
	// stopLimit is how long after SIGTERM there is to end in order, the Lease given back.
	stopLimit = 4500 * time.Millisecond
)

func main() {
	var options controllers.Options
	var logging zap.Options
	flags := flag.CommandLine
	flags.Init(os.Args[0], flag.ContinueOnError)
	options.Bind(flags)
	logging.BindFlags(flags)
	if err := parse(flags, &options); err != nil {
		exit(usageError, err)
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
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
		os.Exit(usageError) // flag has printed the line
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
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	mgr, err := controllers.NewManager(config, options)
	if err != nil {
		return err
	}
	if err := errors.Join(controllers.SetupPolicies(mgr, options), controllers.SetupAgents(mgr, options)); err != nil {
		return err
	}
	return lifecycle.Run(ctrl.SetupSignalHandler(), mgr, stopLimit)
}

func exit(code int, err error) {
	fmt.Fprintf(os.Stderr, "manager: %v\n", err)
	os.Exit(code)
}
