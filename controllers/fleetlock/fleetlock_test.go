package fleetlock

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// The IDs were computed by systemd-id128 of systemd 257.
func TestAppSpecific_AsSystemdID128ComputesIt(t *testing.T) {
	vectors := map[string]string{
		"0123456789abcdef0123456789abcdef":     "583627a932274834a8ebd99f4ed41c0d",
		"1f0e2d3c4b5a69788796a5b4c3d2e1f0":     "0cd95ca661de4ec197041208d8d52654",
		"3d1219c7c4c5404aaa1f6d2a48adfda4":     "975228d46dc94622b9bbe16671e2b58d",
		"01234567-89AB-CDEF-0123-456789ABCDEF": "583627a932274834a8ebd99f4ed41c0d",
		"00000000000000000000000000000000":     "",
		"uninitialized":                        "",
		"0123":                                 "",
		"":                                     "",
	}
	// If systemd is installed, this machine provides another vector.
	if own, err := os.ReadFile("/etc/machine-id"); err == nil {
		if id, err := exec.Command("systemd-id128", "machine-id", "--app-specific="+appID).Output(); err == nil {
			vectors[strings.TrimSpace(string(own))] = strings.TrimSpace(string(id))
		}
	}
	for machineID, want := range vectors {
		if got := strings.Join(appSpecific(machineID), ","); got != want {
			t.Errorf("%q: %q, want %q", machineID, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		want string
	}{
		"Zincati's":                              {`{"client_params":{"id":"583627a932274834a8ebd99f4ed41c0d","group":"default"}}`, ""},
		"a Node's name":                          {`{"client_params":{"id":"n1.example.com","group":"a.b-C9"}}`, ""},
		"fields that the protocol does not have": {`{"client_params":{"id":"n1","group":"default","x":1},"y":{}}`, ""},
		"no JSON":                                {`id=n1`, "the body is not JSON"},
		"nothing":                                {``, "the body is not JSON"},
		"two bodies":                             {`{"client_params":{"id":"n1","group":"default"}}{}`, "the body is not JSON"},
		"no parameters":                          {`{}`, "needs client_params"},
		"no group":                               {`{"client_params":{"id":"n1"}}`, "needs client_params"},
		"no id":                                  {`{"client_params":{"group":"default"}}`, "needs client_params"},
		"an id of another type":                  {`{"client_params":{"id":7,"group":"default"}}`, "the body is not JSON"},
		"an empty id":                            {`{"client_params":{"id":"","group":"default"}}`, "client_params.id must be"},
		"an id with a line break":                {`{"client_params":{"id":"n1\nforged","group":"default"}}`, "client_params.id must be"},
		"an id that is too long":                 {`{"client_params":{"id":"` + strings.Repeat("a", 254) + `","group":"default"}}`, "client_params.id must be"},
		"an empty group":                         {`{"client_params":{"id":"n1","group":""}}`, "client_params.group must be"},
		"a group with spaces":                    {`{"client_params":{"id":"n1","group":"a b"}}`, "client_params.group must be"},
		"a group with an underscore":             {`{"client_params":{"id":"n1","group":"a_b"}}`, "client_params.group must be"},
		"the id twice":                           {`{"client_params":{"id":"n1","id":"n2","group":"default"}}`, "the body is not JSON"},
		"the parameters twice":                   {`{"client_params":{"id":"n1","group":"default"},"client_params":{"group":"a"}}`, "the body is not JSON"},
		"keys in capital letters":                {`{"CLIENT_PARAMS":{"ID":"n1","GROUP":"default"}}`, "needs client_params"},
		"a body of more than 4 KiB":              {strings.Repeat(" ", MaxBodyBytes) + `{}`, "more than 4096 bytes"},
		"deeply nested":                          {strings.Repeat(`{"a":`, 500), "the body is not JSON"},
		"an id that is not valid UTF-8":          {"{\"client_params\":{\"id\":\"\xff\",\"group\":\"default\"}}", "client_params.id must be"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.body))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"client_params":{"id":"n1","group":"default"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if r, err := Parse(body); err == nil && (!isWord(r.ID, "._:-") || !isWord(r.Group, ".-")) {
			t.Errorf("accepted %q", body)
		}
	})
}

func node(name, machineID, firmware string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid"}}
	n.Status.NodeInfo = corev1.NodeSystemInfo{MachineID: machineID, SystemUUID: firmware, BootID: "boot"}
	return n
}

// Some clouds name Nodes by UUIDs.
func TestMachineIDs_HaveANameThatIsAnID(t *testing.T) {
	const name = "3d1219c7-c4c5-404a-aa1f-6d2a48adfda4"
	n := node(name, "", "")
	for _, id := range []string{name, strings.ToUpper(name), strings.ReplaceAll(name, "-", "")} {
		if !slices.Contains(MachineIDs(&n), Normalize(id)) {
			t.Errorf("%s is not in %v", id, MachineIDs(&n))
		}
	}
}

func TestComesFrom(t *testing.T) {
	n := node("n1", "", "")
	n.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "n1"},
		{Type: corev1.NodeInternalIP, Address: "192.0.2.7"},
		{Type: corev1.NodeInternalIP, Address: "2001:DB8:0::7"},
		{Type: corev1.NodeInternalIP, Address: "fe80::7"},
	}
	for address, want := range map[string]bool{
		"192.0.2.7": true, "::ffff:192.0.2.7": true, "2001:db8::7": true, "fe80::7%eth0": true,
		"192.0.2.70": false, "2001:db8::8": false, "n1": false, "": false,
	} {
		if got := ComesFrom(&n, address); got != want {
			t.Errorf("%q: %t, want %t", address, got, want)
		}
	}
}

