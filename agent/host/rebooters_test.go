package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

// TestCoordinators_ProgramsThatRebootTheirHost_Behaviour57 covers each row of the table with the
// configurations that decide, and with the command that turns the program off.
func TestCoordinators_ProgramsThatRebootTheirHost_Behaviour57(t *testing.T) {
	const zincati, apt, dnf = "zincati.service", "apt-daily-upgrade.timer", "dnf-automatic-install.timer"
	const ostree, transactional, osUpdate = "rpm-ostreed-automatic.timer", "transactional-update.timer", "os-update.timer"
	type files = map[string]string
	var none files
	for name, tc := range map[string]struct {
		unit  string
		files files
		// want is the name of the program, or empty if it does not reboot the host.
		want string
	}{
		"Zincati by its defaults": {zincati, none, "Zincati"},
		"Zincati, immediate":      {zincati, files{"usr/lib/zincati/config.d/30-updates-strategy.toml": "[updates]\nstrategy = \"immediate\"\n"}, "Zincati"},
		"Zincati, periodic":       {zincati, files{"etc/zincati/config.d/55-x.toml": "[updates]\nstrategy = 'periodic'\n"}, "Zincati"},
		"Zincati asks a FleetLock server": {
			zincati, files{
				"usr/lib/zincati/config.d/30-updates-strategy.toml": "[updates]\nstrategy = \"immediate\"\n",
				"etc/zincati/config.d/99-fleet-lock.toml":           "updates.strategy = \"fleet_lock\"\nupdates.fleet_lock.base_url = \"http://10.3.0.15/\"\n",
			}, "",
		},
		"Zincati, a file of a later name in an earlier folder": {
			zincati, files{
				"usr/lib/zincati/config.d/95-late.toml": "updates = { strategy = \"immediate\" }\n",
				"etc/zincati/config.d/90-lock.toml":     "[updates]\nstrategy = \"fleet_lock\"\n",
			}, "Zincati",
		},
		"Zincati, a file that replaces one of the same name": {
			zincati, files{
				"usr/lib/zincati/config.d/95-late.toml": "[updates]\nstrategy = \"immediate\"\n",
				"run/zincati/config.d/90-lock.toml":     "[updates]\nstrategy = \"fleet_lock\"\n",
				"etc/zincati/config.d/95-late.toml":     "[updates]\nenabled = true\n",
			}, "",
		},
		"Zincati, a file that it does not read": {
			zincati,
			files{"etc/zincati/config.d/90-lock.toml.bak": "[updates]\nstrategy = \"fleet_lock\"\n", "etc/zincati/config.d/.90.toml": "[updates]\nstrategy = \"fleet_lock\"\n"},
			"Zincati",
		},
		"Zincati, the strategy of another table": {zincati, files{"etc/zincati/config.d/90.toml": "[agent]\nstrategy = \"fleet_lock\"\n"}, "Zincati"},
		"rebootmgr":                              {"rebootmgr.service", none, "rebootmgr"},
		"bootc":                                  {"bootc-fetch-apply-updates.timer", none, "bootc"},
		"systemd-sysupdate":                      {"systemd-sysupdate-reboot.timer", none, "systemd-sysupdate"},
		"rpm-ostree applies":                     {ostree, files{"etc/rpm-ostreed.conf": "# AutomaticUpdatePolicy=none\n[Daemon]\nAutomaticUpdatePolicy=Apply\n"}, "rpm-ostree"},
		"rpm-ostree stages":                      {ostree, files{"etc/rpm-ostreed.conf": "[Daemon]\nAutomaticUpdatePolicy=stage\n"}, ""},
		"rpm-ostree applies, with blanks":        {ostree, files{"etc/rpm-ostreed.conf": "[Daemon]\nAutomaticUpdatePolicy = apply\n"}, "rpm-ostree"},
		"rpm-ostree by its defaults":             {ostree, none, ""},
		"rpm-ostree, a key of another section":   {ostree, files{"etc/rpm-ostreed.conf": "[Other]\nAutomaticUpdatePolicy=apply\n"}, ""},
		"unattended-upgrades": {
			apt, files{"etc/apt/apt.conf.d/50unattended-upgrades": "Unattended-Upgrade::Automatic-Reboot \"true\";\n"}, "unattended-upgrades",
		},
		"unattended-upgrades by its defaults": {
			apt, files{"etc/apt/apt.conf.d/50unattended-upgrades": "//Unattended-Upgrade::Automatic-Reboot \"true\";\n"}, "",
		},
		"unattended-upgrades, turned off by a later file": {
			apt, files{
				"etc/apt/apt.conf.d/50unattended-upgrades": "Unattended-Upgrade { Automatic-Reboot \"yes\"; };",
				"etc/apt/apt.conf.d/99-no-reboot":          "Unattended-Upgrade::Automatic-Reboot \"false\";",
			}, "",
		},
		"unattended-upgrades, a file that apt leaves out": {
			apt, files{"etc/apt/apt.conf.d/50unattended-upgrades.ucf-dist": "Unattended-Upgrade::Automatic-Reboot \"true\";"}, "",
		},
		"unattended-upgrades, an editor's copy of a file before it was changed": {
			apt, files{
				"etc/apt/apt.conf.d/50unattended-upgrades":  "Unattended-Upgrade::Automatic-Reboot \"true\";",
				"etc/apt/apt.conf.d/50unattended-upgrades~": "Unattended-Upgrade::Automatic-Reboot \"false\";",
			}, "unattended-upgrades",
		},
		"unattended-upgrades without apt.conf.d": {apt, none, ""},
		"dnf-automatic":                          {dnf, files{"etc/dnf/automatic.conf": "[commands]\nreboot = when-needed\n"}, "dnf-automatic"},
		"dnf-automatic of dnf 5, and the administrator's file wins": {
			"dnf5-automatic.timer", files{
				"usr/share/dnf5/dnf5-plugins/automatic.conf": "[commands]\nreboot = never\n", "etc/dnf/automatic.conf": "[commands]\nreboot=when-changed\n",
			}, "dnf-automatic",
		},
		"dnf-automatic by its first timer":     {"dnf-automatic.timer", files{"etc/dnf/automatic.conf": "[commands]\nreboot = when-needed\n"}, "dnf-automatic"},
		"dnf-automatic never":                  {dnf, files{"etc/dnf/automatic.conf": "[commands]\nreboot = never\n"}, ""},
		"dnf-automatic by its defaults":        {dnf, none, ""},
		"transactional-update by its defaults": {transactional, none, "transactional-update"},
		"transactional-update by systemd":      {transactional, files{"etc/transactional-update.conf": "REBOOT_METHOD=systemd\n"}, "transactional-update"},
		"transactional-update leaves it to whoever detects /run/reboot-required": {
			transactional, files{"etc/transactional-update.conf": "REBOOT_METHOD=systemd\nREBOOT_METHOD=kured"}, "",
		},
		"transactional-update, with a comment behind the method": {
			transactional, files{"etc/transactional-update.conf": "UPDATE_METHOD=\"dup\" # not up\n\nREBOOT_METHOD='kured' # \"safe\"\n"}, "",
		},
		"os-update by its defaults": {osUpdate, none, "os-update"},
		"os-update by rebootmgr":    {osUpdate, files{"etc/os-update.conf": "REBOOT_CMD=rebootmgr\n"}, "os-update"},
		"os-update, a command of a later release": {
			osUpdate, files{"etc/os-update.conf": "REBOOT_CMD=\"kexec\"\n"}, "os-update",
		},
		"os-update, turned off by the vendor":        {osUpdate, files{"usr/share/os-update/os-update.conf": "REBOOT_CMD=none\n"}, ""},
		"os-update, turned off by an older vendor":   {osUpdate, files{"usr/etc/os-update.conf": "REBOOT_CMD=no\n"}, ""},
		"os-update, turned off by the administrator": {osUpdate, files{"usr/share/os-update/os-update.conf": "REBOOT_CMD=auto", "etc/os-update.conf": "REBOOT_CMD=none\n"}, ""},
		"transactional-update, a snippet of the vendor's": {
			transactional, files{"usr/etc/transactional-update.conf.d/10-none": "REBOOT_METHOD=none"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, units, coordinators := startUnits(t)
			coordinators.HostRoot = newRoot(t, tc.files)
			for _, mounted := range []string{"etc", "usr", "run"} {
				must(t, os.MkdirAll(filepath.Join(coordinators.HostRoot, mounted), 0o700))
			}
			if got, err := coordinators.Other(t.Context()); got != nil || err != nil {
				t.Fatalf("before the unit is active: %v, %v", got, err)
			}
			units.Set(tc.unit, "active")
			got, err := coordinators.Other(t.Context())
			must(t, err)
			switch {
			case tc.want == "" && got != nil:
				t.Errorf("found %v, want nobody", got)
			case tc.want != "" && (got == nil || got.Name != tc.want || got.Unit != tc.unit):
				t.Errorf("found %v, want %s by %s", got, tc.want, tc.unit)
			case tc.want != "" && got.Off != "":
				root := coordinators.HostRoot
				must(t, os.MkdirAll(filepath.Join(root, "etc", "zincati", "config.d"), 0o700)) // as in Zincati's package
				command := strings.NewReplacer("/etc/", root+"/etc/", "systemctl restart", "true").Replace(got.Off)
				must(t, exec.CommandContext(t.Context(), "sh", "-c", command).Run())
				if got, err := coordinators.Other(t.Context()); got != nil || err != nil {
					t.Errorf("after %s: %v, %v", got.Off, got, err)
				}
			}
		})
	}
}

