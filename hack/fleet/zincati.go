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
	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
)

// zincatiName is the engine of machines that Zincati updates.
const zincatiName = "zincati"

const zincatiService = "zincati.service"

// zincatiConfig is the fragment that an administrator adds.
const zincatiConfig = `[updates]
strategy = "fleet_lock"

[updates.fleet_lock]
base_url = "http://10.3.0.15/"
`

// Zincati is a played Zincati on a machine. It stages a deployment that is locked, asks a FleetLock server, waits for users that
// are logged in, and finalizes through rpm-ostree's D-Bus, which reboots the machine. It does so faster than the real one.
type Zincati struct {
	host   *Host
	daemon *hosttest.RPMOSTree
	units  *hosttest.Units
	// servers returns where the replicas of the manager serve FleetLock.
	servers func() []string

	mu       sync.Mutex
	sessions int
	stop     context.CancelFunc
	ended    sync.WaitGroup
	// answers are what it has been answered, such as "pre-reboot 409 window_closed: no window is open".
	answers []string
}

const (
	// zincatiRetry is how soon it asks again after a no, plus up to a tenth. The real one waits for 300 s.
	zincatiRetry = 2 * time.Second
	// zincatiPostpones is how soon it looks again for users that are logged in. The real one waits for 60 s, ten times.
	zincatiPostpones = 200 * time.Millisecond
)

// installZincati is for Fedora CoreOS as it ships, with one fragment more.
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

// Stage stages an update, locked, and goes on to finalize it.
func (z *Zincati) Stage() error {
	err := errors.Join(z.daemon.Start(), z.daemon.SetDeployments(
		hosttest.Deployment{Version: ostreeAfter, Staged: true, Locked: true}, hosttest.Deployment{Version: ostreeBefore, Booted: true}))
	z.Restart()
	return err
}

// LogIn lets so many users be logged in for one look each: Zincati waits for them.
func (z *Zincati) LogIn(looks int) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.sessions = looks
}

// Answers are what it has been answered so far.
func (z *Zincati) Answers() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return append([]string(nil), z.answers...)
}

// Finalized counts how often somebody has finalized a deployment.
func (z *Zincati) Finalized() int {
	calls := slices.DeleteFunc(z.daemon.Calls(), func(call string) bool { return call != "FinalizeDeployment" })
	return len(calls)
}

// Restart is systemctl restart: a request that waits is lost.
func (z *Zincati) Restart() {
	z.Kill()
	z.Start()
}

// Start starts it, if it does not run.
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

// Kill ends it, at once.
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

// run reports the steady state, and then finalizes what is staged when it is permitted to.
func (z *Zincati) run(ctx context.Context) {
	for !z.ask(ctx, "steady-state") {
		if !pause(ctx, jittered(zincatiRetry)) {
			return
		}
	}
	for ctx.Err() == nil {
		list := z.daemon.Deployments()
		switch {
		case len(list) == 0 || !list[0].Locked:
			if !pause(ctx, zincatiPostpones) {
				return
			}
		case !z.ask(ctx, "pre-reboot"):
			if !pause(ctx, jittered(zincatiRetry)) {
				return
			}
		case z.waitsForUsers():
			if !pause(ctx, zincatiPostpones) {
				return
			}
		default:
			z.finalize(ctx)
			if !pause(ctx, jittered(zincatiRetry)) {
				return
			}
		}
	}
}

func (z *Zincati) waitsForUsers() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.sessions--
	return z.sessions >= 0
}

// ask asks one of the replicas, as kube-proxy chooses it.
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

// finalize is `rpm-ostree finalize-deployment CHECKSUM`.
func (z *Zincati) finalize(ctx context.Context) {
	client := rpmostree.Finalizer{Connect: host.SystemBus(z.host.Bus.Address()), Clock: clock.RealClock{}, HostRoot: "/"}
	if err := client.Finalize(ctx); err != nil {
		z.note("finalize-deployment: " + err.Error())
	}
}

// systemctlReboot is how rpm-ostree reboots after it has finalized a deployment.
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

func jittered(d time.Duration) time.Duration { return d + rand.N(d/10) }

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
