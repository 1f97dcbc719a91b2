package host

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// This file has what decides, beside an active unit, whether a program of the table reboots the host. Whatever cannot be read
// is an error, never a no.

const systemdServiceInterface = "org.freedesktop.systemd1.Service"

// rpmOSTreeReboots reads the file that the daemon reads: asking the daemon would start it, and it is asked often.
func rpmOSTreeReboots(_ context.Context, on looked) (bool, error) {
	content, err := readConfiguration(on.root, "/etc/rpm-ostreed.conf")
	if err != nil {
		return false, err
	}
	switch policy := strings.ToLower(iniValue(content, "Daemon", "AutomaticUpdatePolicy")); policy {
	case "", "none", "off", "check", "stage", "ex-stage":
		return false, nil
	case "apply":
		return true, nil
	default:
		return false, fmt.Errorf("AutomaticUpdatePolicy is %.32q in /etc/rpm-ostreed.conf", policy)
	}
}

// aptReboots reports whether unattended-upgrades reboots the host once its upgrades need it.
func aptReboots(_ context.Context, on looked) (bool, error) {
	names, err := configurationsIn(on.root, "/etc/apt/apt.conf.d")
	if err != nil {
		return false, err
	}
	value := ""
	names = slices.DeleteFunc(names, func(name string) bool { return !isAptFile(path.Base(name)) })
	for _, name := range append(names, "/etc/apt/apt.conf") {
		content, err := readConfiguration(on.root, name)
		if err != nil {
			return false, err
		}
		found, err := aptValue(content, "Unattended-Upgrade::Automatic-Reboot", value)
		if err != nil {
			return false, fmt.Errorf("reading %s of the host: %w", name, err)
		}
		value = found
	}
	return isAptTrue(value)
}

// dnfReboots reads the files of dnf-automatic of dnf 4 and 5; the later of them wins.
func dnfReboots(_ context.Context, on looked) (bool, error) {
	reboot := ""
	for _, name := range []string{
		"/usr/share/dnf5/dnf5-plugins/automatic.conf", "/etc/dnf/dnf5-plugins/automatic.conf", "/etc/dnf/automatic.conf",
	} {
		content, err := readConfiguration(on.root, name)
		if err != nil {
			return false, err
		}
		if value := iniValue(content, "commands", "reboot"); value != "" {
			reboot = value
		}
	}
	return reboot != "" && reboot != "never", nil
}

// transactionalUpdateReboots: without a method it chooses one that reboots.
func transactionalUpdateReboots(_ context.Context, on looked) (bool, error) {
	const vendor, administrator = "/usr/etc/transactional-update.conf", "/etc/transactional-update.conf"
	snippets, err := configurationsIn(on.root, vendor+".d")
	if err != nil {
		return false, err
	}
	method, err := lastAssignment(on.root, "REBOOT_METHOD", slices.Concat([]string{vendor}, snippets, []string{administrator})...)
	return method != "kured" && method != "none", err
}

// osUpdateReboots: without a command it chooses one that reboots.
// https://github.com/openSUSE/os-update/blob/main/src/os-update.in
func osUpdateReboots(_ context.Context, on looked) (bool, error) {
	command, err := lastAssignment(on.root, "REBOOT_CMD", "/usr/share/os-update/os-update.conf", "/usr/etc/os-update.conf", "/etc/os-update.conf")
	return command != "no" && command != "none", err
}

// lastAssignment is the value that the last of a host's files with shell assignments gives to a variable. Empty: none does. A shell runs
// these files, so one that has anything else may give any value.
func lastAssignment(root, variable string, names ...string) (string, error) {
	last := ""
	for _, name := range names {
		content, err := readConfiguration(root, name)
		if err != nil {
			return "", err
		}
		for line := range strings.SplitSeq(content, "\n") {
			assignment := shellLine.FindStringSubmatch(line)
			if assignment == nil {
				return "", fmt.Errorf("reading %s of the host: %.32q is more than an assignment", name, line)
			}
			if assignment[1] == variable {
				last = unquote(assignment[2])
			}
		}
	}
	return last, nil
}

// shellLine is an assignment of one word that ends with its line, a comment, or nothing. A shell takes a carriage return for a part of
// the word.
var shellLine = regexp.MustCompile(`^[ \t]*(?:#.*|(\w+)=((?:"(?:[^"\\\x60]|\\.)*"|'[^']*'|\\.|[^\s"'\\;&|<>()#\x60])*)(?:[ \t]+#.*)?)?[ \t]*$`)

