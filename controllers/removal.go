package controllers

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// listTimeout is the time-out of a list of the policies that remain.
const listTimeout = 10 * time.Second

// RemovePolicies deletes all policies and waits until the managers have ended the granted reboots. It
// fails if that takes longer than patience. The managers then continue to end them.
func RemovePolicies(ctx context.Context, c client.Client, patience time.Duration, out io.Writer) error {
	err := c.DeleteAllOf(ctx, &v1alpha1.RebootPolicy{})
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil // Their kind is gone, too.
	}
	if err != nil {
		return fmt.Errorf("deleting the policies: %w", err)
	}
	shown, next, unread := "waiting for the policies", "", error(nil)
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = wait.PollUntilContextCancel(within, time.Second, true, func(context.Context) (bool, error) {
		// A list near the end of patience must not fail because of that end.
		ctx, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		var policies v1alpha1.RebootPolicyList
		if unread = c.List(ctx, &policies); unread != nil {
			return meta.IsNoMatchError(unread), nil // the API server may answer next time
		}
		text, advice := underWay(policies.Items)
		if next = advice; text != shown {
			shown = text
			fmt.Fprintln(out, text)
		}
		return len(policies.Items) == 0, nil
	})
	switch {
	case err == nil:
		return nil
	case unread != nil:
		return fmt.Errorf("%s, after %s: listing policies: %w", shown, patience, unread)
	}
	return fmt.Errorf("%s, after %s. %s", shown, patience, next)
}

// underWay says which nodes the deletion of policies waits for, and what to do if that takes too long.
func underWay(policies []v1alpha1.RebootPolicy) (text, advice string) {
	if len(policies) == 0 {
		return "all policies are removed", ""
	}
	var idle, waits []string
	for i := range policies {
		var names []string
		for _, e := range policies[i].Status.Grants {
			names = append(names, e.Node)
		}
		if len(names) == 0 {
			idle = append(idle, policies[i].Name)
			continue
		}
		waits = append(waits, fmt.Sprintf("%s (nodes: %s)", policies[i].Name, strings.Join(names, ", ")))
	}
	if len(waits) == 0 {
		return "waiting for a manager to let policies without granted reboots go: " + strings.Join(idle, ", "),
			"Does a manager run? If none can, see Remove in docs/install.md"
	}
	return "waiting for the managers to end the granted reboots of " + strings.Join(waits, ", "),
		"The reboots go on: uninstall again once they are over (kubectl get rebootpolicies). If no manager runs, see Remove in docs/install.md"
}
