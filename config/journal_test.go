package config_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// The sections of docs/security-attempts.md.
const (
	sectionAgent        = "The agent's token of node n1"
	sectionFallback     = "The agent's token of node n1 in the fallback"
	sectionManager      = "The manager's token"
	sectionManageAgents = "The manager's token where the manager brings the agents"
	sectionStranger     = "The token of any other pod"
	sectionRecord       = "A token that may patch Nodes"
	sectionLevels       = "Pod Security"
)

var sections = []struct{ heading, about string }{
	{sectionAgent, "`config/default`, Kubernetes 1.36 and later. The nodes are n1 and n2; on each runs an agent's pod."},
	{sectionFallback, "`config/overlays/rbac-fallback`, Kubernetes 1.31 to 1.35. What the agent is allowed on other nodes is what remains open there."},
	{sectionManager, "`config/default`. Policy `p` has `maxUnavailable: 1`, and its ledger one entry."},
	{sectionManageAgents, "`config/default` with `config/components/manage-agents`: only what differs from the above."},
	{sectionStranger, "A pod of namespace `default` with the ServiceAccount that every pod gets."},
	{sectionRecord, "`config/default`. node-problem-detector may patch the status of Nodes, an autoscaler may create Nodes and patch all of them; the others have the ClusterRole of that name. Node n4 has a record."},
	{sectionLevels, "The pods of `config/default` in namespaces that enforce each level."},
}

var updateDocs = flag.Bool("update", false, "write docs/security-attempts.md anew")

// introduction is the page's.
const introduction = `# Attempts

What stolen tokens were tried for on a real API server (Node authorizer, RBAC, NodeRestriction, Pod Security), and what it answered. All are
real requests with real tokens; writes are dry runs. "Every verb of every resource" is just that, subresources too: namespaced ones in
the operator's namespace and in kube-system, nodes and agents' pods by their names, what else has one by the name "x". "Let through" is
what was answered neither 401 nor 403, without what Kubernetes lets every ServiceAccount do
[before the operator is installed](#the-token-of-any-other-pod).

` + "`make security-attempts` tries it all and writes this page; `go test ./config` fails where the API server answers otherwise. What follows from\nit: [security.md](security.md).\n"

// The kinds of entries that specs leave in the report.
const (
	entryAttempt = "attempt"
	entryBreadth = "breadth"
)

// kept is one row of the page: an attempt, or all requests of an actor; and how many of them were refused.
type kept struct {
	section, row   string
	tried, refused int
}

// keep leaves the actor's last attempt in the report, under the spec's own name.
func keep(section, who string, a *actor) {
	GinkgoHelper()
	keepAs(section, who, CurrentSpecReport().LeafNodeText, a, a.last.by())
}

func keepAs(section, who, what string, a *actor, by string) {
	GinkgoHelper()
	Expect(by).NotTo(HavePrefix("unknown"), "what refused is known by its message")
	answer, refused := "allowed", 0
	if a.last.Code >= 400 {
		answer, refused = fmt.Sprintf("refused, %d", a.last.Code), 1
	}
	row := document.Row(who, what, "`"+a.last.request()+"`", answer, by)
	AddReportEntry(entryAttempt, kept{section, row, 1, refused}, ReportEntryVisibilityNever)
}

// The page that is generated states what the API server answered in this very run.
var _ = ReportAfterSuite("docs/security-attempts.md", func(report Report) {
	if !report.SuiteSucceeded || len(report.SuiteConfig.FocusStrings) > 0 || report.SuiteConfig.LabelFilter != "" {
		return // not everything was tried
	}
	path := filepath.Join(testenv.Root(), "docs", "security-attempts.md")
	page := renderPage(report)
	if *updateDocs {
		Expect(os.WriteFile(path, []byte(page), 0o600)).To(Succeed())
	}
	text, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(strings.Split(page, "\n")).To(Equal(strings.Split(string(text), "\n")),
		"the API server does not answer as the page shows; is that meant? `make security-attempts` writes it anew")
})

func renderPage(report Report) string {
	specs := slices.Clone(report.SpecReports)
	slices.SortStableFunc(specs, func(a, b SpecReport) int { // Ginkgo shuffles
		return cmp.Or(cmp.Compare(a.FileName(), b.FileName()), cmp.Compare(a.LineNumber(), b.LineNumber()))
	})
	all := map[[2]string]group{} // by section and entry
	for _, spec := range specs {
		for _, entry := range spec.ReportEntries {
			if k, ok := entry.GetRawValue().(kept); ok {
				key := [2]string{k.section, entry.Name}
				all[key] = all[key].with(k)
			}
		}
	}
	var summary []string
	tables := &strings.Builder{}
	for _, s := range sections {
		attempts, breadth := all[[2]string{s.heading, entryAttempt}], all[[2]string{s.heading, entryBreadth}]
		summary = append(summary, document.Row(s.heading, attempts.figures(), breadth.figures()))
		fmt.Fprintf(tables, "\n## %s\n\n%s\n", s.heading, s.about)
		table(tables, "| who | attempt | request | answer | by |", attempts.rows)
		table(tables, "| who | every verb of every resource | let through |", breadth.rows)
	}
	page := &strings.Builder{}
	page.WriteString(introduction)
	table(page, "| token | attempts | every verb of every resource |", summary)
	return page.String() + tables.String()
}

// group is what was kept of one kind in one section.
type group struct {
	rows           []string
	tried, refused int
}

func (g group) with(k kept) group {
	return group{append(g.rows, k.row), g.tried + k.tried, g.refused + k.refused}
}

func (g group) figures() string {
	if g.tried == 0 {
		return ""
	}
	return fmt.Sprintf("%d refused, %d allowed", g.refused, g.tried-g.refused)
}

func table(page *strings.Builder, head string, rows []string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(page, "\n%s\n%s|\n%s", head, strings.Repeat("|---", strings.Count(head, "|")-1), strings.Join(rows, ""))
}
