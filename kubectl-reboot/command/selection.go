package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// selection is which objects a command edits: those that its arguments name, or those of -l or --all.
type selection struct {
	selector string
	all      bool
	// everything is an empty list of what --all means.
	everything client.ObjectList
}

func (s *selection) bind(cmd *cobra.Command, everything client.ObjectList, all string) {
	s.everything = everything
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "The nodes that these labels select, such as pool=blue,zone!=a.")
	cmd.Flags().BoolVar(&s.all, "all", false, all)
}

// named reports whether the arguments name the objects.
func (s *selection) named() bool { return s.selector == "" && !s.all }

// arguments refuses all but one way to select objects: names, -l or --all.
func (s *selection) arguments(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case s.named():
			return atLeast(what+", -l or --all")(cmd, args)
		case s.selector != "" && s.all, len(args) > 0:
			return errors.New("names, --selector and --all exclude each other")
		}
		return nil
	}
}

// objects are those of -l, or of --all. None is an error: a selector that selects nothing is almost always a mistake.
func (s *selection) objects(ctx context.Context, c client.Client) ([]client.Object, error) {
	list, selector := s.everything, labels.Everything()
	if s.selector != "" {
		var err error
		if selector, err = labels.Parse(s.selector); err != nil {
			return nil, fmt.Errorf("--selector: %w", err)
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
			return fmt.Errorf("%T is no object", item)
		}
		objects = append(objects, object)
		return nil
	})
	if err == nil && len(objects) == 0 {
		err = errors.New("nothing is selected")
	}
	return objects, err
}
