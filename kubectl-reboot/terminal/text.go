package terminal

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	eastasian "golang.org/x/text/width"

	"github.com/reboot-operator/reboot-operator/internal/message"
)

// Style is what a text means.
type Style string

// Styles, as SGR parameters.
const (
	Plain  Style = ""
	Strong Style = "1"
	Quiet  Style = "2"
	Good   Style = "32"
	Wait   Style = "33"
	Busy   Style = "36"
	Away   Style = "35"
	Bad    Style = "1;31"
)

// Theme paints, or not.
type Theme struct {
	// Color is off in pipes and with NO_COLOR.
	Color bool
}

// Look is how something is shown.
type Look struct {
	Theme Theme
	// Width is the terminal's, to which tables are cut and text is wrapped. 0: a pipe, nothing is.
	Width int
	// Wide shows more columns, and every name.
	Wide bool
	// Zone is the one in which instants are shown.
	Zone *time.Location
	// Flags follow the commands of kubectl and Helm that are shown, such as --context=prod: they go to the cluster that was asked.
	Flags string
}

// Command is a command to copy. Helm calls the context otherwise.
func (l Look) Command(command string) string {
	switch {
	case l.Flags == "":
	case strings.HasPrefix(command, "kubectl "):
		command += " " + l.Flags
	case strings.HasPrefix(command, "helm "):
		command += " " + strings.Replace(l.Flags, "--context=", "--kube-context=", 1)
	}
	return l.Theme.Paint(Strong, command)
}

// Paint gives a text its style, and leaves it none of its own.
func (t Theme) Paint(style Style, text string) string {
	text = Harmless(text)
	if !t.Color || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Fit makes a text exactly so many columns wide. What is cut off ends in an ellipsis.
func Fit(text string, width int) string {
	text = Cut(text, width)
	return text + strings.Repeat(" ", max(0, width-textWidth(text)))
}

// Cut makes a text at most so many columns wide. What is cut off ends in an ellipsis.
func Cut(text string, width int) string {
	if width <= 0 {
		return ""
	}
	if textWidth(text) <= width {
		return text
	}
	used := 0
	end := strings.IndexFunc(text, func(r rune) bool {
		used += runeWidth(r)
		return used >= width
	})
	return strings.TrimRight(text[:end], " ") + "…"
}

// textWidth is how many columns of a terminal a text takes.
func textWidth(text string) int {
	sum := 0
	for _, r := range text {
		sum += runeWidth(r)
	}
	return sum
}

// runeWidth is how many columns a character takes: letters of East Asia and most pictures two, what joins the letter before none.
func runeWidth(r rune) int {
	if unicode.In(harmless(r), unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch eastasian.LookupRune(r).Kind() {
	case eastasian.EastAsianWide, eastasian.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// Seconds is a duration for people, in at most six columns: 0.3 s, 99.9 s, 2m05s, 3h07m.
func Seconds(d time.Duration) string {
	whole := d.Round(time.Second)
	switch {
	case d < 99950*time.Millisecond:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case whole < time.Hour:
		return fmt.Sprintf("%dm%02ds", whole/time.Minute, whole%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", whole/time.Hour, whole%time.Hour/time.Minute)
}

// Some names the first five, and how many more there are.
func Some(names []string) string {
	return message.Names(names, 5)
}
