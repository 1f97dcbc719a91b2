package v1alpha1

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time in the spec, such as 90s, 1h30m, 30d or 1d12h.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=32
type Duration struct {
	time.Duration `json:"-"`
}

// ParseDuration parses a duration that may begin with days of 24 hours, such as 90s, 1h30m, 30d or
// 1d12h. It accepts everything that the API server accepts in a spec.
func ParseDuration(text string) (time.Duration, error) {
	invalid := fmt.Errorf("%q is not a duration such as 90s, 6h, 2d or 1d12h", text)
	days, rest, found := strings.Cut(text, "d")
	if !found {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, invalid
		}
		return d, nil
	}
	n, err := strconv.ParseUint(days, 10, 16) // 65,535 days do not overflow
	if err != nil {
		return 0, invalid
	}
	d := time.Duration(n) * 24 * time.Hour
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 || d+more < d {
		return 0, invalid
	}
	return d + more, nil
}

// UnmarshalJSON parses the duration.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	parsed, err := ParseDuration(text)
	d.Duration = parsed
	return err
}

// MarshalJSON writes the duration without days, so that programs of earlier versions can read it too.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }
