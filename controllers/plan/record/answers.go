package record

import (
	"fmt"
	"strings"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// maxAnswer limits, in bytes, a hook's answer in a condition's message.
const maxAnswer = 128

// Answers returns the hooks that have not approved. It reports invalid values, because nothing else
// tells the user why they do not count.
func Answers(annotations map[string]string, keys []v1alpha1.AnnotationKey) (waiting, refused []string) {
	for _, key := range keys {
		switch value, there := annotations[string(key)]; {
		case value == Yes:
		case isNo(value):
			refused = append(refused, string(key)+": "+message.Shorten(maxAnswer, value))
		case there:
			waiting = append(waiting, fmt.Sprintf(`%s (is %q; valid answers are "true", "false" and "failed: why")`, key, message.Shorten(maxAnswer, value)))
		default:
			waiting = append(waiting, string(key))
		}
	}
	return waiting, refused
}

// Yes is the answer that approves.
const Yes = "true"

func isNo(value string) bool { return value == "false" || strings.HasPrefix(value, "failed") }

// IsAnswer reports whether an annotation's value may be the answer of a hook. Users choose the
// keys.
func IsAnswer(value string) bool { return value == Yes || isNo(value) }
