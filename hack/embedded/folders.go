package embedded

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

const (
	// prefix begins the name of every folder of a cluster. The process ID of the starter, a dot and
	// a random suffix follow.
	prefix = "reboot-operator."
	// memory is an in-memory file system, if there is one: etcd's data does not need a disk here.
	memory = "/dev/shm"
)

// folders holds the paths of a cluster's files.
type folders struct {
	// Dir contains the logs (NAME.log), the kubeconfigs and the audit log. Stop removes it unless
	// KeepLogs was called.
	Dir  string
	kept bool
	// data is the folder of etcd's data.
	data string
}

// KeepLogs keeps Dir after Stop, and returns its path.
func (f *folders) KeepLogs() string {
	f.kept = true
	return f.Dir
}

// makeFolders creates Dir and the folder for etcd's data. It also removes the folders of killed
// starters: their processes died with them, their files did not.
func (f *folders) makeFolders() error {
	parent := memory
	if _, err := os.Stat(memory); err != nil {
		parent = os.TempDir()
	}
	sweep(os.TempDir(), parent)
	var err error
	if f.Dir, err = makeFolder(os.TempDir()); err != nil {
		return err
	}
	f.data, err = makeFolder(parent)
	return err
}

func makeFolder(parent string) (string, error) {
	dir, err := os.MkdirTemp(parent, fmt.Sprintf("%s%d.", prefix, os.Getpid()))
	if err != nil {
		return "", fmt.Errorf("making a folder: %w", err)
	}
	return dir, nil
}

func (f *folders) removeFolders() {
	// The next start removes what this one cannot.
	_ = os.RemoveAll(f.data)
	if !f.kept {
		_ = os.RemoveAll(f.Dir)
	}
}

func sweep(parents ...string) {
	for _, parent := range parents {
		// The pattern is valid, so Glob cannot fail.
		folders, _ := filepath.Glob(filepath.Join(parent, prefix+"*"))
		for _, folder := range folders {
			if process.StarterIsGone(prefix, filepath.Base(folder)) {
				_ = os.RemoveAll(folder)
			}
		}
	}
}

// write writes a file in Dir and returns its path.
func (f *folders) write(name string, content []byte) (string, error) {
	path := filepath.Join(f.Dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("writing %s: %w", name, err)
	}
	return path, nil
}
