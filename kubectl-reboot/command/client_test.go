package command

import (
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