func TestClient(t *testing.T) {
	for name, tc := range map[string]struct {
		machine, firmware []corev1.Node
		want              string
	}{
		"one Node":                                {machine: []corev1.Node{node("n1", "", "")}, want: "n1"},
		"by its firmware's UUID":                  {firmware: []corev1.Node{node("n2", "", "")}, want: "n2"},
		"the machine ID comes before the UUID":    {machine: []corev1.Node{node("n1", "", "")}, firmware: []corev1.Node{node("n2", "", "")}, want: "n1"},
		"unknown":                                 {want: "UnknownClient"},
		"two Nodes with a cloned machine ID":      {machine: []corev1.Node{node("n1", "", ""), node("n2", "", "")}, want: "AmbiguousClient"},
		"two Nodes with the same firmware's UUID": {firmware: []corev1.Node{node("n1", "", ""), node("n2", "", "")}, want: "AmbiguousClient"},
	} {
		t.Run(name, func(t *testing.T) {
			got, refusal := Client("id", tc.machine, tc.firmware)
			result := string(refusal.Reason)
			if got != nil {
				result = got.Name
			}
			if result != tc.want || refusal.Waits {
				t.Errorf("%s, want %s (waits: %t)", result, tc.want, refusal.Waits)
			}
		})
	}
}

// rebooting is a Node past the point of no return.
func rebooting(adapt func(*protocol.Grant, *protocol.Progress, *corev1.Node)) *corev1.Node {
	n := node("n1", "", "")
	t := metav1.NewTime(time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC))
	grant := protocol.Grant{Policy: "workers", Seq: 7, BootID: "boot", State: protocol.GrantActive, At: t}
	progress := protocol.Progress{Seq: 7, Phase: protocol.PhaseRebooting, BootID: "boot", At: t}
	adapt(&grant, &progress, &n)
	n.Annotations = map[string]string{v1alpha1.AnnotationGrant: grant.String(), v1alpha1.AnnotationProgress: progress.String()}
	return &n
}

var ledger = []v1alpha1.LedgerEntry{{Node: "n0", NodeUID: "uid", Seq: 7}, {Node: "n1", NodeUID: "uid", Seq: 7, BootID: "boot"}}

