// Barecache is the yardstick for the manager's memory: a cache of controller-runtime that holds all Nodes as they are, and a
// program that does nothing with them. It prints "synced" when it has them all.
package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintf(os.Stderr, "barecache: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	nodes, err := cache.New(ctrl.GetConfigOrDie(), cache.Options{})
	if err != nil {
		return fmt.Errorf("making the cache: %w", err)
	}
	if _, err := nodes.GetInformer(ctx, &corev1.Node{}, cache.BlockUntilSynced(false)); err != nil {
		return fmt.Errorf("asking for Nodes: %w", err)
	}
	go func() {
		if nodes.WaitForCacheSync(ctx) {
			fmt.Println("synced")
		}
	}()
	return nodes.Start(ctx)
}
