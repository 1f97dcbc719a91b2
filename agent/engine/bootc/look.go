package bootc

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/reboot-operator/reboot-operator/agent/engine/folder"
)

// Paths below the host's root. The files in /run disappear with the boot.
const (
	ostreeBooted    = "run/ostree-booted"
	ostreeStaged    = "run/ostree/staged-deployment"
	ostreeLocked    = "run/ostree/staged-deployment-locked"
	composefsStaged = "run/composefs/staged-deployment"
	program         = "usr/bin/bootc"
	// rpmOSTree serves the same deployments, and engine rpm-ostree reports them.
	rpmOSTree = "usr/bin/rpm-ostree"
)

// maxBytes is far more than any of the files has.
const maxBytes = 1 << 20

// host reads the host's file system and does not follow a symbolic link that leaves it.
type host struct{ root *os.Root }

// look finds the running and the staged deployment. auto is true if --engines does not name the
// engine; in that case a host with rpm-ostree is left to that engine.
func look(hostRoot, cmdline string, auto bool) observation {
	root, err := os.OpenRoot(hostRoot)
	if err != nil {
		return observation{missing: true}
	}
	defer func() { _ = root.Close() }()
	parameters, err := kernelParameters(cmdline)
	if err != nil {
		return observation{unreadable: "the kernel's command line: " + folder.Reason(err)}
	}
	unreadable := ""
	has := func(name string) bool {
		_, err := root.Lstat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			unreadable = fmt.Sprintf("/%s: %s", name, folder.Reason(err))
		}
		return err == nil
	}
	h, composefs := host{root}, composefsBooted(parameters)
	ours := (!auto || has(program) && !has(rpmOSTree)) && (composefs != "" || has(ostreeBooted))
	switch {
	case unreadable != "":
		return observation{unreadable: unreadable}
	case !ours:
		return observation{missing: true}
	case composefs != "" && parameters["ostree"] == "":
		return h.composefs(composefs)
	}
	return h.ostree(parameters["ostree"])
}

// ostree reads the deployments in bootc's older store. booted is the kernel parameter, a link to
// the booted deployment.
func (h host) ostree(booted string) observation {
	var o observation
	if target, err := h.root.Readlink(path.Join("sysroot", booted)); err == nil {
		o.booted = h.ostreeDeployment(path.Base(path.Dir(path.Dir(target))), path.Base(target))
	}
	content, err := h.read(ostreeStaged)
	if errors.Is(err, fs.ErrNotExist) {
		return o
	}
	if err == nil {
		o.staged, err = h.ostreeStaged(content)
	}
	if err != nil {
		o.unreadable = fmt.Sprintf("/%s: %s", ostreeStaged, folder.Reason(err))
	}
	return o
}

// StagedIsLocked reports whether the deployment staged in the ostree store is locked, as far as the
// host's /run can be read.
func StagedIsLocked(hostRoot string) bool {
	root, err := os.OpenRoot(hostRoot)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	h := host{root}
	content, err := h.read(ostreeStaged)
	if err != nil {
		return false
	}
	staged, err := h.ostreeStaged(content)
	return err == nil && staged.locked
}

var errNoTarget = errors.New("it does not name a deployment")

func (h host) ostreeStaged(content []byte) (*deployment, error) {
	staged, err := dictionary(content)
	if err != nil {
		return nil, err
	}
	target, err := dictionary(staged["target"].data)
	if err != nil {
		return nil, err
	}
	name, stateroot := target["name"].text(), target["osname"].text()
	checksum, _, _ := strings.Cut(name, ".")
	if staged["target"].kind != "a{sv}" || !isHex(checksum) || !fs.ValidPath(stateroot) || !fs.ValidPath(name) {
		return nil, errNoTarget
	}
	d := h.ostreeDeployment(stateroot, name)
	_, err = h.root.Lstat(ostreeLocked)
	d.locked = staged["locked"].isTrue() || err == nil
	return &d, nil
}

