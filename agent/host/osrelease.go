package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// OSRelease names the operating system of the host.
type OSRelease struct {
	// ID of os-release(5), for example flatcar. "linux" where it is not set, as that page specifies.
	ID string
	// Version is VERSION_ID, or VERSION without one. Empty: a rolling release.
	Version string
	// Group is the update group (channel) of Flatcar or CoreOS. Empty: unknown, or another system.
	Group string
}

// ReadOSRelease reads os-release and the update group of the host whose file system is mounted at root ("/" is this
// one). A host without any os-release is an error; one without a group is not.
func ReadOSRelease(root string) (OSRelease, error) {
	release, err := readBelow(root, "/etc/os-release")
	if errors.Is(err, fs.ErrNotExist) {
		release, err = readBelow(root, "/usr/lib/os-release")
	}
	if err != nil {
		return OSRelease{}, fmt.Errorf("reading os-release below %q: %w", root, err)
	}
	group, err := readGroup(root)
	if err != nil {
		return OSRelease{}, fmt.Errorf("reading the update group below %q: %w", root, err)
	}
	values := parseAssignments(release)
	return OSRelease{
		ID:      cmp.Or(values["ID"], "linux"),
		Version: cmp.Or(values["VERSION_ID"], values["VERSION"]),
		Group:   group,
	}, nil
}

// readGroup reads GROUP of update.conf: the administrator's file in /etc overrules the one that came with the system.
func readGroup(root string) (string, error) {
	group := ""
	for _, name := range []string{
		"/usr/share/coreos/update.conf", "/usr/share/flatcar/update.conf",
		"/etc/coreos/update.conf", "/etc/flatcar/update.conf",
	} {
		content, err := readBelow(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		group = cmp.Or(parseAssignments(content)["GROUP"], group)
	}
	return group, nil
}

// parseAssignments reads the shell assignments of os-release(5) and update.conf. The last one of a name wins. Lines that
// are no assignment are passed over.
func parseAssignments(content string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(content) {
		key, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if found && isName(key) {
			values[key] = unquote(value)
		}
	}
	return values
}

// isName distinguishes a shell variable's name from a comment or a stray line.
func isName(key string) bool {
	return key != "" && isMadeOf(key, "_")
}

// unquote takes the quotes off a value, one pair around all of it, and resolves backslashes as a shell does there. A
// quote without its partner is text.
func unquote(value string) string {
	value = strings.TrimSpace(value)
	quoted := len(value) >= 2 && value[0] == value[len(value)-1]
	switch {
	case quoted && value[0] == '\'':
		return value[1 : len(value)-1]
	case quoted && value[0] == '"':
		return unescape(value[1:len(value)-1], "\"\\$`")
	default:
		return unescape(value, "")
	}
}

// unescape drops each backslash before one of these characters, or before any if there are none, and keeps the others.
func unescape(value, special string) string {
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] == '\\' && i+1 < len(value) && (special == "" || strings.IndexByte(special, value[i+1]) >= 0) {
			i++
		}
		b.WriteByte(value[i])
	}
	return b.String()
}

// maxLabelBytes is what the API server allows in a label's value.
const maxLabelBytes = 63

// LabelValue makes a valid label value of any text. Each run of characters that a label cannot hold becomes one underscore. What is
// not a letter or digit at either end goes, and the rest is cut to 63 bytes. Empty: nothing is left.
func LabelValue(s string) string {
	const punctuation = "-_."
	runs := strings.FieldsFunc(s, func(r rune) bool { return !strings.ContainsRune(alphanumeric+punctuation, r) })
	value := strings.TrimLeft(strings.Join(runs, "_"), punctuation)
	return strings.TrimRight(value[:min(len(value), maxLabelBytes)], punctuation)
}
