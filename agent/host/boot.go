package host

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// BootID reads the boot ID, which the kernel generates at each boot, from a file such as
// /proc/sys/kernel/random/boot_id. After white space is trimmed, it must be 1 to 64 letters, digits
// and dashes. Anything else is an error, because an unreliable boot ID must never look like a
// reboot.
func BootID(path string) (string, error) {
	content, err := ReadFile(os.OpenFile, path, 4*v1alpha1.MaxBootIDBytes)
	if err != nil {
		return "", fmt.Errorf("reading the boot ID: %w", err)
	}
	id, err := parseBootID(string(content))
	if err != nil {
		return "", fmt.Errorf("reading the boot ID from %q: %w", path, err)
	}
	return id, nil
}

func parseBootID(content string) (string, error) {
	id := strings.TrimSpace(content)
	if id == "" {
		return "", errors.New("it is empty")
	}
	if len(id) > v1alpha1.MaxBootIDBytes {
		return "", fmt.Errorf("it is longer than %d bytes", v1alpha1.MaxBootIDBytes)
	}
	if !isMadeOf(id, "-") {
		return "", fmt.Errorf("%q has characters other than letters, digits and dashes", id)
	}
	return id, nil
}

const alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// isMadeOf reports whether a text consists of letters, digits and the given other characters.
func isMadeOf(text, others string) bool { return strings.Trim(text, alphanumeric+others) == "" }

// Uptime reads the uptime of the host from a file such as /proc/uptime. The kernel counts it by a
// monotonic clock, so it does not depend on the wall clock. Anything but a number of seconds that
// fits a duration is an error.
func Uptime(path string) (time.Duration, error) {
	content, err := ReadFile(os.OpenFile, path, 128)
	if err != nil {
		return 0, fmt.Errorf("reading the uptime: %w", err)
	}
	uptime, err := parseUptime(string(content))
	if err != nil {
		return 0, fmt.Errorf("reading the uptime from %q: %w", path, err)
	}
	return uptime, nil
}

// parseUptime reads the first number in the file. The second number is the idle time of the
// processors.
func parseUptime(content string) (time.Duration, error) {
	number, _, found := strings.Cut(content, " ")
	if !found {
		return 0, errors.New("it is not two numbers")
	}
	seconds, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%.64q is not a number", number)
	}
	if !(seconds >= 0 && seconds < math.MaxInt64/float64(time.Second)) { // NaN fails both comparisons
		return 0, fmt.Errorf("%.64q is not an uptime in seconds", number)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
