package promserver_test

import (
	"strings"
	"testing"

	"github.com/reboot-operator/reboot-operator/hack/promserver"
)

func TestServer(t *testing.T) {
	server := promserver.Start(t, "", "global: {scrape_interval: 1s}\n")
	got, err := server.Query(t.Context(), `label_replace(vector(3), "answered", "yes", "", "")`)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Metric["answered"] != "yes" || got[0].Value[1] != "3" {
		t.Errorf("got %v", got)
	}
	if _, err := server.Query(t.Context(), "sum("); err == nil || !strings.Contains(err.Error(), "parse error") {
		t.Errorf("a query that cannot be read: %v", err)
	}
}
