package host

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Uptime reads how long the host has been up from a file such as /proc/uptime. The kernel counts it by a clock that nobody sets,
// so a wrong time of day changes nothing. Anything but a number of seconds that a duration can hold is an error, and 0.
func Uptime(path string) (time.Duration, error) {
	content, err := readSome(path, 128)
	if err != nil {
		return 0, fmt.Errorf("reading the uptime: %w", err)
	}
	uptime, err := parseUptime(content)
	if err != nil {
		return 0, fmt.Errorf("reading the uptime from %q: %w", path, err)
	}
	return uptime, nil
}

// parseUptime reads the first of the numbers in the file; the second one is how long the processors were idle.
func parseUptime(content string) (time.Duration, error) {
	number, _, found := strings.Cut(content, " ")
	if !found {
		return 0, errors.New("it is not two numbers")
	}
	seconds, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%.64q is no number", number)
	}
	if !(seconds >= 0 && seconds < math.MaxInt64/float64(time.Second)) { // NaN is neither
		return 0, fmt.Errorf("%.64q seconds are no uptime", number)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