// A yes requires the point of no return, an active grant for the boot that the Node reports, and an
// entry in the ledger.
func TestPreReboot_IsYesPastThePointOfNoReturnAlone_Behaviour65(t *testing.T) {
	for name, tc := range map[string]struct {
		adapt  func(*protocol.Grant, *protocol.Progress, *corev1.Node)
		ledger []v1alpha1.LedgerEntry
		want   v1alpha1.Reason
	}{
		"past it":                                {func(*protocol.Grant, *protocol.Progress, *corev1.Node) {}, ledger, ""},
		"draining":                               {func(_ *protocol.Grant, p *protocol.Progress, _ *corev1.Node) { p.Phase = protocol.PhaseDraining }, ledger, v1alpha1.ReasonAgentsMissing},
		"aborted":                                {func(_ *protocol.Grant, p *protocol.Progress, _ *corev1.Node) { p.Phase = protocol.PhaseAborted }, ledger, v1alpha1.ReasonAgentsMissing},
		"the grant was cancelled":                {func(g *protocol.Grant, _ *protocol.Progress, _ *corev1.Node) { g.State = protocol.GrantCancelled }, ledger, v1alpha1.ReasonAgentsMissing},
		"the grant is finished":                  {func(g *protocol.Grant, _ *protocol.Progress, _ *corev1.Node) { g.State = protocol.GrantFinished }, ledger, v1alpha1.ReasonAgentsMissing},
		"a newer grant":                          {func(g *protocol.Grant, _ *protocol.Progress, _ *corev1.Node) { g.Seq = 8 }, ledger, v1alpha1.ReasonAgentsMissing},
		"the host has booted":                    {func(_ *protocol.Grant, _ *protocol.Progress, n *corev1.Node) { n.Status.NodeInfo.BootID = "next" }, ledger, v1alpha1.ReasonAgentsMissing},
		"the boot is unknown":                    {func(_ *protocol.Grant, _ *protocol.Progress, n *corev1.Node) { n.Status.NodeInfo.BootID = "" }, ledger, v1alpha1.ReasonAgentsMissing},
		"the progress is from the previous boot": {func(_ *protocol.Grant, p *protocol.Progress, _ *corev1.Node) { p.BootID = "before" }, ledger, v1alpha1.ReasonAgentsMissing},
		"the ledger has no entry":                {func(*protocol.Grant, *protocol.Progress, *corev1.Node) {}, ledger[:1], v1alpha1.ReasonGrantWithdrawn},
		"the entry is of another Node":           {func(_ *protocol.Grant, _ *protocol.Progress, n *corev1.Node) { n.UID = "again" }, ledger, v1alpha1.ReasonGrantWithdrawn},
	} {
		t.Run(name, func(t *testing.T) {
			got := PreReboot(rebooting(tc.adapt), tc.ledger)
			if got.OK != (tc.want == "") || got.Reason != tc.want || !got.OK && !got.Waits {
				t.Errorf("%+v, want %q", got, tc.want)
			}
		})
	}
}

func TestPreReboot_HasReasonAndSentenceOfTheNode(t *testing.T) {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	required := condition(v1alpha1.NodeRebootRequired, corev1.ConditionTrue, "UpdateStaged", "rpm-ostree has staged 44.")
	long := strings.Repeat("x", 4000)
	for name, tc := range map[string]struct {
		conditions []corev1.NodeCondition
		want       Error
		waits      bool
	}{
		"no agent": {nil, Error{"agents_missing", "No agent of reboot-operator has reported from Node n1 yet."}, true},
		"no need": {
			[]corev1.NodeCondition{condition(v1alpha1.NodeRebootRequired, corev1.ConditionFalse, "UpToDate", "Nothing is staged.")},
			Error{"up_to_date", "Nothing is staged. A request alone counts only with --fleetlock-requests."},
			true,
		},
		"no decision yet": {[]corev1.NodeCondition{required}, Error{"update_staged", "rpm-ostree has staged 44. No policy has decided about the reboot yet."}, true},
		"refused": {
			[]corev1.NodeCondition{required, condition(v1alpha1.NodeRebootPermitted, corev1.ConditionFalse, "WindowClosed", "no window is open")},
			Error{"window_closed", "no window is open"},
			true,
		},
		"granted": {
			[]corev1.NodeCondition{required, condition(v1alpha1.NodeRebootPermitted, corev1.ConditionTrue, "Granted", "granted by policy workers, number 7")},
			Error{"granted", "granted by policy workers, number 7"},
			true,
		},
		"a drain has failed": {
			[]corev1.NodeCondition{required, condition(v1alpha1.NodeRebootPermitted, corev1.ConditionFalse, "BackingOff", "the drain failed")},
			Error{"backing_off", "the drain failed"},
			false,
		},
		"a condition that anybody may write": {
			[]corev1.NodeCondition{required, condition(v1alpha1.NodeRebootPermitted, corev1.ConditionFalse, "no reason\n", long)},
			Error{"unknown", long[:1021] + "…"},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := node("n1", "", "")
			n.Status.Conditions = tc.conditions
			got := PreReboot(&n, ledger)
			if diff := cmp.Diff(tc.want, got.Error()); diff != "" || got.OK || got.Waits != tc.waits {
				t.Errorf("%+v (-want +got):\n%s", got, diff)
			}
		})
	}
}

