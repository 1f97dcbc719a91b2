package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	securejoin "github.com/cyphar/filepath-securejoin"
)

// maxFileBytes is far more than an os-release or an update.conf has.
const maxFileBytes = 64 << 10

// readBelow reads a host's file. Symbolic links are the host's: they count from root, not from this container's own file system, which has
// an os-release too.
func readBelow(root, name string) (string, error) {
	file, err := securejoin.SecureJoin(root, name)
	if err != nil {
		return "", err
	}
	return readSome(file, maxFileBytes)
}

// readSome reads at most limit bytes of a file: what is on the host is not trusted.
func readSome(path string, limit int64) (string, error) {
	// Opening a pipe would wait for its other end.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	if err := isFile(file); err != nil {
		return "", err
	}
	content, err := io.ReadAll(io.LimitReader(file, limit))
	return string(content), err
}

func isFile(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no regular file; remove it")
	}
	return nil
}

// readConfiguration reads a file of the host; one that does not exist is empty, and so is a link to /dev/null, by which a file is
// turned off that a package brings.
func readConfiguration(root, name string) (string, error) {
	file, err := securejoin.SecureJoin(root, name)
	if err == nil && file == filepath.Join(root, os.DevNull) {
		return "", nil
	}
	content := ""
	if err == nil {
		content, err = readSome(file, maxFileBytes)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", isMissing(root, file)
	case err != nil:
		return "", fmt.Errorf("reading %s of the host: %w", name, withoutPath(err))
	case len(content) == maxFileBytes:
		return "", fmt.Errorf("reading %s of the host: it has more than %d bytes", name, maxFileBytes)
	}
	return content, nil
}

// isMissing is nil where the host does not have what was not found. It may have it where the first folder on the way, such as /etc
// or that which a link leads to, is not mounted into the agent's pod.
func isMissing(root, file string) error {
	below, err := filepath.Rel(root, file)
	if err != nil {
		return err
	}
	top, _, _ := strings.Cut(below, "/")
	if _, err := os.Stat(filepath.Join(root, top)); err != nil {
		return fmt.Errorf("reading /%s of the host: %w", top, withoutPath(err))
	}
	return nil
}

// configurationsIn are the files in a folder of the host, in their order; none where there is no such folder.
func configurationsIn(root, folder string) ([]string, error) {
	target, err := securejoin.SecureJoin(root, folder)
	var entries []os.DirEntry
	if err == nil {
		entries, err = os.ReadDir(target)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, isMissing(root, target)
	case err != nil:
		return nil, fmt.Errorf("reading %s of the host: %w", folder, withoutPath(err))
	}
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() {
			names = append(names, path.Join(folder, entry.Name()))
		}
	}
	return names, nil
}

// withoutPath is what went wrong with a file: the path is this container's, not the host's.
func withoutPath(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}
