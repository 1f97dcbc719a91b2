package lifecycle

import (
	"bytes"
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

func parseLog(args ...string) (*Log, error) {
	var l Log
	flags := flag.NewFlagSet("program", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	l.Bind(flags)
	return &l, flags.Parse(args)
}

func TestLog_FormatsAndLevels(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"by default": {nil, []string{`"level":"INFO","msg":"Granted","Node":{"name":"n1"}}`}},
		"JSON, all of it": {
			[]string{"--log-format=json", "--log-level=debug"},
			[]string{`"level":"INFO","msg":"Granted","Node":{"name":"n1"}}`, `"level":"DEBUG","msg":"The Node has changed","reason":"conflict"}`},
		},
		"text, all of it": {
			[]string{"--log-format=text", "--log-level=DEBUG"},
			[]string{`level=INFO msg=Granted Node.name=n1`, `level=DEBUG msg="The Node has changed" reason=conflict`},
		},
		"errors alone": {[]string{"--log-level=error"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := parseLog(tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			log := logr.FromSlogHandler(l.handler(&out))
			log.Info("Granted", "Node", klog.KRef("", "n1"))
			log.V(4).Info("The Node has changed", "reason", "conflict")
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if len(tc.want) == 0 && out.Len() > 0 || len(tc.want) > 0 && len(lines) != len(tc.want) {
				t.Fatalf("%q, want %q", lines, tc.want)
			}
			for i, want := range tc.want {
				if !strings.HasSuffix(lines[i], want) {
					t.Errorf("%q does not end with %q", lines[i], want)
				}
			}
		})
	}
}

func TestLog_RefusesUnknownValues(t *testing.T) {
	for arg, want := range map[string]string{
		"--log-format=xml": `invalid value "xml" for flag -log-format: must be json or text`,
		"--log-level=loud": `invalid value "loud" for flag -log-level`,
	} {
		if _, err := parseLog(arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
}

func TestLog_DropsNoLineOfAFleet(t *testing.T) {
	var out bytes.Buffer
	log := logr.FromSlogHandler(new(Log).handler(&out))
	for range 1000 {
		log.Info("Granted", "Node", klog.KRef("", "n1"))
	}
	if got := bytes.Count(out.Bytes(), []byte("\n")); got != 1000 {
		t.Errorf("%d of 1000 lines are written", got)
	}
}
