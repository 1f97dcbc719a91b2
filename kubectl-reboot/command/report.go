package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/report"
)

func reportCommand(s *Session) *cobra.Command {
	var o output
	selector := ""
	cmd := &cobra.Command{
		Use:   "report [POLICY...]",
		Short: "What each node runs, since when it needs a reboot, and why it waits",
		Long: `What each node runs, since when it needs a reboot, and why it waits: a row for each node, for audits and spreadsheets.
Without names it is all nodes of the cluster, also those that no policy governs.`,
		Example: `  kubectl reboot report
  kubectl reboot report workers -o csv > workers.csv
  kubectl reboot report -l pool=blue -o json`,
		ValidArgsFunction: named(0, s.policyNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runReport(cmd.Context(), s, args, selector, o)
		},
	}
	o.bind(cmd, asTable, asCSV, asJSON)
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "The nodes that these labels select, such as pool=blue,zone!=a.")
	return cmd
}

func runReport(ctx context.Context, s *Session, args []string, selector string, o output) error {
	selects, err := labels.Parse(selector)
	if err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	f, names, err := s.fleetOf(ctx, args)
	if err != nil {
		return err
	}
	rows := report.Of(f, func(policy string, of map[string]string) bool {
		return selects.Matches(labels.Set(of)) && (len(names) == 0 || slices.Contains(names, policy))
	})
	if o.format == asCSV {
		text, err := report.CSV(rows)
		if err != nil {
			return err
		}
		return s.put(text)
	}
	return s.print(o, rows, func() []string { return report.Lines(rows, s.look(o)) })
}
