package embedded

import "context"

// StartServer starts what suites run against: etcd and an API server, with the project's kind and no controller. The caller stops it.
func StartServer(ctx context.Context) (*Cluster, error) {
	c, err := Start(ctx, Options{ServerOnly: true, Bare: true})
	if err != nil {
		return nil, err
	}
	if err := c.InstallKind(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// test is a [testing.T], or Ginkgo's: programs use this package, too, and have no business with package testing.
type test interface {
	Helper()
	Context() context.Context
	Cleanup(stop func())
	Fatal(args ...any)
}

// StartServerFor is StartServer for a test, which ends where it fails, and the API server with it.
func StartServerFor(t test) *Cluster {
	t.Helper()
	c, err := StartServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c
}
