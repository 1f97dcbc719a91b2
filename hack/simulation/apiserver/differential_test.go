package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/judge/definition"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// server is what both API servers do. An object that was written comes back, but for a deletion.
type server interface {
	create(object client.Object, by string) (client.Object, error)
	patch(object client.Object, kind types.PatchType, status bool, patch, by string) (client.Object, error)
	putStatus(policy *v1alpha1.RebootPolicy, by string) (client.Object, error)
	remove(object client.Object) error
	// seen are the revisions of both kinds, each kind in the order of its watch.
	seen(t *testing.T, last string) []string
}

// request is one request. version is the object's resourceVersion; outdated is one that it has had before.
type request struct {
	name string
	do   call
}

type call func(s server, version, outdated string) (client.Object, error)

const (
	nodeName   = "n"
	policyName = "p"
)

func requests() (nodes, policies []request) {
	patch := func(object client.Object, kind types.PatchType, status bool, patch, by string) call {
		return func(s server, version, outdated string) (client.Object, error) {
			return s.patch(object, kind, status, strings.NewReplacer("$VERSION", version, "$OUTDATED", outdated).Replace(patch), by)
		}
	}
	node := func(status bool, text, by string) call {
		return patch(makeNode(), types.StrategicMergePatchType, status, text, by)
	}
	policy := func(text string) call {
		return patch(makePolicy(), types.MergePatchType, false, text, "manager")
	}
	status := func(outdated bool, status v1alpha1.RebootPolicyStatus) call {
		return func(s server, version, old string) (client.Object, error) {
			put := makePolicy()
			if put.ResourceVersion = version; outdated {
				put.ResourceVersion = old
			}
			put.Spec.NodeSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"not": "written"}}
			put.Status = status
			return s.putStatus(put, "manager")
		}
	}
	ledger := func(seq int64, outdated bool, entries ...v1alpha1.LedgerEntry) call {
		return status(outdated, v1alpha1.RebootPolicyStatus{Seq: seq, Limit: 1, Grants: entries})
	}
	first := v1alpha1.LedgerEntry{Node: nodeName, NodeUID: "u1", Seq: 1, BootID: "b1", At: metav1.NewTime(time.Unix(1_800_000_000, 123_456_789))}
	another := func(node string, seq int64) v1alpha1.LedgerEntry {
		return v1alpha1.LedgerEntry{Node: node, Seq: seq, At: first.At}
	}
	create := func(object client.Object) call {
		return func(s server, _, _ string) (client.Object, error) { return s.create(object, "kubelet") }
	}
	remove := func(object client.Object) call {
		return func(s server, _, _ string) (client.Object, error) { return nil, s.remove(object) }
	}
	const cordon = `{"metadata":{"resourceVersion":"$VERSION","annotations":{"a":"1"}},"spec":{"unschedulable":true}}`
	nodes = []request{
		{"a patch of a node that is not there", node(false, cordon, "agent")},
		{"create", create(makeNode())},
		{"create again", create(makeNode())},
		{"cordon in a compare-and-swap", node(false, cordon, "agent")},
		{"the same again", node(false, cordon, "other")},
		{"conflict", node(false, `{"metadata":{"resourceVersion":"$OUTDATED"},"spec":{"unschedulable":false}}`, "agent")},
		{"a conflict that would change nothing", node(false, `{"metadata":{"resourceVersion":"$OUTDATED"},"spec":{"unschedulable":true}}`, "agent")},
		{"the status by the main resource", node(false, `{"status":{"nodeInfo":{"bootID":"b2"}}}`, "kubelet")},
		{"the status, which takes metadata and no spec", node(true,
			`{"metadata":{"labels":{"l":"1"}},"spec":{"unschedulable":false},"status":{"nodeInfo":{"bootID":"b2"},"conditions":[{"type":"Ready","status":"True","reason":"Up"}]}}`, "kubelet")},
		{"another condition beside it", node(true, `{"status":{"conditions":[{"type":"Drained","status":"False"}]}}`, "agent")},
		{"a condition goes", node(true, `{"status":{"conditions":[{"type":"Drained","$patch":"delete"}]}}`, "agent")},
		{"an annotation goes", node(false, `{"metadata":{"annotations":{"a":null}}}`, "agent")},
		{"a taint", node(false, `{"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}}`, "manager")},
		{"uncordon", node(false, `{"spec":{"unschedulable":null}}`, "manager")},
		{"cordon by somebody else", node(false, `{"spec":{"unschedulable":true}}`, "kubectl")},
		{"no patch", node(false, `{"metadata":`, "agent")},
		{"delete the node", remove(makeNode())},
		{"delete it again", remove(makeNode())},
		{"create it anew", create(makeNode())},
	}
	policies = []request{
		{"create a policy", create(makePolicy())},
		{"a ledger", ledger(1, false, first)},
		{"the same ledger", ledger(1, false, first)},
		{"a ledger from an outdated read", ledger(2, true, first)},
		{"an entry above a number that goes back", ledger(0, false, first)},
		{"two entries of one node", ledger(2, false, first, first)},
		{"one grant above the limit", ledger(2, false, first, another("m", 2))},
		{"an entry above the number", ledger(1, false, another(nodeName, 9))},
		{"a name that is longer than names", ledger(2, false, another(strings.Repeat("a", 300), 2))},
		{"a limit above the spec's", status(false, v1alpha1.RebootPolicyStatus{Seq: 1, Limit: 2, Grants: []v1alpha1.LedgerEntry{first}})},
		{"a number that goes back", ledger(0, false)},
		{"an empty ledger", ledger(1, false)},
		{"an annotation on the policy", policy(`{"metadata":{"annotations":{"a":"1"}}}`)},
		{"a limit", policy(`{"spec":{"concurrency":{"maxUnavailable":"50%"}}}`)},
		{"a limit that is none", policy(`{"spec":{"concurrency":{"maxUnavailable":"150%"}}}`)},
		{"a conflict on the policy", policy(`{"metadata":{"resourceVersion":"$OUTDATED","annotations":{"a":"2"}}}`)},
		{"a finalizer", policy(`{"metadata":{"finalizers":["` + v1alpha1.Finalizer + `"]}}`)},
		{"delete with a finalizer", remove(makePolicy())},
		{"delete once more", remove(makePolicy())},
		{"a ledger that was read before the deletion", ledger(2, false)},
		{"the finalizer goes, and the policy with it", policy(`{"metadata":{"finalizers":null}}`)},
		{"a ledger of a policy that is gone", ledger(3, false)},
		{"delete what is gone", remove(makePolicy())},
	}
	return nodes, policies
}

