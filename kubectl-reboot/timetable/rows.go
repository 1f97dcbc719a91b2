package timetable

import (
	"fmt"
	"time"

	"github.com/reboot-operator/reboot-operator/controllers/forecast"
)

// mostRows is how many rows a picture has at most: more nodes share rows.
const mostRows = 60

// bar is a stretch of a row of one colour.
type bar struct {
	// kind is its class: before, drain, reboot, settle, or several for nodes that share a row.
	kind     string
	from, to time.Time
}

// row is one node, or several one after the other.
type row struct {
	label string
	// title is what a pointer on it shows.
	title string
	bars  []bar
}

// rows are the reboots in the order in which they start. Where they are too many, each row has as many nodes as it takes.
func rows(reboots []forecast.Reboot, zone *time.Location) []row {
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

func single(r forecast.Reboot, zone *time.Location) row {
	return row{label: r.Node, title: r.Node + ": " + between(r.StartsAt, r.EndsAt, zone), bars: []bar{
		{"before", r.StartsAt, r.DrainsAt}, {"drain", r.DrainsAt, r.RebootsAt}, {"reboot", r.RebootsAt, r.SettlesAt}, {"settle", r.SettlesAt, r.EndsAt},
	}}
}

// several is a row for nodes that follow one another: a bar for each time that they do so without a pause.
func several(some []forecast.Reboot, zone *time.Location) row {
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
