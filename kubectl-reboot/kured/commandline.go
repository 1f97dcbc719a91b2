package kured

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// given is a flag that was set.
type given struct {
	name string
	// texts are how, as it was written: --period=1h, or KURED_PERIOD=1h; a list may have several.
	texts []string
	// hidden states why the value is not known; empty: it is.
	hidden string
}

// parse reads the arguments as kured's own parser does: --flag=value, --flag value, and a boolean without a value.
func (f *kuredFlags) parse(args []string) error {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			f.arguments(args)
			return nil
		}
		if !strings.HasPrefix(arg, "-") {
			f.arguments([]string{arg})
			continue
		}
		rest, err := f.parseFlag(arg, args)
		if err != nil {
			return err
		}
		args = rest
	}
	return nil
}

// parseFlag takes one flag, and its value from the rest where it is there.
func (f *kuredFlags) parseFlag(arg string, rest []string) ([]string, error) {
	name, value, hasValue := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	known := f.set.Lookup(name)
	switch {
	case known == nil:
		return f.unknown(arg, hasValue, rest), nil
	case hasValue:
	case known.NoOptDefVal != "": // a boolean
		value = known.NoOptDefVal
	case len(rest) == 0:
		return nil, fmt.Errorf("--%s has no value, and kured does not start without one", name)
	default:
		value, rest = rest[0], rest[1:]
	}
	return rest, f.assign(known, "--"+name, value)
}

func (f *kuredFlags) arguments(args []string) {
	for _, arg := range args {
		f.stray = append(f.stray, line{what: strconv.Quote(arg), how: "an argument, which kured ignores: was it meant for a flag?"})
	}
}

// unknown takes the argument after an unknown flag for its value, unless it is a flag itself.
func (f *kuredFlags) unknown(arg string, hasValue bool, rest []string) []string {
	if !hasValue && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		arg += " " + rest[0]
		rest = rest[1:]
	}
	f.stray = append(f.stray, line{what: arg, how: "no flag that this program knows of kured: look up what it does in yours"})
	return rest
}

// assign sets a flag, or reports in one sentence why kured would not start with this value.
func (f *kuredFlags) assign(known *pflag.Flag, by, value string) error {
	if err := known.Value.Set(value); err != nil {
		return fmt.Errorf("%s is %q, with which kured does not start: %w", by, value, err)
	}
	if secrets[known.Name] {
		value = "(not shown)"
	}
	f.note(given{name: known.Name, texts: []string{by + "=" + value}})
	return nil
}

// note keeps the last setting of a flag, and all of a list.
func (f *kuredFlags) note(g given) {
	before := f.find(g.name)
	if before == nil {
		f.given = append(f.given, g)
		return
	}
	if _, ok := f.set.Lookup(g.name).Value.(pflag.SliceValue); ok {
		g.texts = slices.Concat(before.texts, g.texts)
	}
	*before = g
}

// find is how a flag was set; nil: it was not.
func (f *kuredFlags) find(name string) *given {
	for i := range f.given {
		if f.given[i].name == name {
			return &f.given[i]
		}
	}
	return nil
}
