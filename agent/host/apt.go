package host

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

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

// isAptFile reports whether apt reads a file of this name in apt.conf.d. It leaves out what dpkg and editors leave behind.
func isAptFile(name string) bool {
	extension := path.Ext(name)
	others := func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune("_-:.", r) }
	return (extension == "" || extension == ".conf") && !strings.HasPrefix(name, ".") && !strings.ContainsFunc(name, others)
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

var errAptSyntax = errors.New("it is not apt's syntax")

// aptValue is what an option is after a file of apt.conf(5) was read, where it was value before. Names have no case; blocks
// nest, and each adds a part to the name.
func aptValue(content, option, value string) (string, error) {
	var scopes [][]string
	words := make([]string, 0, 2) // An option and its value.
	for content != "" {
		token, rest, err := aptToken(content)
		if err != nil {
			return "", err
		}
		content = rest
		if (token == ";" || token == "}") && len(words) > 0 { // The last option of a block may go without its semicolon.
			if strings.EqualFold(aptName(scopes, words[0]), option) {
				value = strings.Join(words[1:], " ")
			}
			words = nil
		}
		switch token {
		case "", ";":
		case "{":
			scopes, words = append(scopes, words), nil
		case "}":
			if len(scopes) == 0 {
				return "", errAptSyntax
			}
			scopes = scopes[:len(scopes)-1]
		default:
			words = append(words, token)
		}
	}
	if len(scopes) > 0 || len(words) > 0 {
		return "", errAptSyntax
	}
	return value, nil
}

func aptName(scopes [][]string, name string) string {
	var parts []string
	for _, scope := range scopes {
		parts = append(parts, strings.Join(scope, " "))
	}
	return strings.Join(append(parts, name), "::")
}

// aptToken is the first token: a word, a text without its quotes, or one of { } ;. Empty: blanks or a comment.
func aptToken(content string) (token, rest string, err error) {
	const blanks, ends = " \t\r\n", " \t\r\n{};\""
	switch {
	case strings.ContainsRune(blanks, rune(content[0])):
		return "", strings.TrimLeft(content, blanks), nil
	case strings.HasPrefix(content, "//"), content[0] == '#':
		_, rest, _ = strings.Cut(content, "\n")
		return "", rest, nil
	case strings.HasPrefix(content, "/*"):
		_, rest, found := strings.Cut(content, "*/")
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
		return text, rest, nil
	}
	end := strings.IndexAny(content, ends)
	if end < 0 {
		end = len(content)
	}
	return content[:end], content[end:], nil
}
