// Package dashboard shows the fleet as a page for a browser: nodes as tiles, policies, what waits
// for what, the forecast and the history. The page is either a static file, or is served from this
// machine and follows the fleet.
package dashboard

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/explanation"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/history"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/timetable"
)

const (
	// mostHistory is the number of past reboots that are shown.
	mostHistory = 30
	// denseFrom is the number of nodes from which tiles have no room for names.
	denseFrom = 120
)

// Options holds what the page needs in addition to the fleet.
type Options struct {
	// Cluster is the name of the cluster for people: the context of the kubeconfig and the API
	// server.
	Cluster string
	// Flags is appended to the shown commands, as in terminal.Look.
	Flags string
	// Names lists the policies to show, or is empty for all.
	Names []string
	// Zone is the time zone of the page.
	Zone *time.Location
	// Live reports whether the page follows the fleet.
	Live bool
	// Trouble says why the page may be outdated, or is empty.
	Trouble string
	// Log lists the changes since the dashboard started, oldest first.
	Log []string
}

// View is the content of the page.
type View struct {
	Options
	status.Status

	States   []Count
	Pools    []Pool
	Attend   []status.Notice
	Progress []RebootRow
	Waits    []Wait
	History  []history.Attempt
}

// Count is the number of nodes in a state.
type Count struct {
	State State
	Nodes int
}

// Pool is one policy with its nodes and its forecast.
type Pool struct {
	status.Policy

	// Text says whether a reboot may start, and Until is the end of that state.
	Text     string
	Until    Instant
	Done     Instant
	Tiles    []Tile
	Forecast timetable.Timetable
	Figure   template.HTML
}

// Dense reports whether there are too many nodes for tiles with names.
func (p Pool) Dense() bool { return len(p.Tiles) > denseFrom }

// Percent returns the percentage of the policy's nodes that are up to date.
func (p Pool) Percent() int { return 100 * p.Nodes.UpToDate / max(1, p.Nodes.Selected) }

// RebootRow is one granted reboot.
type RebootRow struct {
	fleet.Granted

	Policy string
	State  State
	Began  Instant
	// Note adds what the phase does not say. Ends is the timeout of the phase, or the end of
	// settling.
	Note string
	Ends Instant
}

// Wait is one reason with the nodes that wait for it.
type Wait struct {
	status.Waiting

	Policy string
	// Causes holds the sentences of the reason with their nodes. More is the number of omitted
	// sentences.
	Causes []Cause
	More   int
	Advice explanation.Advice
}

// Cause is one sentence with the nodes that it concerns.
type Cause struct {
	Message string
	Nodes   []string
}

// Which returns the names of the nodes if the sentence does not concern all that wait for the
// reason.
func (c Cause) Which(all []string) string {
	if len(c.Nodes) == len(all) {
		return ""
	}
	return message.Some(c.Nodes) + ": "
}

// mostCauses is the maximum number of sentences for one reason.
const mostCauses = 5

// causes groups the nodes of a reason by their sentences, in order of the nodes.
func causes(nodes []string, why map[string]string) (list []Cause, more int) {
	for _, name := range nodes {
		i := slices.IndexFunc(list, func(c Cause) bool { return c.Message == why[name] })
		switch {
		case i >= 0:
			list[i].Nodes = append(list[i].Nodes, name)
		case len(list) < mostCauses:
			list = append(list, Cause{Message: why[name], Nodes: []string{name}})
		default:
			more++
		}
	}
	return list, more
}

// Instant is a time with its text and its distance from now.
type Instant struct {
	At time.Time
	// Text is the time in the reader's time zone, and Span the distance from now.
	Text, Span string
}

// ISO returns the time for programs.
func (i Instant) ISO() string { return i.At.UTC().Format(time.RFC3339) }

// Of returns the view of a fleet.
func Of(f fleet.Fleet, o Options) View {
	v := View{Options: o, Status: status.Of(f, o.Names...)}
	counts := map[State]int{}
	shown := make([]v1alpha1.RebootPolicy, 0, len(v.Policies))
	for _, p := range v.Policies {
		shown = append(shown, *f.Policy(p.Name))
		why := map[string]string{}
		for _, d := range p.Plan.Decisions {
			why[d.Node] = d.Message
		}
		pool := v.pool(f, p, why)
		for _, t := range pool.Tiles {
			counts[t.State]++
		}
		v.Pools = append(v.Pools, pool)
		for _, r := range p.InProgress {
			v.Progress = append(v.Progress, v.reboot(r, p.Name))
		}
		v.Waits = append(v.Waits, waits(p, why)...)
	}
	for _, state := range states {
		if n := counts[state]; n > 0 {
			v.States = append(v.States, Count{state, n})
		}
	}
	if n := len(v.Ungoverned); n > 0 {
		waiting := status.Waiting{Reason: v1alpha1.ReasonNoPolicy, Nodes: v.Ungoverned}
		v.Waits = append(v.Waits, Wait{waiting, "", []Cause{{"no policy selects them", v.Ungoverned}}, 0, explanation.AdviceFor(waiting.Reason, v.Ungoverned[0], "")})
	}
	look := terminal.Look{Flags: o.Flags}
	v.Attend = v.Attention()
	for i := range v.Attend {
		v.Attend[i].Command = look.Command(v.Attend[i].Command)
	}
	for i := range v.Waits {
		v.Waits[i].Advice.Command = look.Command(v.Waits[i].Advice.Command)
	}
	v.History = history.Of(shown)
	slices.Reverse(v.History)
	v.History = v.History[:min(len(v.History), mostHistory)]
	return v
}

