package scan

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func archive(t *testing.T, files ...tar.Header) []byte {
	t.Helper()
	return archiveOf(t, files, nil)
}

func archiveOf(t *testing.T, files []tar.Header, contents map[string][]byte) []byte {
	t.Helper()
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, file := range files {
		file.Size = int64(len(contents[file.Name]))
		if err := w.WriteHeader(&file); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(contents[file.Name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func packed(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// image is an archive with layers, and with what else an archive holds.
func image(t *testing.T, layers ...[]byte) []byte {
	t.Helper()
	files := []tar.Header{{Name: "oci-layout"}, {Name: "blobs/sha256/"}}
	contents := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	for i, layer := range layers {
		name := "blobs/sha256/" + string(rune('a'+i))
		files = append(files, tar.Header{Name: name})
		contents[name] = layer
	}
	return archiveOf(t, files, contents)
}

func TestArchive(t *testing.T) {
	program := tar.Header{Name: "manager", Typeflag: tar.TypeReg, Mode: 0o755}
	cases := map[string]struct {
		files []tar.Header
		want  []Finding
	}{
		"one program, and what distroless has": {
			files: []tar.Header{
				program,
				{Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755},
				{Name: "./etc/passwd", Typeflag: tar.TypeReg, Mode: 0o644},
				{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
				{Name: "var/lib/dpkg/status.d/base", Typeflag: tar.TypeReg, Mode: 0o644},
			},
		},
		"a setuid program": {
			files: []tar.Header{{Name: "usr/bin/passwd", Typeflag: tar.TypeReg, Mode: 0o4755}},
			want:  []Finding{{"/usr/bin/passwd", "setuid"}},
		},
		"a setgid program with capabilities": {
			files: []tar.Header{{
				Name: "ping", Typeflag: tar.TypeReg, Mode: 0o2755, Format: tar.FormatPAX,
				PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "x"},
			}},
			want: []Finding{{"/ping", "setgid"}, {"/ping", "file capabilities"}},
		},
		"shells, by whatever kind of file": {
			files: []tar.Header{
				{Name: "bin/busybox", Typeflag: tar.TypeReg, Mode: 0o755},
				{Name: "./bin/sh", Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777},
				{Name: "bin/ash", Typeflag: tar.TypeLink, Linkname: "bin/busybox", Mode: 0o755},
			},
			want: []Finding{{"/bin/busybox", "a shell"}, {"/bin/sh", "a shell"}, {"/bin/ash", "a shell"}},
		},
		"a package manager and an interpreter": {
			files: []tar.Header{{Name: "usr/bin/dpkg", Typeflag: tar.TypeReg, Mode: 0o755}, {Name: "usr/bin/perl", Typeflag: tar.TypeReg, Mode: 0o755}},
			want:  []Finding{{"/usr/bin/dpkg", "a package manager"}, {"/usr/bin/perl", "a tool of intruders"}},
		},
		"a file that anybody may write": {
			files: []tar.Header{{Name: "manager", Typeflag: tar.TypeReg, Mode: 0o777}},
			want:  []Finding{{"/manager", "anybody may write it"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, layer := range [][]byte{archive(t, tc.files...), packed(t, archive(t, tc.files...))} {
				got, err := Archive(bytes.NewReader(image(t, archive(t, program), layer)))
				if err != nil {
					t.Fatal(err)
				}
				if got.Layers != 2 {
					t.Errorf("%d layers", got.Layers)
				}
				if diff := cmp.Diff(tc.want, got.Findings); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// What cannot be read is never taken for clean.
func TestArchive_Errors(t *testing.T) {
	whole := image(t, archive(t, tar.Header{Name: "manager", Mode: 0o755}))
	for name, text := range map[string][]byte{
		"nothing": nil, "no archive": []byte(strings.Repeat("x", 2000)), "no layer": image(t), "cut off": whole[:2000],
		"a layer that is cut off": image(t, packed(t, whole)[:40]),
	} {
		if got, err := Archive(bytes.NewReader(text)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
