package main

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// What a target keeps at most: enough that `go test` replays what matters, and no more than people want to see in a diff.
const (
	maxInputs     = 30
	maxInputBytes = 1 << 10
	maxBytes      = 6 << 10
	// maxMeasured is how many inputs are measured, the smallest ones; each takes a process.
	maxMeasured = 300
)

// blocks are what a run covers: blocks of code, each with how often it ran, in powers of two.
type blocks map[string]bool

func (b blocks) remove(others blocks) {
	maps.DeleteFunc(b, func(k string, _ bool) bool { return others[k] })
}

// input is an input of a target.
type input struct {
	name    string
	content []byte
	covers  blocks
}

// smallest are inputs by size, without the largest where there are too many.
func smallest(byName map[string]*input) []*input {
	inputs := slices.SortedFunc(maps.Values(byName), func(a, b *input) int {
		return cmp.Or(cmp.Compare(len(a.content), len(b.content)), cmp.Compare(a.name, b.name))
	})
	return inputs[:min(len(inputs), maxMeasured)]
}

// choose takes, again and again, the input that covers most of what none before it did, the smallest of several.
func choose(inputs []*input) []*input {
	var chosen []*input
	done, size := blocks{}, 0
	for len(chosen) < maxInputs {
		var best *input
		most := 0
		for _, in := range inputs {
			if gain := in.gain(done); gain > most && size+len(in.content) <= maxBytes {
				best, most = in, gain
			}
		}
		if best == nil {
			break
		}
		chosen, size = append(chosen, best), size+len(best.content)
		maps.Copy(done, best.covers)
	}
	return chosen
}

// gain counts what the input covers and done does not.
func (i *input) gain(done blocks) int {
	gain := 0
	for block := range i.covers {
		if !done[block] {
			gain++
		}
	}
	return gain
}

// parseProfile reads a cover profile: a line for each block, with the count at its end.
func parseProfile(text string) blocks {
	covered := blocks{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		count, err := strconv.ParseUint(fields[len(fields)-1], 10, 64)
		if len(fields) == 3 && err == nil && count > 0 {
			covered[fields[0]+" "+strconv.Itoa(bits.Len64(count))] = true
		}
	}
	return covered
}
