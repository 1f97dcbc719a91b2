package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/godbus/dbus/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// walk is a host as installed, for a section of docs/hosts.md. An administrator follows the section
// from top to bottom.
type walk struct {
	*machine
	units *hosttest.Units
	// conflict is the beginning of the host's initial reason not to reboot. It is empty if the host
	// does not have one.
	conflict string
	// does maps whole commands to their effect on the host. systemctl and shell commands that write
	// files are handled elsewhere.
	does map[string]func()
	// known are the units of the host.
	known []string
}

// programs are the first words of the page's commands.
var programs = []string{
	"apt-get", "bootc", "cd", "curl", "dnf", "echo", "locksmithctl", "ostree", "printf", "rm", "rpm-ostree", "sed", "systemctl", "touch", "update_engine_client",
}

// isCommand reports whether a piece of code is a command. A sentence of the agent may begin with
// the same word.
func isCommand(text string) bool {
	program, _, hasArguments := strings.Cut(text, " ")
	return hasArguments && slices.Contains(programs, program) && !strings.HasSuffix(text, ".")
}

// pageStep matches a block of code with its language, a piece of code in the text, or the phrase
// that ends a need.
var pageStep = regexp.MustCompile("(?s)```([a-z]*)\n(.*?)```|`([^`\n]+)`|ends the need")

// conditionWord matches a status and a reason of RebootRequired.
var conditionWord = regexp.MustCompile(`^(True|False|Unknown) [A-Z][A-Za-z]+$`)

// follow runs each command of a section and checks each condition that the section shows.
func (w *walk) follow(ctx context.Context, heading string) {
	GinkgoHelper()
	page, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "hosts.md"))
	Expect(err).NotTo(HaveOccurred())
	_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
	Expect(found).To(BeTrue())
	section, _, _ = strings.Cut(section, "\n## ")
	need, shown := "", 0
	for _, step := range pageStep.FindAllStringSubmatch(section, -1) {
		language, block, code := step[1], step[2], step[3]
		switch {
		case language == "yaml":
		case isCommand(strings.TrimSpace(block)):
			for line := range strings.Lines(strings.TrimSpace(block)) {
				w.run(strings.TrimSpace(line))
			}
		case block != "":
			looks(ctx, w.machine)
			w.shows(ctx, blockerOf, BeEmpty())
			w.shows(ctx, needOf, Equal(need))
			w.shows(ctx, messageOf(v1alpha1.NodeRebootRequired), HavePrefix(strings.Join(strings.Fields(block), " ")+" "))
			shown++
		case conditionWord.MatchString(code):
			need = code
		case isCommand(code):
			w.run(code)
		case code == "":
			w.shows(ctx, needOf, Equal("False UpToDate"))
		}
	}
	Expect(shown).NotTo(BeZero(), "nothing on the page shows what you then see")
}

func (w *walk) run(command string) {
	GinkgoHelper()
	By(command)
	if does, found := w.does[command]; found {
		does()
		return
	}
	for part := range strings.SplitSeq(command, " && ") {
		args := strings.Fields(part)
		if does, found := w.does[part]; found {
			does()
			continue
		}
		switch args[0] {
		case "systemctl":
			w.systemctl(args[1], args[len(args)-1])
		case "cd":
			Expect(args[1]).To(Equal("/etc/systemd/system"))
		case "curl":
			w.download(args)
		case "echo", "printf", "rm", "sed", "touch":
			w.shell(part)
		default:
			Fail("unknown command: " + part)
		}
	}
}

func (w *walk) systemctl(verb, unit string) {
	GinkgoHelper()
	Expect(w.known).To(ContainElement(unit))
	switch verb {
	case "mask":
		w.units.Set(unit, "inactive")
	case "enable", "start", "restart":
		w.units.Set(unit, "active")
	default:
		Expect(verb).To(Equal("unmask"))
	}
}

// shell runs a command that writes files, below the host's root.
func (w *walk) shell(command string) {
	GinkgoHelper()
	below := strings.NewReplacer(" /run/", " "+w.Root+"/run/", ">/run/", ">"+w.Root+"/run/", " /etc/", " "+w.Root+"/etc/", ">/etc/", ">"+w.Root+"/etc/")
	shell := exec.Command("sh", "-c", below.Replace(command))
	shell.Env = append(os.Environ(), "PATH="+filepath.Join(w.Root, "bin")+":"+os.Getenv("PATH"))
	output, err := shell.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
}

// download installs units from the address of this repository.
func (w *walk) download(args []string) {
	GinkgoHelper()
	for _, arg := range args {
		if _, name, found := strings.Cut(arg, "reboot-operator/reboot-operator/main/"); found {
			unit, err := os.ReadFile(filepath.Join(testenv.Root(), name))
			Expect(err).NotTo(HaveOccurred())
			w.write("etc/systemd/system/"+filepath.Base(name), string(unit))
			w.known = append(w.known, filepath.Base(name))
		}
	}
}

