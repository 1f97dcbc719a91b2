package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// oneNode and atLeast say which argument is missing, and show the usage.
func oneNode(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("%s requires exactly 1 argument, the node: %s", cmd.Name(), cmd.UseLine())
}

func atLeast(noun string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return fmt.Errorf("%s requires %s: %s", cmd.Name(), noun, cmd.UseLine())
	}
}

// choose returns the named policies in the given order, or all if no name is given.
func choose(policies []v1alpha1.RebootPolicy, names []string) ([]v1alpha1.RebootPolicy, error) {
	if len(names) == 0 {
		return policies, nil
	}
	var chosen []v1alpha1.RebootPolicy
	for _, name := range bare(policyKinds, names...) {
		i := slices.IndexFunc(policies, func(p v1alpha1.RebootPolicy) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("policy %q not found%s", name, existing(policies))
		}
		chosen = append(chosen, policies[i])
	}
	return chosen, nil
}

// bare strips the kind from names.
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
		return "; the cluster has no policies"
	}
	return "; the policies are: " + message.List(policies, len(policies), func(p v1alpha1.RebootPolicy) string { return p.Name })
}

// The spellings of the kinds before a name.
var (
	nodeKinds   = []string{"node", "nodes", "no"}
	policyKinds = []string{"rebootpolicy", "rebootpolicies", "rbp", "rebootpolicy.reboot-operator.io", "rebootpolicies.reboot-operator.io"}
)

// find reads the node or policy of an argument: node/NAME, rbp/NAME, or a name that only one of
// them has.
func find(ctx context.Context, c client.Client, argument string) (client.Object, error) {
	kind, name, qualified := strings.Cut(argument, "/")
	switch {
	case !qualified:
		return findBare(ctx, c, argument)
	case slices.Contains(nodeKinds, kind):
		return get(ctx, c, &corev1.Node{}, name)
	case slices.Contains(policyKinds, kind):
		return get(ctx, c, &v1alpha1.RebootPolicy{}, name)
	}
	return nil, fmt.Errorf("%q must be node/NAME or rbp/NAME", argument)
}

func findBare(ctx context.Context, c client.Client, name string) (client.Object, error) {
	node, nodeErr := get(ctx, c, &corev1.Node{}, name)
	if nodeErr != nil && !apierrors.IsNotFound(nodeErr) {
		return nil, nodeErr
	}
	policy, policyErr := get(ctx, c, &v1alpha1.RebootPolicy{}, name)
	if policyErr != nil && !apierrors.IsNotFound(policyErr) {
		return nil, policyErr
	}
	switch {
	case nodeErr == nil && policyErr == nil:
		return nil, fmt.Errorf("both a node and a policy are named %q: use node/%s or rbp/%s", name, name, name)
	case nodeErr == nil:
		return node, nil
	case policyErr == nil:
		return policy, nil
	}
	return nil, fmt.Errorf("no node and no policy is named %q", name)
}

func get(ctx context.Context, c client.Client, object client.Object, name string) (client.Object, error) {
	if err := c.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return nil, fmt.Errorf("reading %s: %w", titled(object, name), err)
	}
	return object, nil
}

// titled formats the kind and the name of an object.
func titled(object client.Object, name string) string {
	if _, ok := object.(*corev1.Node); ok {
		return "node " + name
	}
	return "policy " + name
}

// selection holds the objects that a command edits: those named in arguments, or those of -l or
// --all.
type selection struct {
	selector string
	all      bool
	// everything is an empty list of the type that --all selects.
	everything client.ObjectList
}

func (s *selection) bind(cmd *cobra.Command, everything client.ObjectList, all string) {
	s.everything = everything
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "The nodes that these labels select, such as pool=blue,zone!=a.")
	cmd.Flags().BoolVar(&s.all, "all", false, all)
}

// named reports whether the objects are named in arguments.
func (s *selection) named() bool { return s.selector == "" && !s.all }

// arguments accepts exactly one way to select objects: names, -l or --all.
func (s *selection) arguments(noun string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case s.named():
			return atLeast(noun+", -l or --all")(cmd, args)
		case s.selector != "" && s.all, len(args) > 0:
			return errors.New("names, --selector and --all exclude each other")
		}
		return nil
	}
}

// parseSelector parses -l. Its error shows the correct syntax.
func parseSelector(text string) (labels.Selector, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--selector %q is invalid: %w; write it as pool=blue, zone!=a or 'pool in (blue,green)'", text, err)
	}
	return selector, nil
}

// objects returns the objects of -l or --all. It fails on an empty selection, which is almost
// always a mistake.
func (s *selection) objects(ctx context.Context, c client.Client) ([]client.Object, error) {
	list, selector := s.everything, labels.Everything()
	if s.selector != "" {
		var err error
		if selector, err = parseSelector(s.selector); err != nil {
			return nil, err
		}
		list = &corev1.NodeList{}
	}
	if err := c.List(ctx, list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing what is selected: %w", err)
	}
	var objects []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T is not an object", item)
		}
		objects = append(objects, object)
		return nil
	})
	if err == nil && len(objects) == 0 {
		err = errors.New("nothing matches the selector")
	}
	return objects, err
}

// completeFlag registers the completion of a flag's values.
func completeFlag(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	// This only fails if the flag is unknown or has a completion already, which is a bug.
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err)
	}
}

// oneOf completes with fixed values.
func oneOf(values ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

func (s *Session) contextNames(context.Context) ([]string, error) {
	config, err := s.Config.ToRawKubeConfigLoader().RawConfig()
	return slices.Sorted(maps.Keys(config.Contexts)), err
}

// completeNames completes with the names that a function finds, except those given already. most is
// the maximum number of arguments, or 0 for any number.
func completeNames(most int, find func(ctx context.Context) ([]string, error)) cobra.CompletionFunc {
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

// targetNames returns the names of all nodes and policies, each with its kind.
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
