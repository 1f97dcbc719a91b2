package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/dashboard"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
)

// mostLog is the number of changes that a dashboard keeps.
const mostLog = 50

func dashboardCommand(s *Session) *cobra.Command {
	port := uint16(0)
	cmd := &cobra.Command{
		Use:   "dashboard [POLICY...]",
		Short: "Serve a page that shows the fleet in your browser",
		Long: `Serve a page that shows the fleet in your browser: nodes as tiles, policies with
their windows, why nodes wait, the forecast as a timeline, and the history. The
page updates itself and changes nothing. It shows what you have the rights to
read.

The page is served on 127.0.0.1 until you press Ctrl-C. Its address contains a
secret, so open the address that is printed.`,
		Example: `  kubectl reboot dashboard
  kubectl reboot dashboard workers --port=8080`,
		ValidArgsFunction: completeNames(0, s.policyNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, names, err := s.fleetOf(cmd.Context(), args)
			if err != nil {
				return err
			}
			return serveDashboard(cmd.Context(), s, names, port)
		},
	}
	cmd.Flags().Uint16Var(&port, "port", 0, "Port on 127.0.0.1, or 0 for any free port.")
	return cmd
}

// serveDashboard serves the dashboard until the context ends.
func serveDashboard(ctx context.Context, s *Session, names []string, port uint16) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	page := dashboard.NewServer(s.Clock)
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		defer stop()
		served <- server.Serve(listener)
	}()
	err = followDashboard(ctx, stop, s, page, names, "http://"+listener.Addr().String()+page.Path())
	_ = server.Close() // also closes the listener
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", ended)
	}
	return err
}

// followDashboard renders the fleet whenever it changes, and prints the address after the first
// rendering.
func followDashboard(ctx context.Context, stop func(), s *Session, page *dashboard.Server, names []string, address string) error {
	view := dashboard.Options{Cluster: clusterName(s), Flags: s.clusterFlags(), Names: names, Zone: s.Zone, Live: true}
	var before status.Status
	var failed error
	shown := false
	err := watch(ctx, s, time.Minute, func(f fleet.Fleet, trouble string) {
		v := dashboard.Of(f, view)
		if shown {
			view.Log = append(view.Log, v.Changes(before, s.Zone)...)
			view.Log = view.Log[max(0, len(view.Log)-mostLog):]
		}
		if trouble == v.ManagerTrouble() { // a notice says so already
			trouble = ""
		}
		before, v.Trouble, v.Log = v.Status, trouble, view.Log
		rendered, err := dashboard.Render(v)
		if err != nil {
			failed = err
			stop()
			return
		}
		rendered.Explain = func(node string) string { return dashboard.Explain(f, v.Options, node) }
		page.Show(rendered)
		if !shown {
			shown = true
			s.Screen.Print(address, "Open this address in your browser. Ctrl-C ends.")
		}
	})
	return cmp.Or(failed, err)
}

// clusterName returns the context and the API server as a name for the cluster.
func clusterName(s *Session) string {
	loader := s.Config.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	if err != nil {
		return ""
	}
	name := raw.CurrentContext
	if s.Config.Context != nil && *s.Config.Context != "" {
		name = *s.Config.Context
	}
	if config, err := loader.ClientConfig(); err == nil {
		name += " (" + config.Host + ")"
	}
	return name
}
