package command

import (
	"os/exec"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// TestRestConfig: no client of the plugin holds its requests back. 10,000 nodes are that many writes.
func TestRestConfig(t *testing.T) {
	s := &Session{Config: genericclioptions.NewConfigFlags(false)}
	s.Config.APIServer = new("https://api")
	config, err := s.restConfig()
	if err != nil {
		t.Fatal(err)
	}
	if config.QPS >= 0 {
		t.Errorf("the limit is %v requests a second", config.QPS)
	}
}

// A shell has to take what a command to copy names as it is, be it the name of a context with spaces.
func TestQuoted_IsOneWordOfAShell(t *testing.T) {
	for _, word := range []string{"prod", "arn:aws:eks:eu-central-1:1234:cluster/prod", "/home/me/.kube/config", "my cluster", "it's", "$HOME", "a;b", "`id`", "*"} {
		printed, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+quoted(word)).Output()
		if err != nil || string(printed) != word {
			t.Errorf("%q becomes %q (%v)", word, printed, err)
		}
	}
}