// iniValue is the last value of a key in a section of an INI file, without blanks around it. Empty: it is not set.
func iniValue(content, section, key string) string {
	value, in := "", ""
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			in, _, _ = strings.Cut(name, "]")
			continue
		}
		if name, text, found := strings.Cut(line, "="); found && in == section && strings.TrimSpace(name) == key {
			value = strings.TrimSpace(text)
		}
	}
	return value
}

// isAptFile reports whether apt reads a file of this name in apt.conf.d. It leaves out what dpkg and editors leave behind.
func isAptFile(name string) bool {
	extension := path.Ext(name)
	return (extension == "" || extension == ".conf") && !strings.HasPrefix(name, ".") && isMadeOf(name, "_-:.")
}

// isAptTrue reads a boolean as apt does. One that apt does not know is an error here.
func isAptTrue(value string) (bool, error) {
	switch strings.ToLower(value) {
	case "", "0", "no", "false", "without", "off", "disable":
		return false, nil
	case "1", "yes", "true", "with", "on", "enable":
		return true, nil
	}
	return false, fmt.Errorf("Unattended-Upgrade::Automatic-Reboot is %.32q in /etc/apt", value)
}

var (
	errAptSyntax  = errors.New("it is not apt's syntax")
	errAptInclude = errors.New("it includes another file, which is not read")
)

// aptValue is what an option is after a file of apt.conf(5) was read, where it was value before. Names have no case; blocks
// nest, and each adds a part to the name.
func aptValue(content, option, value string) (string, error) {
	blocks := []string{""}        // Their names.
	words := make([]string, 0, 2) // An option and its value.
	glued := false                // The last token was a part of a word, and the next one may be, too.
	for content != "" {
		token, rest, err := aptToken(content)
		if err != nil {
			return "", err
		}
		content = rest
		within := blocks[len(blocks)-1]
		if (token == ";" || token == "}") && len(words) > 0 { // The last option of a block may go without its semicolon.
			if len(words) > 1 { // Without a value nothing is set.
				value = aptStatement(aptName(within, words[0]), words[1:], option, value)
			}
			words = nil
		}
		switch token {
		case "", ";":
		case "{":
			words = append(words, "") // A block may have no name.
			blocks, words = append(blocks, aptName(within, words[0])), nil
		case "}":
			if len(blocks) == 1 {
				return "", errAptSyntax
			}
			blocks = blocks[:len(blocks)-1]
		default:
			text := strings.TrimPrefix(token, `"`)
			if glued {
				words[len(words)-1] += text
			} else {
				words = append(words, text)
			}
		}
		glued = !slices.Contains([]string{"", ";", "{", "}"}, token)
	}
	if len(blocks) > 1 || len(words) > 0 {
		return "", errAptSyntax
	}
	return value, nil
}

// aptName is the name of an option or a block within another block.
func aptName(block, name string) string {
	if block == "" {
		return name
	}
	return block + "::" + name
}

// aptStatement is what an option is after one statement, where it was value before.
func aptStatement(name string, words []string, option, value string) string {
	switch {
	case strings.EqualFold(name, option):
		return strings.Join(words, " ")
	case name == "#clear" && strings.HasPrefix(strings.ToLower(option+"::"), strings.ToLower(words[0]+"::")):
		return ""
	}
	return value
}

// aptToken is the first token: a word, a text behind its first quote, or one of { } ;. Empty: blanks or a comment.
func aptToken(content string) (token, rest string, err error) {
	const blanks = " \t\r\n"
	switch {
	case strings.ContainsRune(blanks, rune(content[0])):
		return "", strings.TrimLeft(content, blanks), nil
	case strings.HasPrefix(content, "#include"):
		return "", "", errAptInclude
	case strings.HasPrefix(content, "//"), content[0] == '#' && !strings.HasPrefix(content, "#clear"):
		_, rest, _ = strings.Cut(content, "\n")
		return "", rest, nil
	case strings.HasPrefix(content, "/*"):
		_, rest, found := strings.Cut(content[len("/*"):], "*/")
		if !found {
			return "", "", errAptSyntax
		}
		return "", rest, nil
	case strings.ContainsRune("{};", rune(content[0])):
		return content[:1], content[1:], nil
	case content[0] == '"':
		text, rest, found := strings.Cut(content[1:], `"`)
		if !found {
			return "", "", errAptSyntax
		}
		return content[:1] + text, rest, nil
	}
	if end := aptWordEnd.FindStringIndex(content[1:]); end != nil {
		return content[:1+end[0]], content[1+end[0]:], nil
	}
	return content, "", nil
}

var aptWordEnd = regexp.MustCompile(`[ \t\r\n{};"#]|//|/\*`)
