package rack

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ReadDockerfile makes an image of a stage of a Dockerfile that copies one program: its user and entrypoint are those of the
// stage, the program is the file of that name in a folder. The base image's own files are left out.
func ReadDockerfile(dockerfile, stage, name, programs string) (Image, error) {
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		return Image{}, fmt.Errorf("reading stage %s: %w", stage, err)
	}
	image := Image{Name: name}
	within := false
	for line := range strings.Lines(string(text)) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		fields := strings.Fields(rest)
		switch {
		case instruction == "FROM":
			within = len(fields) == 3 && fields[2] == stage
		case !within:
		case instruction == "USER":
			image.User = rest
		case instruction == "COPY":
			image.Program = filepath.Join(programs, filepath.Base(fields[len(fields)-1]))
		case instruction == "ENTRYPOINT":
			if err := json.Unmarshal([]byte(rest), &image.Entrypoint); err != nil {
				return Image{}, fmt.Errorf("reading the entrypoint of stage %s: %w", stage, err)
			}
		}
	}
	if image.Program == "" || len(image.Entrypoint) == 0 {
		return Image{}, fmt.Errorf("%s has no stage %s with COPY and ENTRYPOINT", dockerfile, stage)
	}
	return image, nil
}
