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
	// ID is the ID of os-release(5), for example flatcar. As specified there, it defaults to
	// "linux".
	ID string
	// Version is VERSION_ID, or else VERSION. It is empty for a rolling release.
	Version string
	// Group is the update group (channel) of Flatcar or CoreOS. It is empty if it is unknown, and
	// on other systems.
	Group string
}

// ReadOSRelease reads os-release and the update group of the host whose file system is mounted at
// root ("/" means this file system). A host without os-release is an error, but a host without a
// group is not.
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

// readGroup reads GROUP of update.conf. The administrator's file in /etc overrides the one of the
// system.
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

// parseAssignments reads the shell assignments of os-release(5) and update.conf. The last
// assignment to a name wins. Other lines are ignored.
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

// isName reports whether the key is the name of a shell variable.
func isName(key string) bool {
	return key != "" && isMadeOf(key, "_")
}

// unquote removes one pair of quotes around the value and resolves backslashes as a shell does. An
// unpaired quote is text.
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

// unescape removes each backslash before one of the special characters, or before any character if
// special is empty. It keeps other backslashes.
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

// maxLabelBytes is the longest label value that the API server accepts.
const maxLabelBytes = 63

// LabelValue turns any text into a valid label value. Each run of invalid characters becomes one
// underscore. Characters other than letters and digits are trimmed from both ends, and the rest is
// cut to 63 bytes. The result is empty if nothing is left.
func LabelValue(s string) string {
	const punctuation = "-_."
	runs := strings.FieldsFunc(s, func(r rune) bool { return !strings.ContainsRune(alphanumeric+punctuation, r) })
	value := strings.TrimLeft(strings.Join(runs, "_"), punctuation)
	return strings.TrimRight(value[:min(len(value), maxLabelBytes)], punctuation)
}
