package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// exactly and atLeast state what is missing, and how the command is used.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return fmt.Errorf("%s wants exactly %d argument, %s: %s", cmd.Name(), n, what, cmd.UseLine())
	}
}

func atLeast(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return fmt.Errorf("%s wants %s: %s", cmd.Name(), what, cmd.UseLine())
	}
}

// choose takes the policies that are named, in their order; all where none is.
func choose(policies []v1alpha1.RebootPolicy, names []string) ([]v1alpha1.RebootPolicy, error) {
	if len(names) == 0 {
		return policies, nil
	}
	var chosen []v1alpha1.RebootPolicy
	for _, name := range bare(policyKinds, names...) {
		i := slices.IndexFunc(policies, func(p v1alpha1.RebootPolicy) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no policy %q%s", name, existing(policies))
		}
		chosen = append(chosen, policies[i])
	}
	return chosen, nil
}

// bare takes the kind away from names.
func bare(kinds []string, names ...string) []string {
	names = slices.Clone(names)
	for i, name := range names {
		if kind, rest, ok := strings.Cut(name, "/"); ok && slices.Contains(kinds, kind) {
			names[i] = rest
		}
	}
	return names
}

func existing(policies []v1alpha1.RebootPolicy) string {
	if len(policies) == 0 {
		return "; there is none at all"
	}
	return "; there are: " + message.List(policies, len(policies), func(p v1alpha1.RebootPolicy) string { return p.Name })
}
