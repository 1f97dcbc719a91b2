package gantt

import (
	"fmt"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/timetable"
)

// page is the page around the pictures. It has no script, and asks nobody for anything.
const page = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<title>Forecast of reboots</title><style>
body{font:14px system-ui,-apple-system,"Segoe UI",sans-serif;margin:24px;background:#fff;color:#1f2937}
section{margin-bottom:40px}svg{max-width:none;display:block}.wide{overflow-x:auto}
table{border-collapse:collapse}th,td{text-align:left;padding:2px 16px 2px 0}th{font-weight:600}summary{cursor:pointer;margin:8px 0}
@media (prefers-color-scheme:dark){body{background:#0f172a;color:#e5e7eb}}
</style></head><body>
`

// HTML is a page of timetables: the picture of each, and below it who goes when in words.
func HTML(tables []timetable.Timetable, zone *time.Location) string {
	var b strings.Builder
	b.WriteString(page)
	if len(tables) == 0 {
		b.WriteString("<p>No RebootPolicy.</p>\n")
	}
	for _, t := range tables {
		fmt.Fprintf(&b, "<section><div class=\"wide\">%s</div>\n", SVG(t, zone))
		list(&b, t, zone)
		b.WriteString("</section>\n")
	}
	b.WriteString("</body></html>\n")
	return b.String()
}

// list is what the picture shows, for those who cannot see it or want to copy it.
func list(b *strings.Builder, t timetable.Timetable, zone *time.Location) {
	clock := func(at time.Time) string { return text(at.In(zone).Format("Mon 2006-01-02 15:04 MST")) }
	if len(t.Reboots) > 0 {
		fmt.Fprintf(b, "<details><summary>%d reboots</summary><table><tr><th>Node<th>Starts<th>Ends<th>Window</tr>\n", len(t.Reboots))
		for _, r := range t.Reboots {
			where := r.Window
			if r.InFlight {
				where = "in flight"
			}
			fmt.Fprintf(b, "<tr><td>%s<td>%s<td>%s<td>%s</tr>\n", text(r.Node), clock(r.StartsAt), clock(r.EndsAt), text(where))
		}
		b.WriteString("</table></details>\n")
	}
	if len(t.Stays) > 0 {
		fmt.Fprintf(b, "<details><summary>%d stay</summary><table><tr><th>Node<th>Reason<th>Why</tr>\n", len(t.Stays))
		for _, s := range t.Stays {
			fmt.Fprintf(b, "<tr><td>%s<td>%s<td>%s</tr>\n", text(s.Node), text(string(s.Reason)), text(s.Message))
		}
		b.WriteString("</table></details>\n")
	}
}
