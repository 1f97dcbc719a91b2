package rack

import (
	"fmt"
	"os"
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
