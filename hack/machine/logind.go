package machine

import (
	"context"

	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Logind is a machine's logind as seen by one run of an agent in the same process. It implements
// reboot.Logind. Nobody is logged in.
type Logind struct {
	Machine *Machine
	// Pass is called before each answer. Its error is the answer.
	Pass func(context.Context) error
	// Call is called for each call of Reboot.
	Call func() error
}

// BlockInhibitors implements reboot.Logind.
func (l Logind) BlockInhibitors(ctx context.Context) ([]host.Inhibitor, error) {
	err := l.Pass(ctx)
	if read(l.Machine, func() bool { return l.Machine.inhibited }) {
		return []host.Inhibitor{{Who: "a fault", Why: "it goes on"}}, err
	}
	return nil, err
}

// Refuses implements reboot.Logind.
func (l Logind) Refuses(ctx context.Context) (string, error) { return "", l.Pass(ctx) }

// Logins implements reboot.Logind.
func (l Logind) Logins(ctx context.Context) ([]host.Login, error) { return nil, l.Pass(ctx) }

// GoingDown implements reboot.Logind.
func (l Logind) GoingDown(ctx context.Context) (bool, error) {
	err := l.Pass(ctx)
	return l.Machine.IsLeaving(), err
}

// Reboot implements reboot.Logind.
func (l Logind) Reboot(ctx context.Context, _ v1alpha1.Obstacle) error {
	if err := l.Pass(ctx); err != nil {
		return err
	}
	return l.Call()
}

// Inhibit holds a block inhibitor on the machine, or releases it.
func (m *Machine) Inhibit(hold bool) { m.set(func() { m.inhibited = hold }) }

// Alone is a reboot.HostCoordinators on a host that nothing else reboots.
type Alone struct{}

// Other implements reboot.HostCoordinators.
func (Alone) Other(context.Context) (*host.Coordinator, error) { return nil, nil }
