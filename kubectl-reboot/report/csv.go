package report

import (
	"encoding/csv"
	"fmt"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// CSV is the report for spreadsheets: instants are in UTC by RFC 3339.
func CSV(rows []Row) (string, error) {
	var b strings.Builder
	w := csv.NewWriter(&b)
	lines := append(make([][]string, 0, 1+len(rows)), header)
	for _, r := range rows {
		cells := r.cells(func(t time.Time) string { return t.UTC().Format(time.RFC3339) })
		for i := range cells {
			cells[i] = text(cells[i])
		}
		lines = append(lines, cells)
	}
	if err := w.WriteAll(lines); err != nil {
		return "", fmt.Errorf("writing CSV: %w", err)
	}
	return b.String(), nil
}

// text keeps a spreadsheet from taking what a node reports for a formula, and a terminal from obeying it.
func text(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
		cell = "'" + cell
	}
	return terminal.Harmless(cell)
}