// ostreeDeployment adds the image and digest from /sysroot, if it is mounted.
func (h host) ostreeDeployment(stateroot, name string) deployment {
	d := deployment{id: name}
	checksum, _, _ := strings.Cut(name, ".")
	if !isHex(checksum) {
		return d
	}
	d.image, _ = h.origin(path.Join("sysroot/ostree/deploy", stateroot, "deploy", name+".origin"))
	commit, err := h.read(path.Join("sysroot/ostree/repo/objects", checksum[:2], checksum[2:]+".commit"))
	if err != nil {
		return d
	}
	if metadata, err := commitMetadata(commit); err == nil {
		d.digest = digestOf(metadata["ostree.manifest-digest"].text())
	}
	return d
}

// composefsBooted returns the booted composefs image according to the kernel parameters, or an
// empty text. Newer releases of bootc write composefs.digest=v1-sha512-12:… instead of composefs=…,
// or before it. A leading question mark makes the check optional.
func composefsBooted(parameters map[string]string) string {
	image := strings.TrimPrefix(cmp.Or(parameters["composefs.digest"], parameters["composefs"]), "?")
	return image[strings.LastIndexByte(image, ':')+1:]
}

// composefs reads the deployments in bootc's newer store. booted is the kernel parameter.
func (h host) composefs(booted string) observation {
	o := observation{booted: h.composefsDeployment(booted)}
	content, err := h.read(composefsStaged)
	if errors.Is(err, fs.ErrNotExist) {
		return o
	}
	var staged struct {
		ID     string `json:"depl_id"`
		Locked bool   `json:"finalization_locked"`
	}
	if err == nil {
		err = json.Unmarshal(content, &staged)
	}
	if err == nil && !isHex(staged.ID) {
		err = errNoTarget
	}
	if err != nil {
		o.unreadable = fmt.Sprintf("/%s: %s", composefsStaged, folder.Reason(err))
		return o
	}
	d := h.composefsDeployment(staged.ID)
	d.locked = staged.Locked
	o.staged = &d
	return o
}

func (h host) composefsDeployment(id string) deployment {
	d := deployment{id: id}
	if isHex(id) {
		d.image, d.digest = h.origin(path.Join("sysroot/state/deploy", id, id+".origin"))
	}
	return d
}

// origin returns the image and digest that a deployment came from, or empty texts if the file
// cannot be read, for example because /sysroot is not mounted.
func (h host) origin(name string) (image, digest string) {
	content, err := h.read(name)
	if err != nil {
		return "", ""
	}
	for line := range strings.Lines(string(content)) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), "="); strings.TrimSpace(key) {
		case "container-image-reference":
			image = withoutTransport(strings.TrimSpace(value))
		case "manifest_digest":
			digest = digestOf(strings.TrimSpace(value))
		}
	}
	return image, digest
}

// withoutTransport returns the image of a reference such as
// ostree-unverified-registry:quay.io/a/b:c, ostree-remote-registry:fedora:quay.io/a/b:c or
// ostree-image-signed:docker://quay.io/a/b:c.
func withoutTransport(reference string) string {
	if _, image, found := strings.Cut(reference, "docker://"); found {
		return image
	}
	kind, image, _ := strings.Cut(reference, ":")
	switch {
	case strings.HasPrefix(kind, "ostree-remote-"):
		_, image, _ = strings.Cut(image, ":")
	case !strings.HasPrefix(kind, "ostree-"):
		return reference
	}
	return strings.TrimPrefix(strings.TrimPrefix(image, "registry:"), "docker://")
}

// digestOf returns text if it is the digest of a manifest, else an empty text.
func digestOf(text string) string {
	if digits, found := strings.CutPrefix(text, "sha256:"); !found || !isHex(digits) {
		return ""
	}
	return text
}

func (h host) read(name string) ([]byte, error) { return folder.Read(h.root, name, maxBytes) }

// kernelParameters returns the kernel parameters that have a value.
func kernelParameters(file string) (map[string]string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	parameters := map[string]string{}
	for parameter := range strings.FieldsSeq(string(content)) {
		if key, value, found := strings.Cut(parameter, "="); found {
			parameters[key] = value
		}
	}
	return parameters, nil
}
