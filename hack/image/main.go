// Program image looks into archives of container images for what a static program does not need: setuid and setgid files,
// file capabilities, shells, package managers, interpreters. It reads what `docker save` writes, and OCI archives.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout))
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

func scanFile(path string) (Image, error) {
	file, err := os.Open(path)
	if err != nil {
		return Image{}, err
	}
	defer file.Close()
	return Scan(file)
}
