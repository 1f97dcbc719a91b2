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

// This file decides whether a program of the table whose unit is active reboots the host. A
// configuration that cannot be read is an error, never a no.

const systemdServiceInterface = "org.freedesktop.systemd1.Service"

// rpmOSTreeReboots reads the configuration file of the daemon. Calling the daemon would start it,
// and this check runs often.
func rpmOSTreeReboots(_ context.Context, on activeUnit) (bool, error) {
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

// aptReboots reports whether unattended-upgrades reboots the host after upgrades that require it.
func aptReboots(_ context.Context, on activeUnit) (bool, error) {
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

// dnfReboots reads the configuration files of dnf-automatic of dnf 4 and 5. The last one wins.
func dnfReboots(_ context.Context, on activeUnit) (bool, error) {
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

// transactionalUpdateReboots reports whether transactional-update reboots the host. By default it
// chooses a method that does.
func transactionalUpdateReboots(_ context.Context, on activeUnit) (bool, error) {
	const vendor, administrator = "/usr/etc/transactional-update.conf", "/etc/transactional-update.conf"
	snippets, err := configurationsIn(on.root, vendor+".d")
	if err != nil {
		return false, err
	}
	method, err := lastAssignment(on.root, "REBOOT_METHOD", slices.Concat([]string{vendor}, snippets, []string{administrator})...)
	return method != "kured" && method != "none", err
}

// osUpdateReboots reports whether os-update reboots the host. By default it chooses a command that
// does.
// https://github.com/openSUSE/os-update/blob/main/src/os-update.in
func osUpdateReboots(_ context.Context, on activeUnit) (bool, error) {
	command, err := lastAssignment(on.root, "REBOOT_CMD", "/usr/share/os-update/os-update.conf", "/usr/etc/os-update.conf", "/etc/os-update.conf")
	return command != "no" && command != "none", err
}

// lastAssignment returns the last value that the files assign to a shell variable, or an empty
// string. A shell runs these files, so a file with anything but assignments is an error.
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

// shellLine matches a line with an assignment of one word, a comment, both, or nothing. A shell
// treats a carriage return as part of the word.
var shellLine = regexp.MustCompile(`^[ \t]*(?:#.*|(\w+)=((?:"(?:[^"\\\x60]|\\.)*"|'[^']*'|\\.|[^\s"'\\;&|<>()#\x60])*)(?:[ \t]+#.*)?)?[ \t]*$`)

// iniValue returns the last value of a key in a section of an INI file, without surrounding blanks.
// It is empty if the key is not set.
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

// isAptFile reports whether apt reads a file of this name in apt.conf.d. It skips files that dpkg
// and editors leave behind.
func isAptFile(name string) bool {
	extension := path.Ext(name)
	return (extension == "" || extension == ".conf") && !strings.HasPrefix(name, ".") && isMadeOf(name, "_-:.")
}

// isAptTrue reads a boolean as apt does. A value that apt does not know is an error.
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

// aptValue returns the value of an option after reading a file of apt.conf(5). The value argument
// is the one before. Names are case-insensitive. Blocks nest, and each adds a part to the name.
func aptValue(content, option, value string) (string, error) {
	blocks := []string{""}        // names of the open blocks
	words := make([]string, 0, 2) // an option and its value
	glued := false                // the last token was part of a word that may go on
	for content != "" {
		token, rest, err := aptToken(content)
		if err != nil {
			return "", err
		}
		content = rest
		within := blocks[len(blocks)-1]
		if (token == ";" || token == "}") && len(words) > 0 { // The last option of a block does not need a semicolon.
			if len(words) > 1 { // An option without a value sets nothing.
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

// aptName returns the full name of an option or a block within another block.
func aptName(block, name string) string {
	if block == "" {
		return name
	}
	return block + "::" + name
}

// aptStatement returns the value of an option after one statement. The value argument is the one
// before.
func aptStatement(name string, words []string, option, value string) string {
	switch {
	case strings.EqualFold(name, option):
		return strings.Join(words, " ")
	case name == "#clear" && strings.HasPrefix(strings.ToLower(option+"::"), strings.ToLower(words[0]+"::")):
		return ""
	}
	return value
}

// aptToken returns the first token: a word, a text with its opening quote, or one of { } ;. It is
// empty for blanks and comments.
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
