package host

import "strings"

// maxLabelBytes is what the API server allows in a label's value.
const maxLabelBytes = 63

// LabelValue makes a valid label value of any text: each run of characters that a label cannot hold becomes one
// underscore, what is not a letter or digit at either end goes, and the rest is cut to 63 bytes. Empty: nothing is left.
func LabelValue(s string) string {
	var b strings.Builder
	gap := false
	for _, r := range s {
		if !isAlphanumeric(r) && r != '-' && r != '_' && r != '.' {
			gap = true
			continue
		}
		if gap {
			b.WriteByte('_')
			gap = false
		}
		b.WriteRune(r)
	}
	value := strings.TrimLeftFunc(b.String(), isPunctuation)
	return strings.TrimRightFunc(value[:min(len(value), maxLabelBytes)], isPunctuation)
}

func isPunctuation(r rune) bool { return !isAlphanumeric(r) }
