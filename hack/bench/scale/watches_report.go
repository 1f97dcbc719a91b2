package scale

import (
	"fmt"
	"strconv"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
)

// watchReport is what the API server needs in each stage, and what of it is one watch's.
func watchReport(o *watchOptions, stages []stage) figures.Result {
	columns := []string{"watches"}
	for _, s := range stages {
		columns = append(columns, ">"+s.name)
	}
	columns = append(columns, ">one kubelet's", ">one agent's")
	each := func(total time.Duration) string { return microseconds(total / time.Duration(max(1, o.agents))) }
	rows := []figures.Row{
		stageRow(stages, "memory held after a garbage collection", func(s stage) string { return figures.Mebibytes(s.held) },
			func(a, b stage) string {
				return fmt.Sprintf("%.0f KiB", float64(b.held-a.held)/1024/float64(max(1, o.agents)))
			}),
		stageRow(stages, "memory (RSS)", func(s stage) string { return figures.Mebibytes(s.memory.Resident) }, nil),
		stageRow(stages, "CPU in a minute of heartbeats", func(s stage) string { return figures.Seconds(s.cpu) },
			func(a, b stage) string { return each(b.cpu - a.cpu) }),
		stageRow(stages, "heartbeats in a second", func(s stage) string { return fmt.Sprintf("%.1f", s.beats) }, nil),
		stageRow(stages, "changes they are notified of in a minute", func(s stage) string { return strconv.FormatInt(s.received, 10) }, nil),
		stageRow(stages, "CPU to open them, connections and all", func(s stage) string { return figures.Seconds(s.opening) },
			func(_, b stage) string { return each(b.opening) }),
		stageRow(stages, "CPU to open them again, every 5 to 10 minutes", func(s stage) string { return figures.Seconds(s.reopening) },
			func(_, b stage) string { return each(b.reopening) }),
		stageRow(stages, "CPU for one change of a policy", func(s stage) string { return microseconds(s.change) }, nil),
	}
	return figures.Result{
		Setting: fmt.Sprintf("kube-apiserver and etcd alone, %d Nodes as in part scale, with their heartbeats. An agent opens one watch, of its own Node "+
			"(`metadata.name=…`), and none of policies or pods: a policy it reads when it needs it, and pods are watched during a drain. That is the very watch that each kubelet has, "+
			"so kubelets' watches are the yardstick: first none, then %d of them, then as many of agents, each over a connection of its own. At rest for %s.",
			o.agents, o.agents, o.rest),
		Tables: []figures.Table{{Columns: columns, Rows: rows}},
	}
}

// stageRow has a cell for each stage, and what one more watch needs, from the difference of two stages.
func stageRow(stages []stage, name string, cell func(stage) string, one func(before, after stage) string) figures.Row {
	cells := []string{name}
	for _, s := range stages {
		cells = append(cells, cell(s))
	}
	for i := range stages[1:] {
		text := ""
		if one != nil {
			text = one(stages[i], stages[i+1])
		}
		cells = append(cells, text)
	}
	return figures.Row{Cells: cells}
}

func microseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
