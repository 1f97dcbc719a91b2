package reboot

import (
	"testing"

	"k8s.io/client-go/rest"
)

func TestAssembly_Identities(t *testing.T) {
	config := &rest.Config{Host: "https://api", QPS: -1}
	for asNode, want := range map[bool]string{true: "system:node:n1", false: ""} {
		node, own := Assembly{Config: config, AsNode: asNode, Node: "n1"}.identities()
		if node.Impersonate.UserName != want || own.Impersonate.UserName != "" {
			t.Errorf("acts as %q on the Node and as %q else, want %q and itself", node.Impersonate.UserName, own.Impersonate.UserName, want)
		}
		if node.QPS != 5 || node.Burst != 10 || config.QPS != -1 {
			t.Errorf("limits %v, %v; the caller's config has %v", node.QPS, node.Burst, config.QPS)
		}
	}
}
