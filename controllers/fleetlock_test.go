package controllers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	fleetlockserver "github.com/reboot-operator/reboot-operator/controllers/fleetlock/server"
)

func TestFleetLockOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		args    []string
		enabled bool
		want    string
	}{
		"off by default":                  {nil, false, ""},
		"on":                              {[]string{"--fleetlock-bind-address=:8444"}, true, ""},
		"longer than Zincati waits":       {[]string{"--fleetlock-bind-address=:8444", "--fleetlock-hold=30m"}, true, "--fleetlock-hold 30m0s"},
		"no hold":                         {[]string{"--fleetlock-bind-address=:8444", "--fleetlock-hold=0"}, true, ""},
		"requests without a server":       {[]string{"--fleetlock-requests"}, false, "no effect"},
		"a source check without a server": {[]string{"--fleetlock-check-source"}, false, "no effect"},
		"a certificate without a server":  {[]string{"--fleetlock-cert-dir=/x"}, false, "no effect"},
	} {
		t.Run(name, func(t *testing.T) {
			var o FleetLockOptions
			flags := flag.NewFlagSet("manager", flag.ContinueOnError)
			o.bind(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			err := o.check()
			if o.enabled() != tc.enabled || (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("enabled %t, %v", o.enabled(), err)
			}
		})
	}
}

// The fields that only the server needs are kept only for it.
func TestWithIdentity(t *testing.T) {
	node := &corev1.Node{}
	node.Status.NodeInfo = corev1.NodeSystemInfo{MachineID: "m", SystemUUID: "u", BootID: "b", KernelVersion: "6", OSImage: "o"}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
	node.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}}
	node.CreationTimestamp.Time = time.Now()
	kept, err := withIdentity(node)
	got, ok := kept.(*corev1.Node)
	if err != nil || !ok {
		t.Fatalf("%T, %v", kept, err)
	}
	want := corev1.NodeSystemInfo{MachineID: "m", SystemUUID: "u", BootID: "b", KernelVersion: "6"}
	if got.Status.NodeInfo != want || len(got.Status.Addresses) != 1 || got.Status.Images != nil {
		t.Errorf("%+v", got.Status)
	}
	if o := (&Options{FleetLock: FleetLockOptions{Address: "0"}}); o.FleetLock.enabled() {
		t.Error("0 turns it off")
	}
}

// emptyManager is a manager of a cluster without Nodes, as far as FleetLock needs one.
type emptyManager struct {
	ctrl.Manager

	cache informertest.FakeInformers
	added []manager.Runnable
}

func (m *emptyManager) GetCache() cache.Cache                { return &m.cache }
func (m *emptyManager) GetFieldIndexer() client.FieldIndexer { return &m.cache }
func (*emptyManager) GetAPIReader() client.Reader            { return nil }
func (*emptyManager) GetEventRecorder(string) recorder.EventRecorder {
	return events.NewFakeRecorder(1000)
}
func (m *emptyManager) Add(r manager.Runnable) error { m.added = append(m.added, r); return nil }
func (m *emptyManager) start(ctx context.Context, failed chan<- error) {
	for _, r := range m.added {
		go func() { failed <- r.Start(ctx) }()
	}
}

// mountSecret puts a new certificate into a Secret's volume by one rename, as a kubelet does, and
// returns a pool that trusts it.
func mountSecret(t *testing.T, volume, version string) *x509.CertPool {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	data, last := filepath.Join(volume, "..data"), ""
	if err == nil {
		last, _ = os.Readlink(data)
	}
	next := filepath.Join(volume, ".."+version)
	err = errors.Join(err, os.MkdirAll(next, 0o700), os.WriteFile(filepath.Join(next, "tls.crt"), certificate, 0o600),
		os.WriteFile(filepath.Join(next, "tls.key"), key, 0o600), os.Symlink(filepath.Base(next), data+"_tmp"), os.Rename(data+"_tmp", data))
	if last == "" {
		err = errors.Join(err, os.Symlink("..data/tls.crt", filepath.Join(volume, "tls.crt")), os.Symlink("..data/tls.key", filepath.Join(volume, "tls.key")))
	} else {
		err = errors.Join(err, os.RemoveAll(filepath.Join(volume, last)))
	}
	trusted := x509.NewCertPool()
	if err != nil || !trusted.AppendCertsFromPEM(certificate) {
		t.Fatal(err)
	}
	return trusted
}

func TestSetupFleetLock_ServesHTTPSByTheSecretOfNow(t *testing.T) {
	volume := t.TempDir()
	trusted := mountSecret(t, volume, "first")
	mgr := &emptyManager{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	if err := SetupFleetLock(ctx, mgr, Options{FleetLock: FleetLockOptions{Address: "127.0.0.1:0", CertDir: volume}}); err != nil {
		t.Fatal(err)
	}
	mgr.start(ctx, ended)
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
	})
	server, ok := mgr.added[len(mgr.added)-1].(*fleetlockserver.Server)
	if !ok {
		t.Fatalf("%T", mgr.added)
	}
	ask := func(trusted *x509.CertPool) (int, error) {
		https := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: trusted}}}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+server.Listener.Addr().String()+"/v1/pre-reboot",
			strings.NewReader(`{"client_params":{"id":"n1","group":"default"}}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("fleet-lock-protocol", "true")
		response, err := https.Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	if status, err := ask(trusted); err != nil || status != http.StatusForbidden {
		t.Fatalf("%d, %v", status, err)
	}
	renewed := mountSecret(t, volume, "second")
	for deadline := time.Now().Add(time.Minute); ; { // The folder is read again at once, or within ten seconds.
		status, err := ask(renewed)
		if err == nil && status == http.StatusForbidden {
			break
		}
		if unknown := new(x509.UnknownAuthorityError); !errors.As(err, unknown) || time.Now().After(deadline) {
			t.Fatalf("%d, %v", status, err)
		}
	}
	if _, err := ask(trusted); err == nil {
		t.Error("the first certificate is still served")
	}
}

func TestSetupFleetLock_NamesTheWrongFlag(t *testing.T) {
	for name, o := range map[string]FleetLockOptions{
		"--fleetlock-cert-dir":     {Address: "127.0.0.1:0", CertDir: t.TempDir()},
		"--fleetlock-bind-address": {Address: "127.0.0.1:x"},
	} {
		if err := SetupFleetLock(t.Context(), &emptyManager{}, Options{FleetLock: o}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v", err)
		}
	}
}
