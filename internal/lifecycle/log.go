package lifecycle

import (
	"errors"
	"flag"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Log configures how a program logs. The zero value logs JSON, without debug lines.
type Log struct {
	text  bool
	level slog.Level
}

// Bind adds the flags that change the configuration.
func (l *Log) Bind(flags *flag.FlagSet) {
	flags.Func("log-format", "Format of the log: json or text (default json).", l.setFormat)
	flags.TextVar(&l.level, "log-level", slog.LevelInfo, "Minimum level to log: debug, info, warn or error.")
}

func (l *Log) setFormat(format string) error {
	if format != "json" && format != "text" {
		return errors.New("must be json or text")
	}
	l.text = format == "text"
	return nil
}

// Start makes controller-runtime and client-go log to w. It writes every line, while
// controller-runtime's own logger drops equal messages beyond a hundred a second, and thousands of
// nodes cause more.
func (l *Log) Start(w io.Writer) {
	log := logr.FromSlogHandler(l.handler(w))
	ctrl.SetLogger(log)
	klog.SetLogger(log)
}

func (l *Log) handler(w io.Writer) slog.Handler {
	options := &slog.HandlerOptions{Level: l.level}
	if l.text {
		return slog.NewTextHandler(w, options)
	}
	return slog.NewJSONHandler(w, options)
}
