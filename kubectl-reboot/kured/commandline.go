package kured

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parsed is what the command line and the environment of a kured come to.
type parsed struct {
	flags *kuredFlags
	// given are the flags that were set, each once, in the order of their first appearance.
	given []given
	// stray is what kured does not know or does not look at, with the reason.
	stray []line
}

// given is a flag that was set.
type given struct {
	name string
	// texts are how, as it was written: --period=1h, or KURED_PERIOD=1h; a list may have several.
	texts []string
	// hidden states why the value is not known; empty: it is.
	hidden string
}

// parse reads the arguments as kured's own parser does: --flag=value, --flag value, and a boolean without a value.
func (p *parsed) parse(args []string) error {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			p.arguments(args)
			return nil
		}
		if !strings.HasPrefix(arg, "-") {
			p.arguments([]string{arg})
			continue
		}
		rest, err := p.parseFlag(arg, args)
		if err != nil {
			return err
		}
		args = rest
	}
	return nil
}

// parseFlag takes one flag, and its value from the rest where it is there.
func (p *parsed) parseFlag(arg string, rest []string) ([]string, error) {
	name, value, hasValue := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	f := p.flags.set.Lookup(name)
	switch {
	case f == nil:
		return p.unknown(arg, hasValue, rest), nil
	case hasValue:
	case isSwitch(f):
		value = "true"
	case len(rest) == 0:
		return nil, fmt.Errorf("--%s has no value, and kured does not start without one", name)
	default:
		value, rest = rest[0], rest[1:]
	}
	return rest, p.assign(f, "--"+name, value)
}

func isSwitch(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

func (p *parsed) arguments(args []string) {
	for _, arg := range args {
		p.stray = append(p.stray, line{what: strconv.Quote(arg), how: "an argument, which kured ignores: was it meant for a flag?"})
	}
}

// unknown takes the argument after an unknown flag for its value, unless it is a flag itself.
func (p *parsed) unknown(arg string, hasValue bool, rest []string) []string {
	if !hasValue && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		arg += " " + rest[0]
		rest = rest[1:]
	}
	p.stray = append(p.stray, line{what: arg, how: "no flag that this program knows of kured: look up what it does in yours"})
	return rest
}

// assign sets a flag, or reports in one sentence why kured would not start with this value.
func (p *parsed) assign(f *flag.Flag, by, value string) error {
	if err := f.Value.Set(value); err != nil {
		return fmt.Errorf("%s is %q, with which kured does not start: %w", by, value, err)
	}
	if secrets[f.Name] {
		value = "(not shown)"
	}
	p.note(given{name: f.Name, texts: []string{by + "=" + value}})
	return nil
}

// note keeps the last setting of a flag, and all of a list.
func (p *parsed) note(g given) {
	before := p.find(g.name)
	if before == nil {
		p.given = append(p.given, g)
		return
	}
	if _, ok := p.flags.set.Lookup(g.name).Value.(*list); ok {
		g.texts = slices.Concat(before.texts, g.texts)
	}
	*before = g
}

// find is how a flag was set; nil: it was not.
func (p *parsed) find(name string) *given {
	for i := range p.given {
		if p.given[i].name == name {
			return &p.given[i]
		}
	}
	return nil
}
