package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// completion completes arguments.
type completion = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective)

// complete completes the values of a flag.
func complete(cmd *cobra.Command, flag string, values completion) {
	// It fails for a flag that does not exist, or that is completed already: not by what a user does.
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err)
	}
}

// oneOf completes with values that are always the same.
func oneOf(values ...string) completion {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

func (s *Session) contextNames(context.Context) ([]string, error) {
	config, err := s.Config.ToRawKubeConfigLoader().RawConfig()
	return slices.Sorted(maps.Keys(config.Contexts)), err
}

// named completes with the names that a function finds, but for those that are there already. most is how many arguments
// there may be; 0: any number.
func named(most int, find func(ctx context.Context) ([]string, error)) completion {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, err := find(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) })
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// nodeNames and policyNames read metadata only.
func (s *Session) nodeNames(ctx context.Context) ([]string, error) {
	return s.names(ctx, corev1.SchemeGroupVersion.WithKind("NodeList"))
}

func (s *Session) policyNames(ctx context.Context) ([]string, error) {
	return s.names(ctx, v1alpha1.GroupVersion.WithKind("RebootPolicyList"))
}

// targetNames are those of nodes and policies, each with its kind.
func (s *Session) targetNames(ctx context.Context) ([]string, error) {
	policies, policiesErr := s.policyNames(ctx)
	nodes, nodesErr := s.nodeNames(ctx)
	all := make([]string, 0, len(policies)+len(nodes))
	for _, name := range policies {
		all = append(all, "rbp/"+name)
	}
	for _, name := range nodes {
		all = append(all, "node/"+name)
	}
	return all, errors.Join(policiesErr, nodesErr)
}

func (s *Session) names(ctx context.Context, list schema.GroupVersionKind) ([]string, error) {
	c, err := s.client()
	if err != nil {
		return nil, err
	}
	var found metav1.PartialObjectMetadataList
	found.SetGroupVersionKind(list)
	if err := c.List(ctx, &found); err != nil {
		return nil, fmt.Errorf("listing names: %w", err)
	}
	names := make([]string, len(found.Items))
	for i := range found.Items {
		names[i] = found.Items[i].Name
	}
	return names, nil
}
