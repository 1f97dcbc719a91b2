package fleet

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/judge/feed"
)

// witness has every revision of every Node and policy since it was made.
type witness struct {
	fleet *Fleet
	api   client.WithWatch
	feed  *feed.Feed
}

func newWitness(t *testing.T, f *Fleet) *witness {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, corev1.AddToScheme(scheme))
	must(t, v1alpha1.AddToScheme(scheme))
	api, err := client.NewWithWatch(f.Cluster.Config(), client.Options{Scheme: scheme})
	must(t, err)
	seen, err := feed.Watch(t.Context(), api, feed.Kind{List: &corev1.NodeList{}}, feed.Kind{List: &v1alpha1.RebootPolicyList{}})
	must(t, err)
	return &witness{fleet: f, api: api, feed: seen}
}

// check fails where the judge finds anything, where an attempt has ended before its time, and where none was seen.
func (w *witness) check(t *testing.T) {
	t.Helper()
	var nodes corev1.NodeList
	var policies v1alpha1.RebootPolicyList
	must(t, w.api.List(t.Context(), &nodes))
	must(t, w.api.List(t.Context(), &policies))
	var present []client.Object
	for i := range nodes.Items {
		present = append(present, &nodes.Items[i])
	}
	for i := range policies.Items {
		present = append(present, &policies.Items[i])
	}
	var history []judge.Change
	var failed error
	must(t, w.fleet.Await(t.Context(), "the witness to see the present", func() bool {
		history, failed = w.feed.History(present...)
		return history != nil || failed != nil
	}))
	must(t, failed)
	j := judge.New(judge.Options{TrueClocks: true})
	for _, r := range history {
		j.Take(r)
	}
	for _, v := range j.Violations() {
		t.Error(v)
	}
	seen, wrong := early(history)
	if seen == 0 {
		t.Error("the witness has seen no attempt")
	}
	for _, how := range wrong {
		t.Error(how)
	}
}

// early finds what the judge allows and an upgrade in mid-drain does not: between a grant and the reboot the node is not uncordoned,
// the attempt not given up, and the slot not released. seen counts revisions of nodes in mid-attempt and entries of ledgers.
func early(history []judge.Change) (seen int, wrong []string) {
	boots, ledgers := map[string]string{}, map[string][]v1alpha1.LedgerEntry{}
	for _, r := range history {
		if r.Node != nil {
			boots[r.Name] = r.Node.Status.NodeInfo.BootID
			if how, attempt := ended(r.Node); attempt {
				seen++
				wrong = append(wrong, how...)
			}
			continue
		}
		for _, was := range ledgers[r.Name] {
			there := slices.ContainsFunc(r.Policy.Status.Grants, func(is v1alpha1.LedgerEntry) bool { return is.Node == was.Node && is.Seq == was.Seq })
			if !there && boots[was.Node] == was.BootID {
				wrong = append(wrong, fmt.Sprintf("%s: slot %d is released on boot %s", was.Node, was.Seq, was.BootID))
			}
		}
		ledgers[r.Name] = r.Policy.Status.Grants
		seen += len(r.Policy.Status.Grants)
	}
	return seen, wrong
}

// ended is how a node's attempt has ended before its time, where it is in one.
func ended(node *corev1.Node) (wrong []string, attempt bool) {
	grant, err := protocol.ParseGrant(node.Annotations)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", node.Name, err)}, true
	}
	progress, err := protocol.ParseProgress(node.Annotations)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", node.Name, err)}, true
	}
	switch {
	case grant == nil || progress == nil || progress.Seq != grant.Seq || grant.State == protocol.GrantFinished:
		return nil, false
	case grant.State == protocol.GrantCancelled:
		return []string{fmt.Sprintf("%s: grant %d is cancelled in mid-attempt (%s)", node.Name, grant.Seq, grant.Reason)}, true
	case progress.Phase == protocol.PhaseAborted:
		return []string{fmt.Sprintf("%s: attempt %d is given up (%s)", node.Name, grant.Seq, progress.Reason)}, true
	case !node.Spec.Unschedulable:
		return []string{fmt.Sprintf("%s: uncordoned while %s", node.Name, progress.Phase)}, true
	}
	return nil, true
}

func TestEarly(t *testing.T) {
	policy := func(grants ...v1alpha1.LedgerEntry) judge.Change {
		return judge.Change{Name: "p", Policy: &v1alpha1.RebootPolicy{Status: v1alpha1.RebootPolicyStatus{Grants: grants}}}
	}
	node := func(boot string, state protocol.GrantState, phase protocol.Phase, cordoned bool) judge.Change {
		n, at := &corev1.Node{}, metav1.Unix(1_000_000_000, 0)
		n.Name, n.Spec.Unschedulable, n.Status.NodeInfo.BootID = "n", cordoned, boot
		n.Annotations = map[string]string{
			v1alpha1.AnnotationGrant:    protocol.Grant{Policy: "p", Seq: 1, BootID: "1", State: state, Reason: "Why", At: at}.String(),
			v1alpha1.AnnotationProgress: protocol.Progress{Seq: 1, BootID: "1", Phase: phase, Cordoned: cordoned, Reason: "Why", At: at}.String(),
		}
		return judge.Change{Name: "n", Node: n}
	}
	entry := v1alpha1.LedgerEntry{Node: "n", Seq: 1, BootID: "1"}
	drains := node("1", protocol.GrantActive, protocol.PhaseDraining, true)
	for name, tc := range map[string]struct {
		history []judge.Change
		seen    int
		want    []string
	}{
		"a whole reboot": {[]judge.Change{
			policy(entry), drains, node("2", protocol.GrantActive, protocol.PhaseRebooting, true), policy(), node("2", protocol.GrantFinished, protocol.PhaseRebooting, false),
		}, 3, nil},
		"nothing":                   {nil, 0, nil},
		"a slot that is released":   {[]judge.Change{policy(entry), drains, policy()}, 2, []string{"n: slot 1 is released on boot 1"}},
		"a grant that is cancelled": {[]judge.Change{node("1", protocol.GrantCancelled, protocol.PhaseDraining, true)}, 1, []string{"n: grant 1 is cancelled in mid-attempt (Why)"}},
		"a drain that is given up":  {[]judge.Change{node("1", protocol.GrantActive, protocol.PhaseAborted, true)}, 1, []string{"n: attempt 1 is given up (Why)"}},
		"a node that is uncordoned": {[]judge.Change{node("1", protocol.GrantActive, protocol.PhaseDraining, false)}, 1, []string{"n: uncordoned while Draining"}},
	} {
		t.Run(name, func(t *testing.T) {
			seen, wrong := early(tc.history)
			if diff := cmp.Diff(tc.want, wrong); diff != "" || seen != tc.seen {
				t.Errorf("%d attempts seen, want %d; (-want +got):\n%s", seen, tc.seen, diff)
			}
		})
	}
}