func TestSteadyState_WaitsForTheBootAndForNoPerson(t *testing.T) {
	for name, tc := range map[string]struct {
		adapt func(*protocol.Grant, *protocol.Progress, *corev1.Node)
		want  bool
	}{
		"rebooting": {func(*protocol.Grant, *protocol.Progress, *corev1.Node) {}, false},
		"booted, and not settled": {func(_ *protocol.Grant, _ *protocol.Progress, n *corev1.Node) {
			n.Status.NodeInfo.BootID = "next"
		}, false},
		"back in service": {func(g *protocol.Grant, _ *protocol.Progress, n *corev1.Node) {
			g.State, n.Status.NodeInfo.BootID = protocol.GrantFinished, "next"
		}, true},
		"draining": {func(_ *protocol.Grant, p *protocol.Progress, _ *corev1.Node) { p.Phase = protocol.PhaseDraining }, true},
		"not back in time": {func(_ *protocol.Grant, _ *protocol.Progress, n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeRebootFailed, Status: corev1.ConditionTrue}}
		}, true},
		"up, and still in the previous boot": {func(_ *protocol.Grant, _ *protocol.Progress, n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeRebootPermitted, Status: corev1.ConditionFalse, Reason: "RebootTimedOut"}}
		}, true},
		"booted, and its policy was deleted": {func(_ *protocol.Grant, _ *protocol.Progress, n *corev1.Node) {
			n.Status.NodeInfo.BootID = "next"
			n.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeRebootPermitted, Status: corev1.ConditionFalse, Reason: "NoPolicy"}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := SteadyState(rebooting(tc.adapt)); got.OK != tc.want || !got.OK && got.Reason != v1alpha1.ReasonRebooting {
				t.Errorf("%+v", got)
			}
		})
	}
	t.Run("after-hooks run", func(t *testing.T) {
		n := rebooting(func(_ *protocol.Grant, _ *protocol.Progress, n *corev1.Node) { n.Status.NodeInfo.BootID = "next" })
		n.Annotations[v1alpha1.AnnotationHooks] = protocol.HookPhase{
			Policy: "workers", BootID: "next", Seq: 7, Stage: v1alpha1.HooksAfter, Hooks: []v1alpha1.AnnotationKey{"example.com/approve"}, At: metav1.Now(),
		}.String()
		if got := SteadyState(n); !got.OK {
			t.Errorf("%+v", got)
		}
	})
	t.Run("without a grant", func(t *testing.T) {
		n := node("n1", "", "")
		if got := SteadyState(&n); !got.OK {
			t.Errorf("%+v", got)
		}
	})
}

func TestRecord_WritesNoMoreThanARequestNeedsToLast(t *testing.T) {
	now := time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	recorded := func(boot string, ago time.Duration) string {
		return protocol.FleetLockRequest{BootID: boot, ID: "n1", At: metav1.NewTime(now.Add(-ago))}.String()
	}
	reported := func(boot, engine string) map[string]string {
		asks := protocol.EngineRecord{Name: engine, Asks: true, Client: "Zincati"}
		return map[string]string{v1alpha1.AnnotationEngines: protocol.Engines{BootID: boot, Reported: []protocol.EngineRecord{asks}}.String()}
	}
	for name, tc := range map[string]struct {
		annotations map[string]string
		boot        string
		want        bool
	}{
		"the first request":            {nil, "boot", true},
		"for a Node without a boot ID": {nil, "", false},
		"again, soon":                  {map[string]string{v1alpha1.AnnotationFleetLock: recorded("boot", 20*time.Minute-time.Second)}, "boot", false},
		"again, later":                 {map[string]string{v1alpha1.AnnotationFleetLock: recorded("boot", 20*time.Minute)}, "boot", true},
		"in the next boot":             {map[string]string{v1alpha1.AnnotationFleetLock: recorded("before", 0)}, "boot", true},
		"after a request dated by a clock that was ahead":        {map[string]string{v1alpha1.AnnotationFleetLock: recorded("boot", -2*time.Hour)}, "boot", true},
		"dated by a clock that is behind the previous one's":     {map[string]string{v1alpha1.AnnotationFleetLock: recorded("boot", -10*time.Minute)}, "boot", false},
		"after a request that cannot be read":                    {map[string]string{v1alpha1.AnnotationFleetLock: "?"}, "boot", true},
		"of Zincati":                                             {reported("boot", "rpm-ostree"), "boot", false},
		"from Zincati, which asked in another boot":              {reported("before", "rpm-ostree"), "boot", true},
		"from a client that the agent knows only by the request": {reported("boot", protocol.FleetLockEngine), "boot", true},
	} {
		t.Run(name, func(t *testing.T) {
			n := node("n1", "", "")
			n.Annotations, n.Status.NodeInfo.BootID = tc.annotations, tc.boot
			got := Record(&n, "n1", now)
			if (got != nil) != tc.want {
				t.Fatalf("%+v", got)
			}
			if want := (protocol.FleetLockRequest{BootID: "boot", ID: "n1", At: metav1.NewTime(now)}); got != nil && *got != want {
				t.Errorf("%+v", got)
			}
		})
	}
}
