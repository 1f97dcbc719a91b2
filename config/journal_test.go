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

// The sections of config/attempts.md.
const (
	sectionAgent        = "The agent's token of node n1"
	sectionFallback     = "The agent's token of node n1 in the fallback"
	sectionManager      = "The manager's token"
	sectionManageAgents = "The manager's token if the manager creates the agents' pods"
	sectionStranger     = "The token of any other pod"
	sectionRecord       = "A token that may patch Nodes"
	sectionLevels       = "Pod Security"
)

var sections = []struct{ heading, about string }{
	{sectionAgent, "`config/default`, Kubernetes 1.36 and later. The nodes are n1 and n2; on each runs an agent's pod."},
	{sectionFallback, "`config/overlays/rbac-fallback`, Kubernetes 1.31 to 1.35. What the agent is allowed on other nodes is what remains open there."},
	{sectionManager, "`config/default`. Policy `p` has `maxUnavailable: 1`, and its ledger one entry."},
	{sectionManageAgents, "`config/default` with `config/components/manage-agents`: only what differs from the row above."},
	{sectionStranger, "A pod of namespace `default` with the ServiceAccount that every pod gets."},
	{sectionRecord, "`config/default`. node-problem-detector may patch the status of Nodes, and an autoscaler may create and patch Nodes. Others have the ClusterRole of that name. Node n4 has a record."},
	{sectionLevels, "The pods of `config/default` in namespaces that enforce each level."},
}

var updateDocs = flag.Bool("update", false, "write docs/security-attempts.md and config/attempts.md")

// introduction is the beginning of the page.
const introduction = `# Attempts with stolen tokens

Tests try what a stolen token could do, with requests to a real API server with the Node authorizer, RBAC, NodeRestriction and Pod Security. Writes
are dry runs. [config/attempts.md](../config/attempts.md) lists every attempt and what refused it.
[Security](security.md) says what follows from it.

` + "`make security-attempts` repeats all of it and writes this page and the list. `go test ./config` fails if the API server answers otherwise.\n"

// ending explains the last column of the page.
const ending = `
The last column counts requests with every verb of every resource and subresource, except those that Kubernetes allows to every
ServiceAccount.
`

// listIntroduction is the beginning of the list.
const listIntroduction = `# Every attempt

Written by ` + "`make security-attempts`" + `. [Attempts with stolen tokens](../docs/security-attempts.md) explains it. "Let through" is what was answered
neither 401 nor 403.
`

// The kinds of entries that specs add to the report.
const (
	entryAttempt = "attempt"
	entryBreadth = "breadth"
)

// kept is one row of the page: an attempt, or all requests of an actor with the number of refusals.
type kept struct {
	section, row   string
	tried, refused int
}

// keep adds the actor's last attempt to the report, under the name of the spec.
func keep(section, who string, a *actor) {
	GinkgoHelper()
	keepAs(section, who, CurrentSpecReport().LeafNodeText, a, a.last.by())
}

func keepAs(section, who, action string, a *actor, by string) {
	GinkgoHelper()
	Expect(by).NotTo(HavePrefix("unknown"), "what refused is known by its message")
	answer, refused := "allowed", 0
	if a.last.Code >= 400 {
		answer, refused = fmt.Sprintf("refused, %d", a.last.Code), 1
	}
	row := document.Row(who, action, "`"+a.last.request()+"`", answer, by)
	AddReportEntry(entryAttempt, kept{section, row, 1, refused}, ReportEntryVisibilityNever)
}

// The page is generated from the API server's answers in this run.
var _ = ReportAfterSuite("docs/security-attempts.md", func(report Report) {
	if !report.SuiteSucceeded || len(report.SuiteConfig.FocusStrings) > 0 || report.SuiteConfig.LabelFilter != "" {
		return // not everything was tried
	}
	page, list := render(report)
	for file, want := range map[string]string{"docs/security-attempts.md": page, "config/attempts.md": list} {
		path := filepath.Join(testenv.Root(), file)
		if *updateDocs {
			Expect(os.WriteFile(path, []byte(want), 0o600)).To(Succeed())
		}
		text, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Split(want, "\n")).To(Equal(strings.Split(string(text), "\n")),
			"the API server does not answer as %s shows; is that meant? `make security-attempts` writes it", file)
	}
})

// render returns docs/security-attempts.md and config/attempts.md.
func render(report Report) (page, list string) {
	specs := slices.Clone(report.SpecReports)
	slices.SortStableFunc(specs, func(a, b SpecReport) int { // Ginkgo shuffles specs
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
	overview := &strings.Builder{}
	overview.WriteString(introduction)
	table(overview, "| token | attempts | every verb of every resource |", summary)
	return overview.String() + ending, listIntroduction + tables.String()
}

// group holds the entries of one kind in one section.
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