// makeNode has a label, as every kubelet's has: a real API server notes no managers of what was created without any field.
func makeNode() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: map[string]string{corev1.LabelHostname: nodeName}}}
}

func makePolicy() *v1alpha1.RebootPolicy {
	return &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName}}
}

// The simulation's API server gives the answers and the events of a real one.
func TestDifferential(t *testing.T) {
	var answers [2][]string
	for i, s := range []server{newSimulated(t), newReal(t)} {
		nodes, policies := requests()
		last := ask(s, nodes, &answers[i])
		ask(s, policies, &answers[i])
		answers[i] = append(answers[i], s.seen(t, last)...)
	}
	if diff := cmp.Diff(answers[1], answers[0]); diff != "" {
		t.Errorf("(-real +simulated)\n%s", diff)
	}
}

// ask makes requests about one object, notes the answers, and returns the version that it has in the end.
func ask(s server, requests []request, answers *[]string) (version string) {
	outdated := ""
	for _, r := range requests {
		object, err := r.do(s, version, outdated)
		answer := r.name + ": " + answerOf(object, err)
		if err == nil && object != nil {
			if now := object.GetResourceVersion(); now != version {
				outdated, version = version, now
			} else {
				answer += ", and it is not written"
			}
		}
		*answers = append(*answers, answer)
	}
	return version
}

