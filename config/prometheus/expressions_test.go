package prometheus_test

import (
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/reboot-operator/reboot-operator/hack/promserver"
)

// expressions returns all expressions by place: those of the rules, of queries in alert texts, and
// of the dashboard.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	fillIn := strings.NewReplacer("policy=%q", `policy="default"`, "engine=%q", `engine="update-engine"`)
	lookup := regexp.MustCompile(`query (?:\(printf )?("(?:[^"\\]|\\.)*")`)
	for _, r := range readRules(t).rules() {
		all["alert "+r.Alert] = r.Expr
		for _, m := range lookup.FindAllStringSubmatch(r.Annotations["description"], -1) {
			var text string
			if err := json.Unmarshal([]byte(m[1]), &text); err != nil {
				t.Fatal(err)
			}
			all["alert "+r.Alert+", description"] = fillIn.Replace(text)
		}
	}
	maps.Copy(all, readDashboard(t).expressions())
	return all
}

// dashboard holds the checked parts of a Grafana dashboard.
type dashboard struct {
	UID, Title string
	Panels     []panel
	Templating struct {
		List []struct{ Name, Definition string }
	}
	Annotations struct{ List []struct{ Name, Expr string } }
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct{ Expr, LegendFormat, RefID string }
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// expressions returns the expressions with Grafana's variables replaced.
func (d dashboard) expressions() map[string]string {
	variables := strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h", "$policy", ".*")
	all := map[string]string{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all["panel "+p.Title+" "+target.RefID] = variables.Replace(target.Expr)
		}
	}
	for _, v := range d.Templating.List {
		if m := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Definition); m != nil {
			all["variable "+v.Name] = "count by (" + m[2] + ") (" + m[1] + ")"
		}
	}
	for _, a := range d.Annotations.List {
		all["annotation "+a.Name] = a.Expr
	}
	return all
}

// node is a part of an expression, as returned by Prometheus' /api/v1/parse_query.
type node struct {
	Type     string
	Name     string
	Matchers []matcher
	// Grouping holds the labels of by or without.
	Grouping []string
	Matching *struct{ Labels, Include []string }
	Expr     *node
	Param    *node
	LHS, RHS *node
	Args     []*node
}

type matcher struct{ Name, Type, Value string }

func parse(t *testing.T, server *promserver.Server, expression string) *node {
	t.Helper()
	var root node
	if err := server.API(t.Context(), "parse_query", url.Values{"query": {expression}}, &root); err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return &root
}

// selectors returns the selectors below a node.
func (n *node) selectors() []*node {
	if n == nil {
		return nil
	}
	if n.Type == "vectorSelector" || n.Type == "matrixSelector" {
		return []*node{n}
	}
	all := slices.Concat(n.Expr.selectors(), n.Param.selectors(), n.LHS.selectors(), n.RHS.selectors())
	for _, arg := range n.Args {
		all = append(all, arg.selectors()...)
	}
	return all
}

// uses calls visit for each label by which a part of the expression groups or matches, with that
// part.
func (n *node) uses(visit func(label string, of *node)) {
	if n == nil {
		return
	}
	for _, label := range n.Grouping {
		visit(label, n.Expr)
	}
	if n.Matching != nil {
		for _, label := range n.Matching.Labels {
			visit(label, n.LHS)
			visit(label, n.RHS)
		}
	}
	for _, part := range append([]*node{n.Expr, n.Param, n.LHS, n.RHS}, n.Args...) {
		part.uses(visit)
	}
}

// The panels of the dashboard must not overlap, and must have unique IDs and descriptions.
func TestDashboard_IsLaidOut(t *testing.T) {
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range readDashboard(t).Panels {
		if p.Title == "" || p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) || ids[p.ID] || p.ID == 0 {
			t.Errorf("panel %d %q: description %q, %d expressions", p.ID, p.Title, p.Description, len(p.Targets))
		}
		ids[p.ID] = true
		position := p.GridPos
		if position.W <= 0 || position.H <= 0 || position.X+position.W > 24 {
			t.Errorf("%q does not fit: %+v", p.Title, position)
		}
		for x := range position.W {
			for y := range position.H {
				cell := [2]int{position.X + x, position.Y + y}
				if other := taken[cell]; other != "" {
					t.Fatalf("%q lies on %q", p.Title, other)
				}
				taken[cell] = p.Title
			}
		}
	}
}
