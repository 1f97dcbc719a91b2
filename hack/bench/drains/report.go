package drains

import (
	"fmt"
	"strconv"

	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
)

// tightRatio is how many times faster than kubectl the operator is to be where a budget binds.
const tightRatio = 3

// report is what was measured as tables.
func report(pairs []pair) figures.Result {
	requests := []string{">pods", "budgets", "who"}
	for _, column := range columns {
		requests = append(requests, ">"+column)
	}
	r := figures.Result{
		Setting: fmt.Sprintf("One node's pods, Deployments of %d, move to another node. A pod is gone 1, 2 or 3 s after its eviction, "+
			"by its Deployment; its replacement is Ready %s after it was bound to a node. Tight budgets allow one pod of each Deployment "+
			"to be away. kubectl moves the same pods back in the same run. Time is from the cordon to the agent's point of no return, or "+
			"to kubectl's exit; requests are counted from the API server's audit log, the agent's from the grant on. kubectl is ended once "+
			"it has taken some times as long as the operator: then it would have taken more (>), and more requests.", replicas, starting),
		Tables: []figures.Table{
			{Title: "Wall time", Columns: []string{">pods", "budgets", ">operator", ">kubectl", ">times faster"}},
			{Title: "API requests", Columns: requests},
		},
	}
	for _, p := range pairs {
		r.Tables[0].Rows = append(r.Tables[0].Rows, p.time())
		r.Tables[1].Rows = append(r.Tables[1].Rows, p.requests("operator", p.operator.asked), p.requests("kubectl", p.kubectl.asked))
	}
	return r
}

func (p pair) time() figures.Row {
	ratio, goal, wanted := p.kubectl.took.Seconds()/max(p.operator.took.Seconds(), 1e-9), 1.0, "not slower"
	if p.tight {
		goal, wanted = tightRatio, fmt.Sprintf("at least %d times faster", tightRatio)
	}
	return figures.Row{
		Cells: []string{
			strconv.Itoa(p.pods), p.budgets(), figures.Seconds(p.operator.took),
			p.kubectl.more() + figures.Seconds(p.kubectl.took), p.kubectl.more() + fmt.Sprintf("%.1f", ratio),
		},
		Goal: wanted, Missed: ratio < goal,
	}
}

func (p pair) requests(who string, asked map[string]int) figures.Row {
	cells := []string{strconv.Itoa(p.pods), p.budgets(), who}
	for _, column := range columns {
		cells = append(cells, strconv.Itoa(asked[column]))
	}
	return figures.Row{Cells: cells}
}

// more is a sign before a figure that would have grown.
func (m measured) more() string {
	if m.ended {
		return "> "
	}
	return ""
}
