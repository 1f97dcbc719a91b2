// Package scan looks into archives of container images for what a static program does not need.
package scan

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
)

// Finding is a file in an image that a program on its own does not need.
type Finding struct {
	// Path is the file's, in the image.
	Path string
	// Why states what is wrong with it.
	Why string
}

// Image is what was seen in an archive.
type Image struct {
	// Layers and Files are how many there are; Files counts no folders.
	Layers, Files int
	// Findings are in the order of the archive.
	Findings []Finding
}

var (
	shells   = []string{"sh", "ash", "bash", "busybox", "csh", "dash", "fish", "ksh", "mksh", "rbash", "tcsh", "toybox", "zsh"}
	managers = []string{"apk", "apt", "apt-get", "dnf", "dpkg", "ipkg", "microdnf", "opkg", "pacman", "rpm", "tdnf", "yum", "zypper"}
	others   = []string{"curl", "lua", "nc", "ncat", "node", "perl", "php", "python", "python3", "ruby", "socat", "ssh", "su", "sudo", "wget"}
)

// Archive reads an image archive: of the OCI image layout, or as `docker save` writes it. Each member that is itself an
// archive is a layer, packed or not. What a later layer removes counts too: it is in the image all the same. An archive
// without layers is an error.
func Archive(archive io.Reader) (Image, error) {
	var image Image
	members := tar.NewReader(archive)
	for {
		header, err := members.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Image{}, fmt.Errorf("reading the archive: %w", err)
		}
		layer, err := layerOf(members)
		if err != nil {
			return Image{}, fmt.Errorf("unpacking %s: %w", header.Name, err)
		}
		if layer == nil {
			continue
		}
		if err := image.scan(layer); err != nil {
			return Image{}, fmt.Errorf("reading layer %s: %w", header.Name, err)
		}
	}
	if image.Layers == 0 {
		return Image{}, errors.New("the archive holds no layer")
	}
	return image, nil
}

// layerOf is nil where the member is no archive.
func layerOf(member io.Reader) (*tar.Reader, error) {
	buffered := bufio.NewReaderSize(member, 1024)
	if start, _ := buffered.Peek(2); bytes.Equal(start, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, err
		}
		buffered = bufio.NewReaderSize(unpacked, 1024)
	}
	const at = 257 // of the magic in the first header of a tar archive
	if start, _ := buffered.Peek(at + 5); len(start) < at+5 || string(start[at:]) != "ustar" {
		return nil, nil
	}
	return tar.NewReader(buffered), nil
}

func (i *Image) scan(layer *tar.Reader) error {
	i.Layers++
	for {
		header, err := layer.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag == tar.TypeDir {
			continue
		}
		i.Files++
		for _, why := range judge(header) {
			i.Findings = append(i.Findings, Finding{Path: "/" + path.Clean(header.Name), Why: why})
		}
	}
}

// judge reports everything that is wrong with a file.
func judge(file *tar.Header) []string {
	const setuid, setgid, anybodyWrites, executable = 0o4000, 0o2000, 0o002, 0o111
	var why []string
	if file.Mode&setuid != 0 {
		why = append(why, "setuid")
	}
	if file.Mode&setgid != 0 {
		why = append(why, "setgid")
	}
	if _, found := file.PAXRecords["SCHILY.xattr.security.capability"]; found {
		why = append(why, "file capabilities")
	}
	if file.Typeflag == tar.TypeReg && file.Mode&anybodyWrites != 0 {
		why = append(why, "anybody may write it")
	}
	if file.Typeflag == tar.TypeReg && file.Mode&executable == 0 {
		return why
	}
	name := path.Base(file.Name)
	for kind, names := range map[string][]string{"a shell": shells, "a package manager": managers, "a tool of intruders": others} {
		if slices.Contains(names, name) {
			why = append(why, kind)
		}
	}
	return why
}
