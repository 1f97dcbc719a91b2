package rack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
