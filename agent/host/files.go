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

// maxFileBytes is far more than an os-release or an update.conf needs.
const maxFileBytes = 64 << 10

// readBelow reads a file of the host. It resolves symbolic links below root, because they belong to
// the host and not to this container, which has an os-release, too.
func readBelow(root, name string) (string, error) {
	file, err := securejoin.SecureJoin(root, name)
	if err != nil {
		return "", err
	}
	content, err := ReadFile(os.OpenFile, file, maxFileBytes)
	return string(content), err
}

// ReadFile reads at most limit bytes of a file, because files of the host are not trusted. open is
// os.OpenFile, or the method of an os.Root.
func ReadFile(open func(string, int, os.FileMode) (*os.File, error), name string, limit int64) ([]byte, error) {
	file, err := openFile(open, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, limit))
}

// openFile opens a regular file. It does not block on a named pipe.
func openFile(open func(string, int, os.FileMode) (*os.File, error), name string) (*os.File, error) {
	file, err := open(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file; remove it")
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// readConfiguration reads a file of the host. A file that does not exist is empty. A link to
// /dev/null, which disables a file of a package, is empty, too.
func readConfiguration(root, name string) (string, error) {
	file, err := securejoin.SecureJoin(root, name)
	if err == nil && file == filepath.Join(root, os.DevNull) {
		return "", nil
	}
	var content []byte
	if err == nil {
		content, err = ReadFile(os.OpenFile, file, maxFileBytes)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", isMissing(root, file)
	case err != nil:
		return "", fmt.Errorf("reading %s of the host: %w", name, WithoutPath(err))
	case len(content) == maxFileBytes:
		return "", fmt.Errorf("reading %s of the host: it has more than %d bytes", name, maxFileBytes)
	}
	return string(content), nil
}

// isMissing returns nil if the file really does not exist on the host. It may exist if the first
// folder of the path, such as /etc or the target of a link, is not mounted into the agent's pod.
func isMissing(root, file string) error {
	below, err := filepath.Rel(root, file)
	if err != nil {
		return err
	}
	top, _, _ := strings.Cut(below, "/")
	if _, err := os.Stat(filepath.Join(root, top)); err != nil {
		return fmt.Errorf("reading /%s of the host: %w", top, WithoutPath(err))
	}
	return nil
}

// configurationsIn returns the files in a folder of the host in their order, or an empty list if
// the folder does not exist.
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
		return nil, fmt.Errorf("reading %s of the host: %w", folder, WithoutPath(err))
	}
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() {
			names = append(names, path.Join(folder, entry.Name()))
		}
	}
	return names, nil
}

// WithoutPath returns the cause of a file error without its path, which is a path in this container
// and not on the host.
func WithoutPath(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}
