package timetable

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/controllers/forecast"
	"github.com/reboot-operator/reboot-operator/internal/timing"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/calendar"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// Sizes in the picture, in pixels.
const (
	leftEdge, rightEdge = 190.0, 24.0
	plotWidth           = 886.0
	top                 = 124.0
	// headline is the height of the policy's name and its verdict.
	headline  = 50.0
	rowHeight = 18.0
	barHeight = 11.0
	// mostStays is the maximum number of named nodes that stay.
	mostStays = 6
	// labelRunes is the maximum length of a label, and textRunes that of a line of text.
	labelRunes, textRunes = 26, 170
	lineHeight            = 16.0
)

// Style is the style sheet of the picture, for light and dark mode. Colors carry no information
// that positions and tooltips do not carry.
const Style = `
.ground{fill:#ffffff}text{font:11px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;fill:#1f2937}
.title{font-size:15px;font-weight:600}.quiet{fill:#6b7280}.over{paint-order:stroke;stroke:#ffffff;stroke-width:4px}.end{text-anchor:end}.middle{text-anchor:middle}
.open{fill:#e8f1fd}.shut{fill:#f3f4f6}.freeze{fill:#fde8e8}.stripe{fill:#000000;fill-opacity:.035}
.tick{stroke:#cbd5e1;stroke-width:1}.now{stroke:#dc2626;stroke-width:1.5}.nowtext{fill:#dc2626}.jump{stroke:#7c3aed;stroke-width:1;stroke-dasharray:4 3}
.before{fill:#94a3b8}.drain{fill:#d97706}.reboot{fill:#7c3aed}.settle{fill:#16a34a}.several{fill:#2563eb}
@media (prefers-color-scheme:dark){
.ground{fill:#0f172a}text{fill:#e5e7eb}.quiet{fill:#9ca3af}.over{stroke:#0f172a}.open{fill:#172a46}.shut{fill:#1e293b}.freeze{fill:#3f1d24}
.stripe{fill:#ffffff;fill-opacity:.04}.tick{stroke:#475569}.now{stroke:#f87171}.nowtext{fill:#f87171}.jump{stroke:#c4b5fd}
.before{fill:#94a3b8}.drain{fill:#f59e0b}.reboot{fill:#a78bfa}.settle{fill:#4ade80}.several{fill:#60a5fa}}
`

// picture is an SVG that is being drawn.
type picture struct {
	strings.Builder

	table Timetable
	zone  *time.Location
	axis  axis
	rows  []row
	// shared means that several nodes share a row.
	shared bool
	// width and height are the size of the picture, and bottom is the end of the rows.
	width, bottom, height float64
}

// SVG draws a timetable in a time zone.
func SVG(t Timetable, zone *time.Location) string {
	return draw(t, zone, "<style>"+Style+"</style>", 0)
}

// Figure draws the timetable without style sheet, name and verdict, for a page that has them.
func Figure(t Timetable, zone *time.Location) string { return draw(t, zone, "", headline) }

// draw leaves out everything above edge.
func draw(t Timetable, zone *time.Location, style string, edge float64) string {
	p := &picture{table: t, zone: zone}
	var plot float64
	p.axis, plot = axisOf(t)
	drawn := p.axis.drawn(t.Reboots)
	p.rows = rows(drawn, zone)
	p.shared = len(p.rows) < len(drawn)
	p.width = leftEdge + max(plot, plotWidth) + rightEdge
	if p.bottom = headline; len(p.rows) > 0 {
		p.bottom = top + rowHeight*float64(len(p.rows))
	}
	stays := p.stays()
	p.height = p.bottom + 44 + lineHeight*float64(len(stays))
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" role="img" width="%.0f" height="%.0f" viewBox="0 %.0f %.0f %.0f">`, p.width, p.height-edge, edge, p.width, p.height-edge)
	p.printf("<title>%s</title>%s", text("Forecast of policy "+t.Policy+". "+t.Verdict(zone)), style)
	p.rect("ground", 0, 0, p.width, p.height, "")
	if edge < headline {
		p.head()
	}
	if len(p.rows) > 0 {
		p.legend()
		p.background()
		p.bars()
		p.marks()
		p.labels()
	}
	for i, line := range stays {
		p.text("", 16, p.bottom+34+lineHeight*float64(i), line)
	}
	p.WriteString("</svg>\n")
	return p.String()
}

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// text escapes a text for XML, and replaces characters that XML or a terminal does not accept,
// because a picture may be printed to a terminal.
func text(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xFFFE || r == 0xFFFF {
			return '\uFFFD'
		}
		return r
	}, terminal.Harmless(s)))
}

