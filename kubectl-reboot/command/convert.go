package command

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/kured"
)

func convertCommand(s *Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "convert",
		Short: "Convert the configuration of another operator into a policy",
	}
	cmd.AddCommand(convertKuredCommand(s))
	return cmd
}

func convertKuredCommand(s *Session) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "kured [-f FILE]",
		Short: "Convert the flags of kured into a policy",
		Long: `Write a RebootPolicy that does what kured does, in mode DryRun, and report on
standard error what became of each flag. Without -f it reads the DaemonSets of the
cluster, with -f a rendered manifest. It writes nothing to the cluster.`,
		Example: `  kubectl reboot convert kured >policy.yaml
  helm template kubereboot/kured | kubectl reboot convert kured -f - >policy.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemonSets, err := daemonSets(cmd.Context(), s, file)
			if err != nil {
				return err
			}
			policies, report, err := kured.Convert(daemonSets)
			if err != nil {
				return err
			}
			if err := s.put(policies); err != nil {
				return err
			}
			_, err = io.WriteString(s.ErrOut, report)
			return err
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "Manifest in YAML or JSON, or - for standard input. Without it the DaemonSets of the cluster are read.")
	return cmd
}

// daemonSets reads DaemonSets from a file, from standard input, or from the cluster.
func daemonSets(ctx context.Context, s *Session, file string) ([]appsv1.DaemonSet, error) {
	var manifest []byte
	var err error
	switch file {
	case "":
		return clusterDaemonSets(ctx, s)
	case "-":
		if manifest, err = readAll(ctx, s.In); err != nil {
			err = fmt.Errorf("reading standard input: %w", err)
		}
	default:
		manifest, err = os.ReadFile(file) // the error names the file
	}
	if err != nil {
		return nil, err
	}
	return kured.DaemonSets(manifest)
}

// readAll reads until the end of the input or of the context. A read from a terminal does not end
// with the context by itself.
func readAll(ctx context.Context, in io.Reader) ([]byte, error) {
	var all []byte
	var err error
	read := make(chan struct{})
	go func() {
		defer close(read)
		all, err = io.ReadAll(in)
	}()
	select {
	case <-read:
		return all, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func clusterDaemonSets(ctx context.Context, s *Session) ([]appsv1.DaemonSet, error) {
	c, err := s.client()
	if err != nil {
		return nil, err
	}
	s.rights = "ClusterRole reboot-operator-doctor lets you list them"
	var list appsv1.DaemonSetList
	if err := c.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the DaemonSets of all namespaces (-f FILE reads a manifest instead): %w", err)
	}
	return list.Items, nil
}
