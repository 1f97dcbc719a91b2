package terminal

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
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

// Paint gives a text its style.
func (t Theme) Paint(style Style, text string) string {
	if !t.Color || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Fit makes a text exactly so many columns wide. What is cut off ends in an ellipsis.
func Fit(text string, width int) string {
	text = Cut(text, width)
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// Cut makes a text at most so many columns wide. What is cut off ends in an ellipsis.
func Cut(text string, width int) string {
	if width <= 0 {
		return ""
	}
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return strings.TrimRight(string(runes[:width-1]), " ") + "…"
}

// Seconds is a duration for people: 0.3 s, 12.0 s, 2 min 05 s.
func Seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	whole := d.Round(time.Second)
	return fmt.Sprintf("%d min %02d s", int(whole.Minutes()), int(whole.Seconds())%60)
}
