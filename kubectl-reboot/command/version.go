package command

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

// build is what the plugin was built from.
type build struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildOf(s *Session) build {
	return build{Version: s.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
}

// String is the line that people read.
func (b build) String() string {
	return fmt.Sprintf("kubectl reboot %s (%s, %s)", b.Version, b.Go, b.Platform)
}

func versionCommand(s *Session) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "The plugin's version",
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