func (p *picture) rect(class string, x, y, width, height float64, title string) {
	if title != "" {
		title = "<title>" + text(title) + "</title>"
	}
	p.printf(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f">%s</rect>`, class, x, y, width, height, title)
}

func (p *picture) text(class string, x, y float64, content string) {
	p.printf(`<text class="%s" x="%.1f" y="%.1f">%s</text>`, class, x, y, text(content))
}

func (p *picture) head() {
	title := "policy " + p.table.Policy
	if p.table.DryRun {
		title += " (dry run: as if it rebooted nodes)"
	}
	p.text("title", 16, 26, title)
	p.text("", 16, 44, terminal.Cut(p.table.Verdict(p.zone), textRunes))
}

func (p *picture) legend() {
	x := 16.0
	legend := []struct{ class, label string }{{"drain", "drain"}, {"reboot", "reboot"}, {"settle", "settle"}, {"open", "window"}}
	granted := func(r row) bool { return r.bars[0].kind == "before" && r.bars[0].to.After(r.bars[0].from) }
	switch {
	case p.shared:
		legend = []struct{ class, label string }{{"several", "nodes one after the other"}, {"open", "window"}}
	case slices.ContainsFunc(p.rows, granted):
		legend = slices.Insert(legend, 0, struct{ class, label string }{"before", "granted"})
	}
	for _, l := range legend {
		p.rect(l.class, x, 55, 12, 10, "")
		p.text("quiet", x+17, 64, l.label)
		x += 36 + 6.2*float64(len(l.label))
	}
	p.text("quiet", x, 64, "times in "+p.table.At.In(p.zone).Format("MST"))
}

// background draws the windows, the hours between them, and the ticks.
func (p *picture) background() {
	for i := 1; i < len(p.rows); i += 2 {
		p.rect("stripe", 0, top+rowHeight*float64(i), p.width, rowHeight, "")
	}
	for i, s := range p.axis.stretches {
		p.rect("shut", s.x, top, s.width, p.bottom-top, "")
		p.windows(s)
		for _, t := range s.ticks(p.zone) {
			x, _ := p.axis.at(t)
			p.line("tick", x, top-6, p.bottom)
		}
		switch {
		case i > 0:
			p.gap(p.axis.stretches[i-1].to, s)
		case !p.axis.now.IsZero():
			p.gap(p.axis.now, s)
		}
	}
	if p.axis.cut {
		p.text("quiet end", p.width-4, p.bottom+14, "later windows are not drawn →")
	}
}

// windows draws the hours of a stretch in which reboots may start.
func (p *picture) windows(s stretch) {
	for _, e := range p.table.Calendar {
		to := e.To
		if to.IsZero() || to.After(s.to) {
			to = s.to
		}
		if e.Kind != calendar.Open || !e.From.Before(s.to) || !to.After(s.from) {
			continue
		}
		from, _ := p.axis.at(timing.Latest(e.From, s.from))
		end, _ := p.axis.at(to)
		p.rect("open", from, top, end-from, p.bottom-top, strings.Join(e.Names, ", "))
	}
}

// gap draws a period without reboots in front of a stretch.
func (p *picture) gap(from time.Time, after stretch) {
	class, label := "shut", "closed"
	for _, e := range p.table.Calendar {
		if e.Kind == calendar.Blackout && e.From.Before(after.from) && (e.To.IsZero() || e.To.After(from)) {
			class, label = "freeze", "blackout "+strings.Join(e.Names, ", ")
		}
	}
	label += ", " + moment.Span(after.from.Sub(from))
	x := after.x - gapWidth
	p.rect(class, x, top, gapWidth, p.bottom-top, label)
	if most := int((p.bottom - top) / 6.5); most >= len([]rune("closed, 1d")) {
		p.printf(`<text class="quiet" transform="translate(%.1f %.1f) rotate(90)">%s</text>`, x+gapWidth/2-4, top+4, text(terminal.Cut(label, most)))
	}
}

func (p *picture) line(class string, x, from, to float64) {
	p.printf(`<line class="%s" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, class, x, x, from, to)
}

func (p *picture) bars() {
	for i, r := range p.rows {
		y := top + rowHeight*float64(i)
		p.printf("<g><title>%s</title>", text(r.title))
		p.text("end", leftEdge-10, y+13, terminal.Cut(r.label, labelRunes))
		for _, b := range r.bars {
			from, ok := p.axis.at(b.from)
			to, ends := p.axis.at(b.to)
			if !ok || !b.to.After(b.from) {
				continue
			}
			if !ends {
				last := p.axis.stretches[len(p.axis.stretches)-1]
				to = last.x + last.width
			}
			p.rect(b.kind, from, y+(rowHeight-barHeight)/2, max(to-from, 1), barHeight, "")
		}
		p.WriteString("</g>\n")
	}
}

// marks draws now and the clock changes.
func (p *picture) marks() {
	if x, ok := p.axis.at(p.table.At); ok {
		p.line("now", x, top-34, p.bottom)
		p.text("nowtext", x+3, top-38, "now "+p.table.At.In(p.zone).Format("15:04"))
	}
	for _, e := range p.table.Calendar {
		x, ok := p.axis.at(e.From)
		if e.Kind != calendar.ClockChange || !ok {
			continue
		}
		p.line("jump", x, top, p.bottom+4)
		p.text("quiet middle", x, p.bottom+14, e.TimeZone+": "+strings.Join(e.Notes, ", "))
	}
}

// labels writes the times of the axis over the line of now, which would cross them out.
func (p *picture) labels() {
	for _, s := range p.axis.stretches {
		p.text("over", s.x, top-22, s.from.In(p.zone).Format("Mon 2 Jan 15:04"))
		for _, t := range s.ticks(p.zone) {
			x, _ := p.axis.at(t)
			p.text("over quiet middle", x, top-9, t.In(p.zone).Format("15:04"))
		}
	}
}

// stays returns the lines about nodes that stay, each with the whole command that ends that.
func (p *picture) stays() []string {
	var lines []string
	for i, s := range p.table.Stays {
		if i == mostStays {
			return append(lines, fmt.Sprintf("and %d more that stay", len(p.table.Stays)-i))
		}
		lines = append(lines, terminal.Wrap(s.Node+" stays: "+string(s.Reason)+", "+moment.Local(s.Message, p.zone), textRunes)...)
	}
	return lines
}

// mostRows is the maximum number of rows. With more nodes, several share a row.
const mostRows = 60

// bar is a part of a row in one color.
type bar struct {
	// kind is its CSS class: before, drain, reboot, settle, or several for nodes that share a row.
	kind     string
	from, to time.Time
}

// row shows one node, or several one after the other.
type row struct {
	label string
	// title is the tooltip.
	title string
	bars  []bar
}

// rows returns the rows of the reboots in order of their start. If there are too many, each row has
// several nodes.
func rows(reboots []forecast.Expected, zone *time.Location) []row {
	each := max(1, (len(reboots)+mostRows-1)/mostRows)
	var list []row
	for i := 0; i < len(reboots); i += each {
		some := reboots[i:min(i+each, len(reboots))]
		if len(some) == 1 {
			list = append(list, single(some[0], zone))
		} else {
			list = append(list, several(some, zone))
		}
	}
	return list
}

func single(r forecast.Expected, zone *time.Location) row {
	return row{label: r.Node, title: r.Node + ": " + between(r.StartsAt, r.EndsAt, zone), bars: []bar{
		{"before", r.StartsAt, r.DrainsAt}, {"drain", r.DrainsAt, r.RebootsAt}, {"reboot", r.RebootsAt, r.SettlesAt}, {"settle", r.SettlesAt, r.EndsAt},
	}}
}

// several returns a row for several nodes, with a bar for each uninterrupted series of reboots.
func several(some []forecast.Expected, zone *time.Location) row {
	spans := make([]stretch, 0, len(some))
	for _, r := range some {
		spans = append(spans, stretch{from: r.StartsAt, to: r.EndsAt})
	}
	first, last := some[0], some[len(some)-1]
	all := row{
		label: fmt.Sprintf("%d: %s …", len(some), first.Node),
		title: fmt.Sprintf("%d nodes, %s to %s: %s", len(some), first.Node, last.Node, between(first.StartsAt, last.EndsAt, zone)),
	}
	for _, s := range join(spans) {
		all.bars = append(all.bars, bar{"several", s.from, s.to})
	}
	return all
}

func between(from, to time.Time, zone *time.Location) string {
	return from.In(zone).Format("Mon 2006-01-02 15:04") + " – " + to.In(zone).Format("Mon 15:04 MST")
}