func (w *walk) write(name, content string) {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Dir(filepath.Join(w.Root, name)), 0o755)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(w.Root, name), []byte(content), 0o755)).To(Succeed())
}

// has makes units active.
func (w *walk) has(units ...string) {
	for _, unit := range units {
		w.known = append(w.known, unit)
		w.units.Set(unit, "active")
	}
}

func (w *walk) flatcar() {
	w.has("locksmithd.service")
	w.known = append(w.known, "update-engine.service")
	w.conflict = "locksmithd is active"
	w.does["systemctl start update-engine.service"] = func() { Expect(w.Engine.Start()).To(Succeed()) }
	w.does["update_engine_client -check_for_update"] = func() {
		w.write("run/reboot-required", "") // as the post-install script of the update does
		Expect(w.Engine.Emit(hosttest.NeedReboot("4593.1.0"))).To(Succeed())
	}
	w.does["update_engine_client -status"] = func() {}
	w.does["update_engine_client -reset_status && rm /run/reboot-required"] = func() {
		w.Engine.SetStatus(hosttest.Idle()) // without a signal
		w.shell("rm /run/reboot-required")
		w.kill()
		w.start(context.Background()) // checks at once instead of after five minutes
	}
	w.does["locksmithctl send-need-reboot"] = func() { Expect(w.Bus.SendNeedReboot()).To(Succeed()) }
}

func (w *walk) containerOptimized() {
	cos, err := hosttest.StartCOSUpdateEngine(w.Bus, hosttest.COSCurrent)
	Expect(err).NotTo(HaveOccurred())
	w.does["update_engine_client --check_for_update"] = func() {
		Expect(cos.Emit(hosttest.COSNeedReboot("18867.0.0"))).To(Succeed())
	}
	w.does["update_engine_client --status"] = func() {}
}

func (w *walk) fedoraCoreOS() {
	booted := hosttest.Deployment{Version: "43.20261018.3.0", Booted: true}
	staged := hosttest.Deployment{Version: "43.20261101.3.0", Checksum: "1f0e2d3c4b5a" + strings.Repeat("0", 52), Staged: true}
	locked := staged
	locked.Locked = true
	daemon, err := hosttest.InstallRPMOSTree(w.Bus, booted)
	Expect(err).NotTo(HaveOccurred())
	deploys := func(all ...hosttest.Deployment) func() {
		return func() { Expect(daemon.SetDeployments(append(all, booted)...)).To(Succeed()) }
	}
	// Zincati has staged the update, and is about to finalize it.
	w.write("usr/lib/zincati/config.d/30-updates-strategy.toml", "[updates]\nstrategy = \"immediate\"\n")
	w.write("etc/zincati/config.d/README", "")
	deploys(locked)()
	w.has("zincati.service")
	w.known = append(w.known, "rpm-ostreed-automatic.timer")
	w.conflict = "Zincati is active"
	w.does["systemctl enable --now rpm-ostreed-automatic.timer"] = func() {
		w.units.Set("rpm-ostreed-automatic.timer", "active")
		deploys(staged)()
	}
	w.does["rpm-ostree deploy VERSION"], w.does["rpm-ostree upgrade"] = deploys(staged), deploys(staged)
	w.does["rpm-ostree cleanup --pending"] = deploys()
	w.does["rpm-ostree deploy --lock-finalization VERSION"] = func() { // the first step of an administrator or of Zincati
		deploys()()
		deploys(locked)()
	}
	w.does["ostree admin lock-finalization --unlock"] = func() { // changes files without the daemon
		Expect(daemon.SetDeploymentsQuietly(staged, booted)).To(Succeed())
		w.write("run/ostree/staged-deployment", "unlocked")
	}
}

func (w *walk) bootc() {
	const commit = "c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2"
	testdata := func(name string) []byte {
		content, err := os.ReadFile(filepath.Join("engine", "bootc", "testdata", name))
		Expect(err).NotTo(HaveOccurred())
		return content
	}
	digest := []byte("sha256:1f0e2d3c4b5a" + strings.Repeat("0", 52))
	for _, name := range []string{"usr/bin/bootc", "run/ostree-booted"} {
		w.write(name, "")
	}
	w.write("sysroot/ostree/deploy/default/deploy/"+commit+".0.origin", "[origin]\ncontainer-image-reference=ostree-image-signed:docker://quay.io/example/os:10\n")
	w.write("sysroot/ostree/repo/objects/"+commit[:2]+"/"+commit[2:]+".commit",
		string(regexp.MustCompile(`sha256:[0-9a-f]{64}`).ReplaceAll(testdata("c2.commit"), digest)))
	w.has("bootc-fetch-apply-updates.timer")
	w.conflict = "bootc is active"
	stages := func() { w.write("run/ostree/staged-deployment", string(bytes.Clone(testdata("staged-deployment")))) }
	w.does["bootc upgrade"], w.does["bootc switch IMAGE"] = stages, stages
}

