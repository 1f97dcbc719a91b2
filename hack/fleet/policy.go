package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// Policy is the RebootPolicy that governs the fleet.
type Policy struct {
	// Name is the name of the policy.
	Name string

	fleet *Fleet
}

// ApplyPolicy applies config/samples/minimal.yaml with an adapted spec, and waits until the manager
// acts on it.
func (f *Fleet) ApplyPolicy(ctx context.Context, adapt func(*v1alpha1.RebootPolicySpec)) (*Policy, error) {
	sample := filepath.Join(testenv.Root(), "config", "samples", "minimal.yaml")
	text, err := os.ReadFile(sample)
	if err != nil {
		return nil, fmt.Errorf("reading the sample: %w", err)
	}
	var object v1alpha1.RebootPolicy
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		return nil, fmt.Errorf("reading %s: %w", sample, err)
	}
	adapt(&object.Spec)
	p := &Policy{Name: object.Name, fleet: f}
	if err := f.Client.Create(ctx, &object); err != nil {
		return nil, fmt.Errorf("creating policy %s: %w", p.Name, err)
	}
	return p, f.Await(ctx, "the manager to act on policy "+p.Name, func() bool {
		status, err := p.Status(ctx)
		return err == nil && int(status.Nodes.Reporting) == len(f.Hosts)
	})
}

// Status returns the status that the manager reports.
func (p *Policy) Status(ctx context.Context) (v1alpha1.RebootPolicyStatus, error) {
	var policy v1alpha1.RebootPolicy
	if err := p.fleet.Client.Get(ctx, types.NamespacedName{Name: p.Name}, &policy); err != nil {
		return policy.Status, fmt.Errorf("reading policy %s: %w", p.Name, err)
	}
	return policy.Status, nil
}

// Finished reports whether every node has been rebooted and is back in service, and the ledger is
// empty.
func (p *Policy) Finished(ctx context.Context) bool {
	if !p.fleet.all(func(v timeline.View) bool { return v.State == timeline.Back && !v.Needs }) {
		return false
	}
	status, err := p.Status(ctx)
	return err == nil && len(status.Grants) == 0 && status.Nodes.RebootRequired == 0
}
