package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine/rpmostree"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

// zincatiName is the name of the engine of machines that Zincati updates.
const zincatiName = "zincati"

const zincatiService = "zincati.service"

// zincatiConfig is the configuration that an administrator adds.
const zincatiConfig = `[updates]
strategy = "fleet_lock"

[updates.fleet_lock]
base_url = "http://10.3.0.15/"
`

// Zincati plays Zincati on a machine. It stages a locked deployment, asks a FleetLock server, waits
// until no users are logged in, and finalizes the deployment through the D-Bus API of rpm-ostree,
// which reboots the machine. It is faster than the real one.
type Zincati struct {
	host   *Host
	daemon *hosttest.RPMOSTree
	units  *hosttest.Units
	// servers returns the addresses at which managers serve FleetLock.
	servers func() []string

	mu       sync.Mutex
	sessions int
	stop     context.CancelFunc
	ended    sync.WaitGroup
	// answers holds the received answers, such as "pre-reboot 409 window_closed: no window is
	// open".
	answers []string
}

const (
	// zincatiRetry is the wait after a refusal, plus up to a tenth. The real one waits for 300 s.
	zincatiRetry = 2 * time.Second
	// zincatiPostpones is the interval at which it checks for logged-in users. The real one checks
	// ten times, every 60 s.
	zincatiPostpones = 200 * time.Millisecond
)

// installZincati plays Fedora CoreOS as shipped, with additional configuration.
func installZincati(h *Host) (updates, error) {
	daemon, err := hosttest.InstallRPMOSTree(h.Bus, hosttest.Deployment{Version: ostreeBefore, Booted: true})
	if err != nil {
		return updates{}, err
	}
	units, err := hosttest.StartUnits(h.Bus)
	if err != nil {
		return updates{}, err
	}
	h.Zincati = &Zincati{host: h, daemon: daemon, units: units, servers: func() []string { return nil }}
	folder := filepath.Join(h.Root, "etc", "zincati", "config.d")
	err = errors.Join(os.MkdirAll(folder, 0o700), os.MkdirAll(filepath.Join(h.Root, "usr"), 0o700),
		os.WriteFile(filepath.Join(folder, "90-reboot-operator.toml"), []byte(zincatiConfig), 0o600))
	// The agent looks for rpm-ostree's socket below the root of the machine.
	socket := filepath.Dir(strings.TrimPrefix(h.Bus.Address(), "unix:path="))
	err = errors.Join(err, os.MkdirAll(filepath.Join(h.Root, filepath.Dir(socket)), 0o700), os.Symlink(socket, filepath.Join(h.Root, socket)))
	daemon.OnFinalize(func() { go h.Zincati.systemctlReboot() })
	units.Set(zincatiService, "active")
	return updates{stage: h.Zincati.Stage, boot: func() error {
		h.Zincati.Kill()
		daemon.Boot()
		err := units.Start()
		units.Set(zincatiService, "active")
		h.Zincati.Start()
		return err
	}}, err
}

// Stage stages a locked update, and starts to finalize it.
func (z *Zincati) Stage() error {
	err := errors.Join(z.daemon.Start(), z.daemon.SetDeployments(
		hosttest.Deployment{Version: ostreeAfter, Staged: true, Locked: true}, hosttest.Deployment{Version: ostreeBefore, Booted: true}))
	z.Restart()
	return err
}

// LogIn makes users appear logged in for the given number of checks.
func (z *Zincati) LogIn(looks int) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.sessions = looks
}

// Answers returns the answers so far.
func (z *Zincati) Answers() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return append([]string(nil), z.answers...)
}

// Finalized counts how often a deployment was finalized.
func (z *Zincati) Finalized() int {
	calls := slices.DeleteFunc(z.daemon.Calls(), func(call string) bool { return call != "FinalizeDeployment" })
	return len(calls)
}

// Restart does the same as systemctl restart: a waiting request is lost.
func (z *Zincati) Restart() {
	z.Kill()
	z.Start()
}

// Start starts it, if it is not running.
func (z *Zincati) Start() {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	z.stop = stop
	z.ended.Go(func() { z.run(ctx) })
}

// Kill kills it.
func (z *Zincati) Kill() {
	z.mu.Lock()
	stop := z.stop
	z.stop = nil
	z.mu.Unlock()
	if stop != nil {
		stop()
		z.ended.Wait()
	}
}

// run reports the steady state, and then finalizes the staged deployment once it is allowed to.
func (z *Zincati) run(ctx context.Context) {
	steady := false
	for wait := time.Duration(0); lifecycle.Pause(ctx, clock.RealClock{}, wait); {
		list := z.daemon.Deployments()
		wait = zincatiRetry + rand.N(zincatiRetry/10)
		switch {
		case !steady:
			if steady = z.ask(ctx, "steady-state"); steady {
				wait = 0
			}
		case len(list) == 0 || !list[0].Locked:
			wait = zincatiPostpones
		case !z.ask(ctx, "pre-reboot"):
		case z.waitsForUsers():
			wait = zincatiPostpones
		default:
			z.finalize(ctx)
		}
	}
}

func (z *Zincati) waitsForUsers() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.sessions--
	return z.sessions >= 0
}

// ask sends a request to one of the replicas, as kube-proxy selects it.
func (z *Zincati) ask(ctx context.Context, call string) bool {
	servers := z.servers()
	if len(servers) == 0 {
		return false
	}
	body := fmt.Appendf(nil, `{"client_params":{"id":%q,"group":"default"}}`, z.host.Name)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+servers[rand.N(len(servers))]+"/v1/"+call, bytes.NewReader(body))
	if err != nil {
		return false
	}
	request.Header.Set("fleet-lock-protocol", "true")
	response, err := (&http.Client{Timeout: 30 * time.Minute}).Do(request)
	if err != nil {
		z.note(call + " " + err.Error())
		return false
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		z.note(call + " 200")
		return true
	}
	var no struct{ Kind, Value string }
	if err := json.NewDecoder(response.Body).Decode(&no); err != nil {
		z.note(call + " " + err.Error())
		return false
	}
	z.note(strings.TrimSpace(fmt.Sprintf("%s %d %s: %s", call, response.StatusCode, no.Kind, no.Value)))
	return false
}

func (z *Zincati) note(answer string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.answers = append(z.answers, answer)
}

// finalize does the same as `rpm-ostree finalize-deployment CHECKSUM`.
func (z *Zincati) finalize(ctx context.Context) {
	client := rpmostree.Finalizer{Connect: host.SystemBus(z.host.Bus.Address()), Clock: clock.RealClock{}, HostRoot: "/"}
	if err := client.Finalize(ctx); err != nil {
		z.note("finalize-deployment: " + err.Error())
	}
}

// systemctlReboot reboots the machine like rpm-ostree after it has finalized a deployment.
func (z *Zincati) systemctlReboot() {
	conn, err := dbus.Connect(z.host.Bus.Address())
	if err != nil {
		z.note("reboot: " + err.Error())
		return
	}
	defer conn.Close()
	if err := conn.Object("org.freedesktop.login1", "/org/freedesktop/login1").Call("org.freedesktop.login1.Manager.Reboot", 0, false).Err; err != nil {
		z.note("reboot: " + err.Error())
	}
}
