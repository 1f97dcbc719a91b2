package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/godbus/dbus/v5"
)

func TestErrorName(t *testing.T) {
	const failed = "org.freedesktop.DBus.Error.Failed"
	cases := map[string]struct {
		err  error
		want string
	}{
		"no answer":        {errors.New("timeout"), ""},
		"no error":         {nil, ""},
		"a name":           {fmt.Errorf("asking: %w", dbus.Error{Name: "org.example.No_1", Body: []any{"pid 7"}}), "org.example.No_1"},
		"logind refuses":   {fmt.Errorf("calling: %w", &RefusedError{Name: "org.example.No_1", Message: "pid 7"}), "org.example.No_1"},
		"no name":          {dbus.Error{}, failed},
		"a sentence":       {dbus.Error{Name: "org.example. Reported in boot 1"}, failed},
		"not even UTF-8":   {dbus.Error{Name: "org.example.\xff"}, failed},
		"an endless name":  {dbus.Error{Name: "org." + strings.Repeat("x", 252)}, failed},
		"the longest name": {dbus.Error{Name: "org." + strings.Repeat("x", 251)}, "org." + strings.Repeat("x", 251)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ErrorName(tc.err); got != tc.want {
				t.Errorf("name %q, want %q", got, tc.want)
			}
		})
	}
}

func TestIsBroken(t *testing.T) {
	cases := map[string]struct {
		err  error
		want bool
	}{
		"no error":           {nil, false},
		"an answer":          {fmt.Errorf("asking: %w", dbus.Error{Name: "org.example.No"}), false},
		"logind refuses":     {&RefusedError{Name: "org.example.No"}, false},
		"no answer in time":  {fmt.Errorf("asking: %w", context.DeadlineExceeded), false},
		"it cannot be sent":  {fmt.Errorf("asking: %w", syscall.EPIPE), true},
		"it ended meanwhile": {fmt.Errorf("asking: %w", io.EOF), true},
		"it had ended":       {dbus.ErrClosed, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := IsBroken(tc.err); got != tc.want {
				t.Errorf("broken %v, want %v", got, tc.want)
			}
		})
	}
}