func (w *walk) debian() {
	w.write("etc/apt/apt.conf.d/50unattended-upgrades", `Unattended-Upgrade::Automatic-Reboot "true";`)
	w.conflict = "unattended-upgrades is active"
	w.has("apt-daily-upgrade.timer")
	w.does["apt-get install -y unattended-upgrades"] = func() {}
}

func (w *walk) suse() {
	w.has("rebootmgr.service", "transactional-update.timer", "os-update.timer")
	w.conflict = "rebootmgr is active"
}

func (w *walk) redHat() {
	w.write("etc/dnf/automatic.conf", "[commands]\nupgrade_type = default\nreboot = when-needed\n")
	w.has("dnf-automatic-install.timer")
	w.conflict = "dnf-automatic is active"
	w.does["dnf reinstall -y glibc"] = func() {
		w.write("bin/dnf", "#!/bin/sh\nprintf '  * glibc\\n\\nReboot is required to fully utilize these updates.\\n'; exit 1\n")
	}
	w.does["systemctl start needs-restarting.service"] = func() {
		unit, err := os.ReadFile(filepath.Join(w.Root, "etc", "systemd", "system", "needs-restarting.service"))
		Expect(err).NotTo(HaveOccurred())
		command := regexp.MustCompile(`(?m)^ExecStart=/bin/sh -c '(.*)'$`).FindSubmatch(unit)
		Expect(command).To(HaveLen(2))
		w.shell(strings.ReplaceAll(string(command[1]), "$$", "$"))
	}
}

func (w *walk) sysupdate() {
	w.has("systemd-sysupdate-reboot.timer")
	w.conflict = "systemd-sysupdate is active"
	conn, err := w.Bus.Connect()
	Expect(err).NotTo(HaveOccurred())
	_, err = conn.RequestName("org.freedesktop.sysupdate1", dbus.NameFlagDoNotQueue)
	Expect(err).NotTo(HaveOccurred())
	received := make(chan *dbus.Message, 100)
	conn.Eavesdrop(received) // Replies do not reach the connection any more.
	w.does["touch /run/reboot-required"] = func() {
		Expect(conn.Emit("/org/freedesktop/sysupdate1", "org.freedesktop.sysupdate1.Manager.JobRemoved",
			uint64(1), dbus.ObjectPath("/org/freedesktop/sysupdate1/job/_1"), int32(0))).To(Succeed())
		w.shell("touch /run/reboot-required")
	}
	DeferCleanup(func() {
		defer func() { _ = conn.Close() }()
		for len(received) > 0 {
			Expect((<-received).Type).NotTo(Equal(dbus.TypeMethodCall), "the agent makes a call that docs/hosts.md excludes")
		}
	})
}

// Each section of docs/hosts.md is followed on an emulated host of its kind. The agent must report
// what the page says.
var _ = DescribeTable("docs/hosts.md", func(ctx SpecContext, heading string, stock func(*walk)) {
	m := newMachine(ctx, patient)
	m.Engine.Stop()
	w := &walk{machine: m, units: runUnits(m), does: map[string]func(){}}
	for _, folder := range []string{"run", "usr", "etc/apt/apt.conf.d"} {
		Expect(os.MkdirAll(filepath.Join(m.Root, folder), 0o755)).To(Succeed())
	}
	stock(w)
	m.start(ctx)
	if w.conflict != "" {
		w.shows(ctx, blockerOf, HavePrefix("CoordinatorConflict: "+w.conflict))
		w.shows(ctx, messageOf(v1alpha1.NodeRebootRequired), ContainSubstring(w.conflict))
	}
	w.follow(ctx, heading)
},
	func(heading string, _ func(*walk)) string { return heading },
	Entry(nil, "Flatcar", (*walk).flatcar),
	Entry(nil, "Container-Optimized OS", (*walk).containerOptimized),
	Entry(nil, "Fedora CoreOS", (*walk).fedoraCoreOS),
	Entry(nil, "bootc", (*walk).bootc),
	Entry(nil, "Debian, Ubuntu", (*walk).debian),
	Entry(nil, "SLES, SLE Micro, MicroOS", (*walk).suse),
	Entry(nil, "RHEL, Fedora Server, Amazon Linux", (*walk).redHat),
	Entry(nil, "systemd-sysupdate", (*walk).sysupdate),
)
