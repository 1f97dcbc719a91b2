package window_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

func edited(edit func(*v1alpha1.Window)) []v1alpha1.Window {
	return []v1alpha1.Window{daily("22:00", "4h", "UTC", edit)}
}

func inZone(zone string) []v1alpha1.Window { return []v1alpha1.Window{daily("22:00", "4h", zone)} }

// Every error has a sentence for people, and comes with a Schedule that is closed (behaviour 34).
func TestCompile_Errors_Behaviour34(t *testing.T) {
	const (
		startError    = " must be a time of day as HH:MM, from 00:00 to 23:59"
		durationError = " must be more than 0 and at most 7d"
		zoneError     = " is not an IANA time zone name such as UTC or Europe/Berlin"
	)
	for name, tc := range map[string]struct {
		windows   []v1alpha1.Window
		blackouts []v1alpha1.Blackout
		want      string
	}{
		"start absent":        {edited(func(w *v1alpha1.Window) { w.Start = "" }), nil, `window "w": start ""` + startError},
		"start of one digit":  {edited(func(w *v1alpha1.Window) { w.Start = "7:00" }), nil, `window "w": start "7:00"` + startError},
		"start of 24:00":      {edited(func(w *v1alpha1.Window) { w.Start = "24:00" }), nil, `window "w": start "24:00"` + startError},
		"start of 12:60":      {edited(func(w *v1alpha1.Window) { w.Start = "12:60" }), nil, `window "w": start "12:60"` + startError},
		"start with seconds":  {edited(func(w *v1alpha1.Window) { w.Start = "12:00:00" }), nil, `window "w": start "12:00:00"` + startError},
		"start with a space":  {edited(func(w *v1alpha1.Window) { w.Start = " 2:00" }), nil, `window "w": start " 2:00"` + startError},
		"duration absent":     {edited(lasting(0)), nil, `window "w": duration 0s` + durationError},
		"duration below 0":    {edited(lasting(-time.Hour)), nil, `window "w": duration -1h0m0s` + durationError},
		"duration over 168h":  {edited(lasting(168*time.Hour + 1)), nil, `window "w": duration 168h0m0.000000001s` + durationError},
		"unknown day":         {edited(on("Mon", "Monday")), nil, `window "w": day "Monday" must be Mon, Tue, Wed, Thu, Fri, Sat or Sun`},
		"week 0":              {edited(weeks(1, 0)), nil, `window "w": weeksOfMonth 0 must be 1 to 5, or -1 for the last`},
		"week 6":              {edited(weeks(6)), nil, `window "w": weeksOfMonth 6 must be 1 to 5, or -1 for the last`},
		"week -2":             {edited(weeks(-2)), nil, `window "w": weeksOfMonth -2 must be 1 to 5, or -1 for the last`},
		"name absent":         {edited(named("")), nil, `window "": name is missing`},
		"name taken":          {append(inZone("UTC"), inZone("UTC")...), nil, `window "w": name is used twice`},
		"unknown zone":        {inZone("Europe/Atlantis"), nil, `window "w": loading time zone: unknown time zone Europe/Atlantis`},
		"zone Local":          {inZone("Local"), nil, `window "w": "Local"` + zoneError},
		"zone local":          {inZone("local"), nil, `window "w": "local"` + zoneError},
		"zone localtime":      {inZone("localtime"), nil, `window "w": "localtime"` + zoneError},
		"zone posixrules":     {inZone("posixrules"), nil, `window "w": "posixrules"` + zoneError},
		"zone of leap time":   {inZone("right/Europe/Berlin"), nil, `window "w": "right/Europe/Berlin"` + zoneError},
		"zone of a copy":      {inZone("posix/Europe/Berlin"), nil, `window "w": "posix/Europe/Berlin"` + zoneError},
		"zone as an offset":   {inZone("+05:30"), nil, `window "w": "+05:30"` + zoneError},
		"zone upwards":        {inZone("../zoneinfo/UTC"), nil, `window "w": "../zoneinfo/UTC"` + zoneError},
		"zone up and down":    {inZone("Europe/../UTC"), nil, `window "w": "Europe/../UTC"` + zoneError},
		"zone as a path":      {inZone("/usr/share/zoneinfo/UTC"), nil, `window "w": "/usr/share/zoneinfo/UTC"` + zoneError},
		"zone as a folder":    {inZone("Europe/"), nil, `window "w": "Europe/"` + zoneError},
		"zone of Windows":     {inZone(`Europe\Berlin`), nil, `window "w": "Europe\\Berlin"` + zoneError},
		"zone with a space":   {inZone("UTC "), nil, `window "w": "UTC "` + zoneError},
		"from absent":         {nil, []v1alpha1.Blackout{blackout("b", "", "2026-01-02", "")}, `blackout "b": from "" must be a date as YYYY-MM-DD, or from and to as MM-DD`},
		"from no date":        {nil, []v1alpha1.Blackout{blackout("b", "2026-02-29", "2026-03-02", "")}, `blackout "b": from "2026-02-29" must be a date as YYYY-MM-DD, or from and to as MM-DD`},
		"to absent":           {nil, []v1alpha1.Blackout{blackout("b", "2026-01-01", "", "")}, `blackout "b": to "" must be a date as YYYY-MM-DD, or from and to as MM-DD`},
		"to with a time":      {nil, []v1alpha1.Blackout{blackout("b", "2026-01-01", "2026-01-02T00:00:00Z", "")}, `blackout "b": to "2026-01-02T00:00:00Z" must be a date as YYYY-MM-DD, or from and to as MM-DD`},
		"to with from":        {nil, []v1alpha1.Blackout{blackout("b", "2026-01-01", "2026-01-01", "")}, `blackout "b": to 2026-01-01 must be after from 2026-01-01: it is the first day on which reboots may start again`},
		"from without a year": {nil, []v1alpha1.Blackout{blackout("b", "12-24", "2026-12-25", "")}, `blackout "b": from "12-24" must be a date as YYYY-MM-DD, or from and to as MM-DD`},
		"no such day":         {nil, []v1alpha1.Blackout{blackout("b", "02-30", "03-01", "")}, `blackout "b": from "02-30" must be a date as YYYY-MM-DD, or from and to as MM-DD`},
		"a whole year":        {nil, []v1alpha1.Blackout{blackout("b", "12-24", "12-24", "")}, `blackout "b": to 12-24 must be another day than from: it is the first day on which reboots may start again`},
		"yearly in Local":     {nil, []v1alpha1.Blackout{blackout("b", "12-24", "12-25", "Local")}, `blackout "b": "Local"` + zoneError},
		"blackout in Local":   {inZone("UTC"), []v1alpha1.Blackout{blackout("b", "2026-01-01", "2026-01-02", "Local")}, `blackout "b": "Local"` + zoneError},
		"blackout no name":    {nil, []v1alpha1.Blackout{blackout("", "2026-01-01", "2026-01-02", "")}, `blackout "": name is missing`},
		"blackout twice": {nil, []v1alpha1.Blackout{
			blackout("b", "2026-01-01", "2026-01-02", ""), blackout("b", "2026-02-01", "2026-02-02", ""),
		}, `blackout "b": name is used twice`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := window.Compile(tc.windows, tc.blackouts)
			if err == nil {
				t.Fatal("Compile gave no error")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(window.State{}, s.At(at("2026-01-05 23:00"))); diff != "" {
				t.Errorf("the Schedule returned with an error is not closed (-want +got):\n%s", diff)
			}
		})
	}
}

func lasting(d time.Duration) option {
	return func(w *v1alpha1.Window) { w.Duration = v1alpha1.Duration{Duration: d} }
}

// State.Blackout distinguishes a window from a blackout of the same name.
func TestCompile_WindowAndBlackoutMayShareAName(t *testing.T) {
	compile(t, edited(named("freeze")), blackout("freeze", "2026-01-01", "2026-01-02", ""))
}

func TestCompile_KnowsEveryZone(t *testing.T) {
	for _, zone := range zones {
		if _, err := window.Compile(inZone(zone), nil); err != nil {
			t.Errorf("Compile: %v", err)
		}
	}
}