// answerOf is an answer without what differs from server to server: times, UIDs and numbers of versions.
func answerOf(object client.Object, err error) string {
	if err != nil {
		return string(apierrors.ReasonForError(err))
	}
	if object == nil {
		return "done"
	}
	shown := map[string]any{"finalizers": object.GetFinalizers(), "going": object.GetDeletionTimestamp() != nil}
	for key, value := range object.GetLabels() {
		shown["label "+key] = value
	}
	for key, value := range object.GetAnnotations() {
		shown["annotation "+key] = value
	}
	switch object := object.(type) {
	case *corev1.Node:
		shown["cordoned"], shown["boot"] = object.Spec.Unschedulable, object.Status.NodeInfo.BootID
		for _, taint := range object.Spec.Taints {
			shown["taint "+taint.Key] = taint.Effect
		}
		for _, c := range object.Status.Conditions {
			shown["condition "+string(c.Type)] = string(c.Status) + " " + c.Reason
		}
		for _, entry := range object.ManagedFields {
			if strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:unschedulable"`) {
				shown["cordoned by"] = entry.Manager
			}
		}
	case *v1alpha1.RebootPolicy:
		shown["status"], shown["spec"] = object.Status, object.Spec
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// simulated is the simulation's.
type simulated struct {
	store           *apiserver.Store
	nodes, policies *apiserver.Watch
}

func newSimulated(t *testing.T) *simulated {
	t.Helper()
	parsed, err := definition.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	s := &simulated{store: apiserver.New(parsed, nil)}
	s.nodes, _, _ = s.store.Watch(apiserver.Key{Kind: apiserver.Nodes})
	s.policies, _, _ = s.store.Watch(apiserver.Key{Kind: apiserver.Policies})
	return s
}

func (s *simulated) create(object client.Object, by string) (client.Object, error) {
	if err := s.store.Create(object, by); err != nil {
		return nil, err
	}
	return s.store.Get(keyOf(object))
}

func (s *simulated) patch(object client.Object, kind types.PatchType, status bool, patch, by string) (client.Object, error) {
	return s.store.Patch(keyOf(object), kind, status, []byte(patch), by)
}

func (s *simulated) putStatus(policy *v1alpha1.RebootPolicy, by string) (client.Object, error) {
	return s.store.PutPolicyStatus(policy, by)
}

func (s *simulated) remove(object client.Object) error { return s.store.Delete(keyOf(object), "admin") }

func keyOf(object client.Object) apiserver.Key {
	return apiserver.Key{Kind: apiserver.KindOf(object), Name: object.GetName()}
}

func (s *simulated) seen(*testing.T, string) (events []string) {
	for _, w := range []*apiserver.Watch{s.nodes, s.policies} {
		for _, e := range w.Take() {
			switch {
			case e.Before == nil:
				events = append(events, "ADDED "+answerOf(e.After, nil))
			case e.After == nil:
				events = append(events, "DELETED "+e.Name)
			default:
				events = append(events, "MODIFIED "+answerOf(e.After, nil))
			}
		}
	}
	return events
}

// really is a real one.
type really struct {
	client   client.WithWatch
	nodes    watch.Interface
	policies watch.Interface
}

func newReal(t *testing.T) *really {
	t.Helper()
	c, err := testenv.NewClient(embedded.StartServerFor(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	s := &really{client: c}
	if s.nodes, err = c.Watch(t.Context(), &corev1.NodeList{}); err != nil {
		t.Fatal(err)
	}
	if s.policies, err = c.Watch(t.Context(), &v1alpha1.RebootPolicyList{}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *really) create(object client.Object, by string) (client.Object, error) {
	object, _ = object.DeepCopyObject().(client.Object)
	return object, s.client.Create(context.Background(), object, client.FieldOwner(by))
}

func (s *really) patch(object client.Object, kind types.PatchType, status bool, patch, by string) (client.Object, error) {
	raw := client.RawPatch(kind, []byte(patch))
	object, _ = object.DeepCopyObject().(client.Object)
	if status {
		return object, s.client.Status().Patch(context.Background(), object, raw, client.FieldOwner(by))
	}
	return object, s.client.Patch(context.Background(), object, raw, client.FieldOwner(by))
}

func (s *really) putStatus(policy *v1alpha1.RebootPolicy, by string) (client.Object, error) {
	return policy, s.client.Status().Update(context.Background(), policy, client.FieldOwner(by))
}

func (s *really) remove(object client.Object) error {
	object, _ = object.DeepCopyObject().(client.Object)
	return s.client.Delete(context.Background(), object)
}

// seen waits for the revision that was written last, which is a node's, and for the end of the policy.
func (s *really) seen(t *testing.T, last string) (events []string) {
	t.Helper()
	for _, of := range []struct {
		watch watch.Interface
		done  func(watch.Event) bool
	}{
		{s.nodes, func(e watch.Event) bool { return e.Object.(client.Object).GetResourceVersion() == last }},
		{s.policies, func(e watch.Event) bool { return e.Type == watch.Deleted }},
	} {
		for done := false; !done; {
			select {
			case e := <-of.watch.ResultChan():
				object, ok := e.Object.(client.Object)
				if !ok {
					t.Fatalf("the watch has ended: %v", e)
				}
				if done = of.done(e); e.Type == watch.Deleted {
					events = append(events, fmt.Sprintf("%s %s", e.Type, object.GetName()))
				} else {
					events = append(events, fmt.Sprintf("%s %s", e.Type, answerOf(object, nil)))
				}
			case <-time.After(time.Minute):
				t.Fatalf("the watch shows no more than\n%s", strings.Join(events, "\n"))
			}
		}
	}
	return events
}
