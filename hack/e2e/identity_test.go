package e2e_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// testifyIdentities looks at the API server's audit log: since an instant every write of an agent was made as a Node, each
// of the nodes made some, and the operator was refused nothing.
func testifyIdentities(s *site, since time.Time) {
	GinkgoHelper()
	requests, err := s.cluster.Requests(since, time.Now())
	Expect(err).NotTo(HaveOccurred())
	writers := map[string]int{}
	for _, r := range requests {
		if !strings.HasPrefix(r.User, "system:serviceaccount:"+operator+":") {
			continue
		}
		Expect(r.Code).NotTo(BeElementOf(401, 403), "%s %s %s/%s by %s as %s", r.Verb, r.Resource, r.Namespace, r.Name, r.User, r.As)
		if strings.HasSuffix(r.User, ":"+agents) && r.IsWrite() {
			Expect(r.As).To(HavePrefix("system:node:"), "%s %s %s/%s", r.Verb, r.Resource, r.Namespace, r.Name)
			writers[strings.TrimPrefix(r.As, "system:node:")]++
		}
	}
	for _, m := range s.rack.Machines {
		Expect(writers).To(HaveKey(m.Name))
	}
	s.logf("agents wrote as their Nodes and nobody was refused anything: %v", writers)
}
