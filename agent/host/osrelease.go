package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// OSRelease names the operating system of the host.
type OSRelease struct {
	// ID of os-release(5), for example flatcar. "linux" where it is not set, as that page says.
	ID string
	// Version is VERSION_ID, or VERSION without one. Empty: a rolling release.
	Version string
	// Group is the update group (channel) of Flatcar or CoreOS. Empty: unknown, or another system.
	Group string
}

// Where the host keeps them; a later file overrules an earlier one.
var (
	osReleaseFiles  = []string{"/usr/lib/os-release", "/etc/os-release"}
	updateConfFiles = []string{
		"/usr/share/coreos/update.conf", "/usr/share/flatcar/update.conf",
		"/etc/coreos/update.conf", "/etc/flatcar/update.conf",
	}
)

// maxFileBytes is far more than an os-release or an update.conf has.
const maxFileBytes = 64 << 10

// ReadOSRelease reads os-release and the update group of the host whose file system is mounted at root ("/" is this
// one). A host without any os-release is an error; one without a group is not.
func ReadOSRelease(root string) (OSRelease, error) {
	release, err := overlay(root, osReleaseFiles[1:])
	if err == nil && release == nil {
		release, err = overlay(root, osReleaseFiles[:1])
	}
	if err != nil {
		return OSRelease{}, fmt.Errorf("reading os-release below %q: %w", root, err)
	}
	if release == nil {
		return OSRelease{}, fmt.Errorf("reading os-release below %q: %w", root, fs.ErrNotExist)
	}
	update, err := overlay(root, updateConfFiles)
	if err != nil {
		return OSRelease{}, fmt.Errorf("reading the update group below %q: %w", root, err)
	}
	return OSRelease{
		ID:      firstOf(release["ID"], "linux"),
		Version: firstOf(release["VERSION_ID"], release["VERSION"]),
		Group:   update["GROUP"],
	}, nil
}

// overlay reads assignments from several files. Nil: none of them exists.
func overlay(root string, names []string) (map[string]string, error) {
	var values map[string]string
	for _, name := range names {
		content, err := readBelow(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if values == nil {
			values = map[string]string{}
		}
		parseAssignments(content, values)
	}
	return values, nil
}

// readBelow reads a host's file. A symbolic link is the host's: its target counts from root, not from this container's
// own file system, which has an os-release too.
func readBelow(root, name string) (string, error) {
	const maxLinks = 8
	for range maxLinks {
		target, err := os.Readlink(filepath.Join(root, name))
		if err != nil {
			return readSome(filepath.Join(root, name), maxFileBytes)
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(name), target)
		}
		name = path.Join("/", target)
	}
	return "", fmt.Errorf("%q: too many symbolic links", name)
}

// parseAssignments reads the shell assignments of os-release(5) and update.conf. The last one of a name wins, and so
// does an empty one. Lines that are no assignment are passed over.
func parseAssignments(content string, into map[string]string) {
	for line := range strings.Lines(content) {
		key, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if found && isName(key) {
			into[key] = unquote(value)
		}
	}
}

// isName tells a shell variable's name from a comment or a stray line.
func isName(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool { return !isAlphanumeric(r) && r != '_' })
}

// unquote takes the quotes off a value: one pair around all of it. Within double quotes, and without any, a backslash
// keeps the next character from being special. A quote without its partner is taken as text.
func unquote(value string) string {
	value = strings.TrimSpace(value)
	quoted := len(value) >= 2 && value[0] == value[len(value)-1]
	if quoted && value[0] == '\'' {
		return value[1 : len(value)-1]
	}
	if quoted && value[0] == '"' {
		value = value[1 : len(value)-1]
	}
	return unescape(value)
}

func unescape(value string) string {
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] == '\\' && i+1 < len(value) {
			i++
		}
		b.WriteByte(value[i])
	}
	return b.String()
}

func firstOf(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}
