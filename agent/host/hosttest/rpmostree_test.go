package hosttest

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
)

// installed is a bus with an rpm-ostree that has not been started, and a client's connection.
func installed(t *testing.T) (*RPMOSTree, *dbus.Conn) {
	t.Helper()
	bus := StartFor(t)
	ostree, err := InstallRPMOSTree(bus, Deployment{Version: "40.1", Booted: true})
	must(t, err)
	conn, err := bus.Connect()
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return ostree, conn
}

// read reads a property of rpm-ostree.
func read(t *testing.T, conn *dbus.Conn, path dbus.ObjectPath, property string) any {
	t.Helper()
	value, err := conn.Object(rpmostreeName, path).GetProperty(property)
	must(t, err)
	return value.Value()
}

// eventually polls for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for tick := time.NewTicker(2 * time.Millisecond); !condition(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestRPMOSTree_IsStartedByACallAndLeavesWhenItIsIdle(t *testing.T) {
	ostree, conn := installed(t)
	for starts := range 3 {
		if n := ostree.Starts(); n != starts {
			t.Fatalf("started %d times, want %d", n, starts)
		}
		if got := read(t, conn, sysrootPath, sysrootInterface+".Booted"); got != osPath {
			t.Fatalf("Booted is %v", got)
		}
		if !ostree.Exit() {
			t.Fatal("something keeps an idle daemon")
		}
	}
}

func TestRPMOSTree_FailsToStartOnRequest(t *testing.T) {
	ostree, conn := installed(t)
	must(t, ostree.Activates(false))
	_, err := conn.Object(rpmostreeName, sysrootPath).GetProperty(sysrootInterface + ".Booted")
	if failure, ok := errors.AsType[dbus.Error](err); !ok || failure.Name != "org.freedesktop.DBus.Error.Spawn.ChildExited" {
		t.Errorf("error %v", err)
	}
	must(t, ostree.Activates(true))
	read(t, conn, sysrootPath, sysrootInterface+".Booted")
}

func TestRPMOSTree_ReportsItsDeploymentsAndThatTheyChange(t *testing.T) {
	ostree, conn := installed(t)
	must(t, ostree.Start())
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	must(t, conn.AddMatchSignal(dbus.WithMatchPathNamespace("/org/projectatomic/rpmostree1"), dbus.WithMatchMember("PropertiesChanged")))
	must(t, ostree.Stage("40.2"))
	want := []string{sysrootInterface + " 1", osInterface + " 3"}
	var got []string
	for signal := range signals {
		if strings.HasSuffix(signal.Name, ".PropertiesChanged") {
			got = append(got, signal.Body[0].(string)+" "+string(rune('0'+len(signal.Body[1].(map[string]dbus.Variant)))))
		}
		if len(got) == len(want) {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("interfaces and how many properties (-want +got):\n%s", diff)
	}
	list := read(t, conn, sysrootPath, sysrootInterface+".Deployments").([]map[string]dbus.Variant)
	if len(list) != 2 || list[0]["version"].Value() != "40.2" || list[0]["staged"].Value() != true || list[1]["booted"].Value() != true {
		t.Errorf("deployments %v", list)
	}
	ostree.Boot()
	list = read(t, conn, sysrootPath, sysrootInterface+".Deployments").([]map[string]dbus.Variant)
	if list[0]["booted"].Value() != true || list[0]["staged"].Value() != false || list[1]["booted"].Value() != false {
		t.Errorf("deployments after a boot %v", list)
	}
}

func TestRPMOSTree_ClientsAndTransactionsKeepIt(t *testing.T) {
	ostree, conn := installed(t)
	sysroot := conn.Object(rpmostreeName, sysrootPath)
	options := map[string]dbus.Variant{"id": dbus.MakeVariant("test")}
	must(t, sysroot.Call(sysrootInterface+".RegisterClient", 0, options).Err)
	if ostree.Exit() {
		t.Error("left although a client is registered")
	}
	if diff := cmp.Diff([]string{"test"}, ostree.Clients()); diff != "" {
		t.Errorf("clients (-want +got):\n%s", diff)
	}
	must(t, sysroot.Call(sysrootInterface+".UnregisterClient", 0, options).Err)
	var address string
	must(t, conn.Object(rpmostreeName, osPath).Call(osInterface+".Upgrade", 0, options).Store(&address))
	if ostree.Exit() {
		t.Error("left although a transaction is under way")
	}
	if got := read(t, conn, sysrootPath, sysrootInterface+".ActiveTransactionPath"); got != address {
		t.Errorf("ActiveTransactionPath is %v, want %s", got, address)
	}
	// A transaction that nobody starts goes with whoever began it.
	_ = conn.Close()
	eventually(t, "the daemon to be idle", ostree.Exit)
}

func TestTransaction_WantsTheIdentityInTheFirstLine(t *testing.T) {
	ostree, conn := installed(t)
	var address string
	call := conn.Object(rpmostreeName, osPath).Call(osInterface+".Upgrade", 0, map[string]dbus.Variant{})
	must(t, call.Store(&address))
	peer, err := dbus.Dial(address)
	must(t, err)
	defer func() { _ = peer.Close() }()
	// godbus sends no identity, so both sides wait for the other until somebody has had enough.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	context.AfterFunc(ctx, func() { _ = peer.Close() })
	if err := peer.Auth(nil); err == nil {
		t.Error("authenticated without an identity")
	}
	if diff := cmp.Diff([]string{"Upgrade"}, ostree.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestTransaction_SendsLatecomersTheEnd(t *testing.T) {
	ostree, conn := installed(t)
	ostree.OnUpgrade(func(*Transaction) error { return errors.New("no space left") })
	var address string
	call := conn.Object(rpmostreeName, osPath).Call(osInterface+".Upgrade", 0, map[string]dbus.Variant{})
	must(t, call.Store(&address))
	for range 2 {
		if body := finished(t, address); body[0] != false || body[1] != "no space left" {
			t.Errorf("Finished%v", body)
		}
	}
}

// finished connects to a transaction, starts it and waits for its end.
func finished(t *testing.T, address string) []any {
	t.Helper()
	socket, err := net.Dial("unix", strings.TrimPrefix(address, "unix:path="))
	must(t, err)
	uid := hex.EncodeToString([]byte(strconv.Itoa(os.Getuid())))
	_, err = socket.Write([]byte("\x00AUTH EXTERNAL " + uid + "\r\n"))
	must(t, err)
	line, err := readLine(socket)
	must(t, err)
	if line != "OK "+guid {
		t.Fatalf("answer %q", line)
	}
	_, err = socket.Write([]byte("BEGIN\r\n"))
	must(t, err)
	peer, err := dbus.NewConn(&scriptedAuth{Conn: socket, script: strings.NewReader("REJECTED EXTERNAL\r\nOK " + guid + "\r\n")})
	must(t, err)
	t.Cleanup(func() { _ = peer.Close() }) // Until then the transaction is not over.
	signals := make(chan *dbus.Signal, 16)
	peer.Signal(signals)
	must(t, peer.Auth(nil))
	must(t, peer.Object("", transactionPath).Call(transactionInterface+".Start", 0).Err)
	for signal := range signals {
		if signal.Name == transactionInterface+".Finished" {
			return signal.Body
		}
	}
	t.Fatal("hung up before the end")
	return nil
}
