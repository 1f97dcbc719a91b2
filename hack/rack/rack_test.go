package rack

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseCgroup(t *testing.T) {
	for line, want := range map[string][2]string{
		"4:memory:/a/b":               {"memory", "/sys/fs/cgroup/memory/a/b"},
		"9:name=systemd:/":            {"systemd", "/sys/fs/cgroup/systemd"},
		"0::/user.slice":              {"unified", "/sys/fs/cgroup/unified/user.slice"},
		"1:cpu:/a:b":                  {"cpu", "/sys/fs/cgroup/cpu/a:b"},
		"2:cpu,cpuacct:/of/two/names": {"cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct/of/two/names"},
	} {
		hierarchy, folder, ok := parseCgroup(line, false)
		if !ok || hierarchy != want[0] || folder != want[1] {
			t.Errorf("%s: got %q, %q, %t, want %q", line, hierarchy, folder, ok, want)
		}
	}
	if _, folder, ok := parseCgroup("0::/user.slice/run.scope", true); !ok || folder != "/sys/fs/cgroup/user.slice/run.scope" {
		t.Errorf("cgroup v2 alone: got %q, %t", folder, ok)
	}
	for _, line := range []string{"nonsense", ""} {
		if _, _, ok := parseCgroup(line, false); ok {
			t.Errorf("%q is no line of it", line)
		}
	}
}

func TestMachine_ItsKubeletDividesCgroupsAsTheHostDoes(t *testing.T) {
	for unified, want := range map[bool]string{
		false: "failCgroupV1: false\ncgroupDriver: cgroupfs\nSystemdCgroup = false\n",
		true:  "failCgroupV1: true\ncgroupDriver: systemd\nSystemdCgroup = true\n",
	} {
		m := &Machine{Name: "node-1", rack: &Rack{folder: t.TempDir()}, cgroup: cgroup{unified: unified}}
		must(t, m.install(nil))
		var got strings.Builder
		for _, path := range []string{"etc/kubernetes/kubelet.yaml", "etc/containerd/config.toml"} {
			text, err := os.ReadFile(m.Disk(path))
			must(t, err)
			for line := range strings.Lines(string(text)) {
				setting, _, _ := strings.Cut(strings.TrimSpace(line), " #")
				if strings.Contains(setting, "Cgroup") || strings.Contains(setting, "cgroupDriver") {
					fmt.Fprintln(&got, setting)
				}
			}
		}
		if got.String() != want {
			t.Errorf("cgroup v2 %t: got %q, want %q", unified, got.String(), want)
		}
	}
}

func TestCgroup_EachBootHasAGroupOfItsOwnOnV2(t *testing.T) {
	c := cgroup{folders: []string{t.TempDir()}, unified: true}
	for number := range 2 {
		folders, err := c.forBoot(number)
		must(t, err)
		if want := filepath.Join(c.folders[0], fmt.Sprint("boot", number)); len(folders) != 1 || folders[0] != want {
			t.Errorf("got %v, want %s", folders, want)
		}
	}
	c.unified = false
	if folders, err := c.forBoot(0); err != nil || folders[0] != c.folders[0] {
		t.Errorf("cgroup v1: got %v, %v", folders, err)
	}
}

func TestIsInit(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\tsystemd\nNSpid:\t8371\t1\nVmSize: 1": true,
		"Name:\tkubelet\nNSpid:\t8371\t42\n":         false,
		"Name:\tinit\nNSpid:\t1\n":                   false, // this machine's own
		"Name:\told kernel\n":                        false,
	} {
		if got := isInit(status); got != want {
			t.Errorf("%q: got %t", status, got)
		}
	}
}

func TestStarterIsGone(t *testing.T) {
	ended := exec.Command("true")
	must(t, ended.Run())
	for name, want := range map[string]bool{
		fmt.Sprintf("%s%d.node-1", prefix, ended.Process.Pid): true,
		fmt.Sprintf("%s%d.node-1", prefix, os.Getpid()):       false,
		fmt.Sprintf("other.%d.node-1", ended.Process.Pid):     false,
		prefix + "x.node-1":  false,
		prefix + "-5.node-1": false,
	} {
		if got := starterIsGone(name); got != want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestForward_CarriesBothWaysAndEnds(t *testing.T) {
	server := listen(t)
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			question := make([]byte, 5)
			_, _ = io.ReadFull(conn, question)
			_, _ = conn.Write([]byte(strings.ToUpper(string(question))))
			conn.Close()
		}
	}()
	front := listen(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		forward(front, server.Addr().String())
	}()
	if got := ask(t, front, "hello"); got != "HELLO" {
		t.Errorf("got %q", got)
	}
	server.Close()
	if got := ask(t, front, "hello"); got != "" {
		t.Errorf("nobody is there, and yet: %q", got)
	}
	front.Close()
	<-ended
}

func TestMachine_IsInstalledAsANode(t *testing.T) {
	m := &Machine{Name: "node-2", Address: addressOf(1), number: 1, rack: &Rack{folder: t.TempDir()}}
	must(t, m.install([]byte("kubeconfig")))
	for path, want := range map[string]string{
		"etc/hostname":                   "node-2\n",
		"etc/kubernetes/kubeconfig":      "kubeconfig",
		"etc/kubernetes/node.env":        "NODE=node-2\nIP=10.98.0.12\n",
		"etc/cni/net.d/10-pods.conflist": `"subnet": "10.98.12.0/24"`,
		"etc/systemd/system/multi-user.target.wants/kubelet.service": "", // a link into the machine
	} {
		info, err := os.Lstat(m.Disk(path))
		must(t, err)
		if info.Mode()&os.ModeSymlink != 0 {
			continue
		}
		text, err := os.ReadFile(m.Disk(path))
		must(t, err)
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is %q", path, text)
		}
	}
	if info, err := os.Stat(m.Disk("etc/kubernetes/prepare")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("the kubelet's preparation cannot run: %v", err)
	}
}

func TestMachine_ThatIsOffHasNoInside(t *testing.T) {
	m := &Machine{Name: "node-1"}
	if _, err := m.BootID(); err == nil {
		t.Error("a machine that is off has no boot ID")
	}
	if _, err := m.Run(t.Context(), "true"); err == nil {
		t.Error("nothing runs on a machine that is off")
	}
}

func TestMachine_WithoutPowerWaitsUntilItIsPluggedIn(t *testing.T) {
	m := &Machine{rack: &Rack{stopping: make(chan struct{})}, plugged: make(chan struct{})}
	close(m.plugged)
	if !m.hasPower() {
		t.Error("a machine has power when nobody has unplugged it")
	}
	m.Unplug()
	m.Unplug()
	answer := make(chan bool)
	go func() { answer <- m.hasPower() }()
	select {
	case <-answer:
		t.Error("it has power though it is unplugged")
	default:
	}
	m.PlugIn()
	if !<-answer {
		t.Error("it has no power though it is plugged in")
	}
	m.Unplug()
	close(m.rack.stopping)
	if m.hasPower() {
		t.Error("it is switched on while the rack is taken down")
	}
}

func TestRestoreWatches_WithoutANoteChangesNothing(t *testing.T) {
	if err := restoreWatches(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := restoreWatches(filepath.Join(t.TempDir(), "gone")); err != nil {
		t.Error(err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// ask sends a question and reads until the end.
func ask(t *testing.T, l net.Listener, question string) string {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte(question))
	must(t, err)
	answer, _ := io.ReadAll(conn) // An end by reset is an end.
	return string(answer)
}
