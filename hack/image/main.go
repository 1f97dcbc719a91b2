// Program image looks into archives of container images for what a static program does not need: setuid and setgid files,
// file capabilities, shells, package managers, interpreters. It reads what `docker save` writes, and OCI archives; and where
// there is no container engine it puts together what the Dockerfile adds to its base.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/reboot-operator/reboot-operator/hack/image/scan"
	"github.com/reboot-operator/reboot-operator/hack/rack"
)

func main() {
	programs := flag.String("programs", "", "The folder of manager and agent: scan what the Dockerfile in this folder makes of them, without its base.")
	flag.Parse()
	if *programs != "" {
		os.Exit(assemble("Dockerfile", *programs, os.Stdout))
	}
	os.Exit(run(flag.Args(), os.Stdout))
}

// assemble scans the images of a Dockerfile as far as they can be made without its base. It returns what run does.
func assemble(dockerfile, programs string, out io.Writer) int {
	folder, err := os.MkdirTemp("", "images")
	if err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	var paths []string
	for _, stage := range []string{"manager", "agent"} {
		image, err := rack.ReadDockerfile(dockerfile, stage, stage, programs)
		if err != nil {
			fmt.Fprintln(out, err)
			return 1
		}
		path := filepath.Join(folder, stage+".tar")
		if err := image.Write(path); err != nil {
			fmt.Fprintln(out, err)
			return 1
		}
		paths = append(paths, path)
	}
	return run(paths, out)
}

// run returns the exit status: 0, or 1 where something was found or could not be read, or 3 where there is nothing to scan.
func run(paths []string, out io.Writer) int {
	if len(paths) == 0 {
		fmt.Fprintln(out, "NOT SCANNED: no image archive was given. docker save IMG -o dist/manager.tar; make scan IMAGES=dist/manager.tar")
		return 3
	}
	status := 0
	for _, path := range paths {
		image, err := scanFile(path)
		if err != nil {
			fmt.Fprintf(out, "%s: %v\n", path, err)
			status = 1
			continue
		}
		fmt.Fprintf(out, "%s: %d layers, %d files, %d findings\n", path, image.Layers, image.Files, len(image.Findings))
		for _, f := range image.Findings {
			fmt.Fprintf(out, "  %s: %s\n", f.Path, f.Why)
			status = 1
		}
	}
	return status
}

func scanFile(path string) (scan.Image, error) {
	file, err := os.Open(path)
	if err != nil {
		return scan.Image{}, err
	}
	defer file.Close()
	return scan.Archive(file)
}