// pool returns the view of a policy, and adds to why the reasons of its nodes.
func (v *View) pool(f fleet.Fleet, p status.Policy, why map[string]string) Pool {
	pool := Pool{Policy: p, Tiles: tiles(p, why), Forecast: timetable.Of(f, f.Policy(p.Name))}
	pool.Text = p.WindowText(func(t time.Time) string { return moment.At(t, v.At, v.Zone) })
	pool.Until, pool.Done = v.ahead(p.Window.Until), v.ahead(p.CompletionAt)
	if len(pool.Forecast.Reboots) > 0 {
		pool.Figure = template.HTML(timetable.Figure(pool.Forecast, v.Zone)) // timetable escapes its output
	}
	return pool
}

func (v *View) reboot(r fleet.Granted, policy string) RebootRow {
	shown := RebootRow{Granted: r, Policy: policy, State: stateOf(r), Began: v.behind(r.Since), Note: r.Note(), Ends: v.ahead(r.Until)}
	switch {
	case r.Overdue:
		shown.Ends = Instant{}
	case r.Phase == underway.StateDraining:
		shown.Ends = v.ahead(r.DrainUntil)
	}
	return shown
}

// ahead returns a future time, or zero for the zero time.
func (v *View) ahead(t time.Time) Instant {
	if t.IsZero() {
		return Instant{}
	}
	return Instant{t, moment.At(t, v.At, v.Zone), moment.Until(t, v.At)}
}

func (v *View) behind(t time.Time) Instant {
	return Instant{t, moment.At(t, v.At, v.Zone), moment.Span(v.At.Sub(t))}
}

// waits returns the reasons why nodes of a policy wait, with their causes.
func waits(p status.Policy, why map[string]string) []Wait {
	list := make([]Wait, 0, len(p.Waiting))
	for _, w := range p.Waiting {
		wait := Wait{Waiting: w, Policy: p.Name, Advice: explanation.AdviceFor(w.Reason, w.Nodes[0], p.Name)}
		wait.Causes, wait.More = causes(w.Nodes, why)
		if w.Reason == v1alpha1.ReasonBudgetExhausted && p.Limit == 0 {
			wait.Advice = explanation.NoLimit(p.Name)
		}
		list = append(list, wait)
	}
	return list
}

// Explain returns the output of kubectl reboot explain for a node.
func Explain(f fleet.Fleet, o Options, node string) string {
	e, err := explanation.Of(f, node)
	if err != nil {
		return err.Error()
	}
	lines := e.Lines(terminal.Look{Zone: o.Zone, Flags: o.Flags})
	return terminal.Harmless(strings.ToValidUTF8(strings.Join(lines, "\n"), string(utf8.RuneError)))
}

// Calm reports whether nothing needs a person, and the manager has done what it can.
func (v View) Calm() bool {
	return v.Trouble == "" && !slices.ContainsFunc(v.Attend, func(n status.Notice) bool { return !n.Chosen() || n.Kind == status.ManagerLags })
}

// Headline sums up the fleet in one line, which is also the title of the browser's tab.
func (v View) Headline() string {
	sum := v.Sum()
	parts := []string{sum.Progress("up to date")}
	for _, c := range []struct {
		n    int
		what string
	}{{sum.Failed, "failed"}, {sum.InProgress, "rebooting"}, {sum.Waiting, "waiting"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if text := v.ManagerTrouble(); text != "" {
		text, _, _ = strings.Cut(text, ": ")
		return moment.Local(text, v.Zone) + "; " + strings.Join(parts, ", ")
	}
	return strings.Join(parts, ", ")
}

// Time formats a time to the second.
func (v View) Time(t time.Time) string { return moment.Exact(t, v.Zone) }

// Title is the title of the page.
func (v View) Title() string { return cmp.Or(v.Cluster, "reboots") + ": " + v.Headline() }
