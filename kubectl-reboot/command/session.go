// Package command is the command line of `kubectl reboot`: its flags, its requests to the API
// server, and its output.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// completer is the program name under which kubectl looks for the completion of a plugin.
const completer = "kubectl_complete-reboot"

// Session is shared by all commands.
type Session struct {
	genericiooptions.IOStreams

	// Config holds kubectl's flags, such as --context and --kubeconfig.
	Config *genericclioptions.ConfigFlags
	// Clock is the only source of time.
	Clock clock.WithTicker
	// Zone is the time zone of the output.
	Zone *time.Location
	// Screen is the terminal or pipe behind Out.
	Screen *terminal.Terminal
	// Version is the version of the plugin.
	Version string

	// manager is the state of the manager's Lease when the fleet was last read.
	manager fleet.Manager
	// rights says which role has the permissions that a command needs.
	rights string
}

// Run runs the plugin with the given arguments, and prints its error.
func Run(ctx context.Context, version string, args []string) error {
	// Users do not need the logs of libraries.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	s := &Session{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Config:    genericclioptions.NewConfigFlags(true),
		Clock:     clock.RealClock{}, Screen: terminal.Open(os.Stdout, os.Getenv), Zone: time.Local, Version: version,
	}
	return s.Run(ctx, args)
}

// Run runs one command line, which begins with the program's name.
func (s *Session) Run(ctx context.Context, args []string) error {
	args = slices.Clone(args)
	s.ErrOut = terminal.Colourless(s.ErrOut) // errors and warnings may quote untrusted text
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	if args[0] = cobra.ShellCompRequestCmd; name != completer {
		args = args[1:]
	}
	root := s.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	for _, e := range split(err) {
		fmt.Fprintln(s.ErrOut, "error: "+strings.TrimSpace(s.explained(e).Error()))
	}
	return err
}

func (s *Session) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-reboot",
		Short: "Show and control how reboot-operator reboots nodes",
		Long: `Show and control how reboot-operator reboots nodes: the progress of reboots, why a
node waits, and when windows open.

The answers come from the manager's own planner, which this program contains, so
they are available while no manager runs.`,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl reboot"},
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		Version:           buildOf(s).String(), // for --version
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(s.Out)
	root.SetErr(s.ErrOut)
	s.Config.Namespace, s.Config.CacheDir = nil, nil // nothing here has a namespace or is cached
	s.Config.AddFlags(root.PersistentFlags())
	root.AddCommand(statusCommand(s), explainCommand(s), dashboardCommand(s), forecastCommand(s), windowsCommand(s), historyCommand(s), reportCommand(s), doctorCommand(s), checkCommand(s), requestCommand(s), retryCommand(s), pauseCommand(s), resumeCommand(s), abortCommand(s), cleanupCommand(s), convertCommand(s), versionCommand(s))
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.HasSubCommands() { // an unknown command is an error, because standard output may be used as a policy or a script
			cmd.Args, cmd.RunE = cobra.NoArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	completeFlag(root, "context", completeNames(0, s.contextNames))
	root.SetUsageTemplate(usage)
	return root
}

// usage is cobra's template, without the flags of kubectl that every command has.
const usage = `Usage:{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{else}}
  {{.UseLine}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if or .IsAvailableCommand (eq .Name "help")}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{else}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}

--kubeconfig, --context, --as and others choose the cluster and the user; kubectl options lists them.
`

// split returns the parts of a joined error. Each of them is a sentence.
func split(err error) []error {
	var joined interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &joined):
		return joined.Unwrap()
	}
	return []error{err}
}

// explained adds what to do to errors whose text does not say it.
func (s *Session) explained(err error) error {
	var status apierrors.APIStatus
	var request *url.Error
	var unreachable *net.OpError
	switch {
	case errors.As(err, &request) && errors.As(err, &unreachable):
		return fmt.Errorf("%w; the API server cannot be reached: see whether the cluster runs, and whether %s shows its address",
			err, s.command("kubectl config view --minify"))
	case !errors.As(err, &status):
		return err
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w; the API server does not accept your credentials: log in to the cluster again", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; %s", err, cmp.Or(s.rights, "ClusterRole reboot-operator-fleet-viewer allows reading, and reboot-operator-fleet-operator also writing"))
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) && apierrors.IsNotFound(err) && status.Status().Details.Group == v1alpha1.GroupVersion.Group:
		return fmt.Errorf("%w: this cluster does not know RebootPolicies: install reboot-operator", err)
	}
	return err
}

// build describes how the plugin was built.
type build struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildOf(s *Session) build {
	return build{Version: s.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
}

// String formats the build as one line.
func (b build) String() string {
	return fmt.Sprintf("kubectl reboot %s (%s, %s)", b.Version, b.Go, b.Platform)
}

func versionCommand(s *Session) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Print the version of this plugin",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			b := buildOf(s)
			return s.print(o, b, func() []string { return []string{b.String()} })
		},
	}
	o.bind(cmd, asJSON, asYAML)
	return cmd
}
