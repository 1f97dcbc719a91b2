package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/reboot-operator/reboot-operator/controllers"
	"github.com/reboot-operator/reboot-operator/hack/chaos/worker"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

// shortLease is shorter than the shipped one, so that a leader that is gone is missed within two seconds.
func shortLease(o *ctrl.Options) {
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = new(2*time.Second), new(1400*time.Millisecond), new(300*time.Millisecond)
}

// manage is the manager: the root folder's main with a shorter Lease and a clock that can be set.
func manage(args []string) int {
	if err := startManager(args); err != nil {
		fmt.Fprintf(os.Stderr, "manager: %v\n", err)
		return 1
	}
	return 0
}

func startManager(args []string) error {
	flags := flag.NewFlagSet(worker.ManagerCommand, flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "How to reach the API server.")
	clock := flags.String("clock", "", "File with the offset of the clock.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctrl.SetLogger(zap.New())
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	config.QPS = -1 // as ctrl.GetConfig has it
	options := controllers.Options{LeaderElect: true, MetricsAddr: "0", ProbeAddr: "0", Namespace: "default"}
	mgr, err := controllers.NewManager(config, options, shortLease)
	if err != nil {
		return err
	}
	if err := errors.Join(controllers.SetupPolicies(mgr, options, worker.FileClock{Path: *clock}), controllers.SetupAgents(mgr, options)); err != nil {
		return err
	}
	return lifecycle.Run(ctrl.SetupSignalHandler(), mgr)
}