// If its configuration turns Zincati off, it keeps running and says so in the status of its unit.
func TestCoordinators_ZincatiThatIsTurnedOff_Behaviour57(t *testing.T) {
	_, units, coordinators := startUnits(t)
	coordinators.HostRoot = newRoot(t, map[string]string{"etc/x": "", "usr/x": "", "run/x": ""})
	units.Set("zincati.service", "active")
	units.SetStatusText("zincati.service", "initialization complete, auto-updates logic disabled by configuration")
	if got, err := coordinators.Other(t.Context()); got != nil || err != nil {
		t.Errorf("turned off: %v, %v", got, err)
	}
	units.SetStatusText("zincati.service", "periodically polling for updates (last checked Sun 2026-11-22)")
	got, err := coordinators.Other(t.Context())
	must(t, err)
	if diff := cmp.Diff(&Coordinator{Name: "Zincati", Unit: "zincati.service", Off: zincatiAdvice}, got); diff != "" {
		t.Errorf("turned on (-want +got):\n%s", diff)
	}
}

// Zincati reads its configuration when it starts. If that has changed since or cannot be read, its
// behaviour is unknown. Zincati then counts as a conflict and not as a client.
func TestFleetLockClient(t *testing.T) {
	const unit, name = "zincati.service", "etc/zincati/config.d/90.toml"
	asks := map[string]string{name: "[updates]\nstrategy = \"fleet_lock\"\n", "usr/x": "", "run/x": ""}
	past := uint64(time.Now().Add(-time.Hour).UnixMicro())
	for name, tc := range map[string]struct {
		files  map[string]string
		adapt  func(*hosttest.Units)
		client string
		// conflict is part of the error of Other.
		conflict string
	}{
		"it asks":                          {files: asks, client: "Zincati"},
		"the unit is about to start":       {files: asks, adapt: func(u *hosttest.Units) { u.Set(unit, "activating") }, client: "Zincati"},
		"the unit does not run":            {files: asks, adapt: func(u *hosttest.Units) { u.Set(unit, "inactive") }},
		"Zincati's updates are turned off": {files: asks, adapt: func(u *hosttest.Units) { u.SetStatusText(unit, "auto-updates logic disabled by configuration") }},
		"Zincati started before its configuration was changed": {files: asks, adapt: func(u *hosttest.Units) { u.SetStarted(unit, past) }, conflict: "has changed since it started"},
		"the start of Zincati is unknown":                      {files: asks, adapt: func(u *hosttest.Units) { u.SetStarted(unit, "today") }, conflict: "instead of a number"},
		"another strategy":                                     {files: map[string]string{name: "[updates]\nstrategy = \"periodic\"\n", "usr/x": "", "run/x": ""}},
		"no TOML":                                              {files: map[string]string{name: "[updates\nstrategy=fleet_lock", "usr/x": "", "run/x": ""}, conflict: "90.toml"},
		"a strategy of another type":                           {files: map[string]string{name: "[updates]\nstrategy = 7\n", "usr/x": "", "run/x": ""}, conflict: "90.toml"},
		"/usr is not mounted":                                  {files: map[string]string{name: asks[name], "run/x": ""}, conflict: "reading /usr of the host"},
	} {
		t.Run(name, func(t *testing.T) {
			_, units, coordinators := startUnits(t)
			coordinators.HostRoot = newRoot(t, tc.files)
			units.Set(unit, "active")
			if tc.adapt != nil {
				tc.adapt(units)
			}
			client, err := coordinators.FleetLockClient(t.Context())
			if client != tc.client || (err == nil) != (tc.conflict == "") {
				t.Errorf("client %q, %v", client, err)
			}
			other, err := coordinators.Other(t.Context())
			if tc.conflict != "" && (err == nil || !strings.Contains(err.Error(), tc.conflict)) || tc.client != "" && (other != nil || err != nil) {
				t.Errorf("conflict %v, %v", other, err)
			}
		})
	}
}

