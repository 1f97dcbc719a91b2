package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// logEnd is how many lines of each log are shown.
const logEnd = 15

// show prints what an administrator would look at, and the end of every log of the operator.
func (s *site) show(ctx context.Context) {
	for _, args := range []string{
		"get rebootpolicies,nodes -o wide", "get pods -A -o wide", "get rebootpolicies -o yaml",
		"get nodes -o jsonpath={range.items[*]}{.metadata.name}{.metadata.annotations}{.status.conditions}{\"\\n\"}{end}",
		"get events -A --sort-by=.lastTimestamp",
	} {
		output, err := s.cluster.Kubectl(ctx, nil, strings.Fields(args)...)
		s.logf("kubectl %s: %v\n%s", args, err, output)
	}
	for _, m := range s.rack.Machines {
		// The pattern is well formed, so there is no error.
		logs, _ := filepath.Glob(m.Disk("var/log/pods/" + operator + "_*/*/*.log"))
		for _, path := range append(logs, filepath.Join(m.Folder(), "console.log")) {
			text, err := os.ReadFile(path)
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			s.logf("%s: %v\n%s", path, err, strings.Join(lines[max(0, len(lines)-logEnd):], "\n"))
		}
	}
}
