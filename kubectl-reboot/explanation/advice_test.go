package explanation_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	_ "time/tzdata"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/explanation"
)

// TestAdviceFor: every reason of docs/reasons.md for which a node waits comes with something to do.
func TestAdviceFor(t *testing.T) {
	text, err := os.ReadFile("../../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| [0-9]+ \\| `([A-Za-z]+)` \\|").FindAllSubmatch(text, -1)
	if len(rows) < 10 {
		t.Fatalf("found %d reasons", len(rows))
	}
	for _, row := range rows {
		reason := v1alpha1.Reason(row[1])
		a := explanation.AdviceFor(reason, "n1", "workers")
		if strings.Contains(a.Text, "docs/reasons.md") || a.Command == "" || strings.Contains(a.Command, "NODE") || strings.Contains(a.Command, "POLICY") {
			t.Errorf("%s: %+v; explanation/advice.go wants a row for it", reason, a)
		}
	}
	if a := explanation.AdviceFor("SomethingNew", "n1", "workers"); !strings.Contains(a.Text, "docs/reasons.md") {
		t.Errorf("an unknown reason: %+v", a)
	}
}