func TestCoordinators_AreUnknownIfAFileCannotBeRead_Behaviour57(t *testing.T) {
	const ostree, apt, transactional = "rpm-ostreed-automatic.timer", "apt-daily-upgrade.timer", "transactional-update.timer"
	shell := func(content string) map[string]string {
		return map[string]string{"etc/transactional-update.conf": content, "usr/x": ""}
	}
	for name, tc := range map[string]struct {
		unit  string
		files map[string]string
		want  string
	}{
		"/etc is not mounted":           {ostree, nil, "reading /etc of the host: no such file or directory"},
		"an unknown update policy":      {ostree, map[string]string{"etc/rpm-ostreed.conf": "[Daemon]\nAutomaticUpdatePolicy=live\n"}, `AutomaticUpdatePolicy is "live"`},
		"a folder in place of the file": {ostree, map[string]string{"etc/rpm-ostreed.conf/x": ""}, "reading /etc/rpm-ostreed.conf of the host"},
		"a file without end":            {ostree, map[string]string{"etc/rpm-ostreed.conf": strings.Repeat("#", maxFileBytes)}, "it has more than 65536 bytes"},
		"apt, not mounted":              {apt, nil, "reading /etc of the host"},
		"apt, a file in place of the folder": {
			apt, map[string]string{"etc/apt/apt.conf.d": ""}, "reading /etc/apt/apt.conf.d of the host: not a directory",
		},
		"apt, a text without its end": {
			apt, map[string]string{"etc/apt/apt.conf.d/50": `Unattended-Upgrade::Automatic-Reboot "true;`}, "reading /etc/apt/apt.conf.d/50 of the host: it is not apt's syntax",
		},
		// With these values transactional-update reboots the host, because it does not know the
		// method or chooses one itself.
		"a shell reads the carriage return, too": {transactional, shell("REBOOT_METHOD=kured\r\n"), `of the host: "REBOOT_METHOD=kured\r" is more than an assignment`},
		"a shell reads no more after a quote":    {transactional, shell("A='b\nREBOOT_METHOD=kured\n"), `"A='b" is more than an assignment`},
		"a shell reads a number sign in a word":  {transactional, shell("REBOOT_METHOD=kured#1\n"), `"REBOOT_METHOD=kured#1" is more than an assignment`},
		"a shell reads more than assignments":    {transactional, shell("REBOOT_METHOD=kured\nexport REBOOT_METHOD=auto\n"), `"export REBOOT_METHOD=auto" is more than an assignment`},
		"apt, a value that is neither true nor false": {
			apt, map[string]string{"etc/apt/apt.conf": `Unattended-Upgrade::Automatic-Reboot "perhaps";`}, `Unattended-Upgrade::Automatic-Reboot is "perhaps"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, units, coordinators := startUnits(t)
			coordinators.HostRoot = newRoot(t, tc.files)
			units.Set(tc.unit, "active")
			got, err := coordinators.Other(t.Context())
			if got != nil || err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), tc.unit+" is active; whether ") {
				t.Errorf("found %v, %v", got, err)
			}
			if err != nil && strings.Contains(err.Error(), coordinators.HostRoot) {
				t.Errorf("%q names the container's path", err)
			}
			// A coordinator that was found is reported even if another check fails.
			units.Set("locksmithd.service", "active")
			if got, err := coordinators.Other(t.Context()); got == nil || got.Name != "locksmithd" {
				t.Errorf("found %v, %v", got, err)
			}
		})
	}
	_, units, coordinators := startUnits(t)
	units.Set("zincati.service", "active")
	units.SetStatusText("zincati.service", uint32(1))
	if got, err := coordinators.Other(t.Context()); got != nil || err == nil || !strings.Contains(err.Error(), "u instead of a string") {
		t.Errorf("a status that is not text: %v, %v", got, err)
	}
}

// A link may lead to a file that is not mounted into the agent's pod. Its content is then unknown,
// not empty.
func TestCoordinators_AreUnknownIfALinkLeavesTheMount_Behaviour57(t *testing.T) {
	for link, unit := range map[string]string{
		"etc/rpm-ostreed.conf": "rpm-ostreed-automatic.timer", "etc/apt/apt.conf.d": "apt-daily-upgrade.timer",
		"etc/apt": "apt-daily-upgrade.timer", "etc/dnf": "dnf-automatic-install.timer",
	} {
		t.Run(link, func(t *testing.T) {
			_, units, coordinators := startUnits(t)
			units.Set(unit, "active")
			must(t, os.MkdirAll(filepath.Join(coordinators.HostRoot, filepath.Dir(link)), 0o700))
			must(t, os.MkdirAll(filepath.Join(coordinators.HostRoot, "usr"), 0o700))
			must(t, os.Symlink("/opt/configuration", filepath.Join(coordinators.HostRoot, link)))
			got, err := coordinators.Other(t.Context())
			if got != nil || err == nil || !strings.Contains(err.Error(), "reading /opt of the host: no such file or directory") {
				t.Errorf("found %v, %v", got, err)
			}
		})
	}
}

// A link to /dev/null disables a file of a package. A link to a missing file has no effect, so that
// remains of a removed package do not block the node.
func TestCoordinators_ALinkToNothingIsEmpty(t *testing.T) {
	for name, target := range map[string]string{
		"turned off": os.DevNull, "turned off, by a relative link": "../../../dev/null", "dangling": "/usr/share/gone/20apt.conf", "dangling, relative": "gone.conf",
	} {
		t.Run(name, func(t *testing.T) {
			_, units, coordinators := startUnits(t)
			units.Set("apt-daily-upgrade.timer", "active")
			coordinators.HostRoot = newRoot(t, map[string]string{
				"etc/apt/apt.conf.d/50unattended-upgrades": "Unattended-Upgrade::Automatic-Reboot \"false\";", "usr/bin/apt": "",
			})
			must(t, os.Symlink(target, filepath.Join(coordinators.HostRoot, "etc/apt/apt.conf.d/20apt-esm-hook.conf")))
			if got, err := coordinators.Other(t.Context()); got != nil || err != nil {
				t.Errorf("found %v, %v", got, err)
			}
		})
	}
}

// Links in the middle of a path are resolved below the host's root, too.
func TestCoordinators_AFolderMayBeALink(t *testing.T) {
	_, units, coordinators := startUnits(t)
	units.Set("apt-daily-upgrade.timer", "active")
	coordinators.HostRoot = newRoot(t, map[string]string{"usr/local/etc/apt/apt.conf.d/50": "Unattended-Upgrade::Automatic-Reboot \"true\";"})
	must(t, os.MkdirAll(filepath.Join(coordinators.HostRoot, "etc"), 0o700))
	must(t, os.Symlink("/usr/local/etc/apt", filepath.Join(coordinators.HostRoot, "etc/apt")))
	if got, err := coordinators.Other(t.Context()); got == nil || err != nil {
		t.Errorf("found %v, %v", got, err)
	}
}

// TestIsAptFile compares with the output of apt-config dump of apt 2.6 for a folder of files with
// these names.
func TestIsAptFile(t *testing.T) {
	for name, want := range map[string]bool{
		"50unattended-upgrades": true, "57foo.conf": true, "52a.b.conf": true, "58x:y": true, "59_Z": true,
		"50unattended-upgrades~": false, "#50unattended-upgrades#": false, "50unattended-upgrades.ucf-dist": false, "57foo.conf~": false,
		".53.conf": false, "54 a": false, "55,": false, "56foo+bar.conf": false, "59end.": false, "60ä": false,
	} {
		if got := isAptFile(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}

func TestAptValue(t *testing.T) {
	const option = "Unattended-Upgrade::Automatic-Reboot"
	for content, want := range map[string]string{
		"": "before", "\n# " + option + " \"true\";\n": "before", "# a brace {\n" + option + ` "true";`: "true", "/* " + option + " \"true\"; */": "before",
		"/*/ by hand */ " + option + ` "true"; /*/ ` + option + ` "false"; /*/`: "true",
		option + ` "true";`: "true", option + ` true;`: "true", `UNATTENDED-UPGRADE::automatic-reboot "1";`: "1",
		"Unattended-Upgrade {\n\tMail \"root\";\n\tAutomatic-Reboot \"true\"; // at night\n\tOrigins { \"a=b\"; };\n};": "true",
		"Unattended-Upgrade { Automatic-Reboot \"true\" };":                                                             "true", "Unattended-Upgrade { Mail \"root\"; Automatic-Reboot \"true\"\n}": "true",
		option + ` "true";` + option + ` "false";`: "false",
		// As in apt-config of apt 2.6: an option without a value sets nothing, and the text after a
		// block's name is not part of the names of its options.
		option + ` "true";` + option + `;`:                "true",
		`Unattended-Upgrade "x" { Automatic-Reboot 1; };`: "1",
		option + `-Time "02:00";`:                         "before",
		// #clear also clears the options within a block. No comment may follow it, and an empty
		// text is a value.
		"x 1; #clear " + option + ";":                                       "",
		"#clear unattended-upgrade;":                                        "",
		"#clear Unattended;":                                                "before",
		"#clear x; " + option + ` "true";`:                                  "true",
		option + ` "true"; ` + option + ` "";`:                              "",
		`::Unattended-Upgrade { Automatic-Reboot 1; };`:                     "before",
		`"" { Unattended-Upgrade { Automatic-Reboot 1; }; };`:               "1",
		`"Unattended-"Upgrade::Automatic-"Reboot"# by hand` + "\n\"true\";": "true",
		`a "{"; b ";"; ` + option + ` "true";`:                              "true",
		`APT::NeverAutoRemove { "^linux-.*"; };`:                            "before",
	} {
		if got, err := aptValue(content, option, "before"); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", content, got, err, want)
		}
	}
	for _, content := range []string{"{", "}", `"`, "/*", "a", "a {", "a { b 1; ", "#include \"/etc/apt/more\";\n", "a 1; #include b;"} {
		if got, err := aptValue(content, option, ""); err == nil {
			t.Errorf("%q: %q, want an error", content, got)
		}
	}
}

func FuzzAptValue(f *testing.F) {
	f.Add("Unattended-Upgrade { Automatic-Reboot \"true\"; }; // x\n/* y */ #z")
	f.Fuzz(func(t *testing.T, content string) {
		value, err := aptValue(content, "a::b", "")
		if err == nil && len(value) > len(content) {
			t.Errorf("%q is longer than %q", value, content)
		}
	})
}
