package scale

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// parseHeld reads from a heap profile of net/http/pprof with debug=1 how many bytes of heap and stacks are in use. The numbers
// of runtime.MemStats stand at its end.
func parseHeld(profile []byte) (int64, error) {
	var heap, stack int64
	lines := bufio.NewScanner(bytes.NewReader(profile))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, "# ") {
			continue
		}
		// Lines of another form are of no interest.
		_, _ = fmt.Sscanf(line, "# HeapAlloc = %d", &heap)
		_, _ = fmt.Sscanf(line, "# Stack = %d /", &stack)
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("reading a heap profile: %w", err)
	}
	if heap == 0 || stack == 0 {
		return 0, errors.New("reading a heap profile: it does not say what is in use")
	}
	return heap + stack, nil
}
