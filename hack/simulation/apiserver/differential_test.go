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

// request is a request for an object. version is its current resourceVersion, and outdated an
// earlier one.
type request struct {
	name string
	do   call
}

type call func(c client.Client, version, outdated string) (client.Object, error)

const (
	nodeName   = "n"
	policyName = "p"
)

func requests() (nodes, policies []request) {
	ctx := context.Background()
	raw := func(kind types.PatchType, text, version, outdated string) client.Patch {
		return client.RawPatch(kind, []byte(strings.NewReplacer("$VERSION", version, "$OUTDATED", outdated).Replace(text)))
	}
	node := func(status bool, text, by string) call {
		return func(c client.Client, version, outdated string) (client.Object, error) {
			node, patch := makeNode(), raw(types.StrategicMergePatchType, text, version, outdated)
			if status {
				return node, c.Status().Patch(ctx, node, patch, client.FieldOwner(by))
			}
			return node, c.Patch(ctx, node, patch, client.FieldOwner(by))
		}
	}
	policy := func(text string) call {
		return func(c client.Client, version, outdated string) (client.Object, error) {
			policy := makePolicy()
			return policy, c.Patch(ctx, policy, raw(types.MergePatchType, text, version, outdated), client.FieldOwner("manager"))
		}
	}
	status := func(outdated bool, status v1alpha1.RebootPolicyStatus) call {
		return func(c client.Client, version, old string) (client.Object, error) {
			put := makePolicy()
			if put.ResourceVersion = version; outdated {
				put.ResourceVersion = old
			}
			put.Spec.NodeSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"not": "written"}}
			put.Status = status
			return put, c.Status().Update(ctx, put, client.FieldOwner("manager"))
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
		return func(c client.Client, _, _ string) (client.Object, error) {
			made, _ := object.DeepCopyObject().(client.Object)
			return made, c.Create(ctx, made, client.FieldOwner("kubelet"))
		}
	}
	remove := func(object client.Object) call {
		return func(c client.Client, _, _ string) (client.Object, error) { return nil, c.Delete(ctx, object) }
	}
	get := func(c client.Client, _, _ string) (client.Object, error) {
		node := &corev1.Node{}
		return node, c.Get(ctx, client.ObjectKey{Name: nodeName}, node)
	}
	list := func(c client.Client, _, _ string) (client.Object, error) {
		var nodes corev1.NodeList
		if err := c.List(ctx, &nodes); err != nil {
			return nil, err
		}
		return &nodes.Items[0], nil
	}
	const cordon = `{"metadata":{"resourceVersion":"$VERSION","annotations":{"a":"1"}},"spec":{"unschedulable":true}}`
	nodes = []request{
		{"a patch of a node that is not there", node(false, cordon, "agent")},
		{"create", create(makeNode())},
		{"create again", create(makeNode())},
		{"get", get},
		{"list", list},
		{"cordon in a compare-and-swap", node(false, cordon, "agent")},
		{"the same again", node(false, cordon, "other")},
		{"conflict", node(false, `{"metadata":{"resourceVersion":"$OUTDATED"},"spec":{"unschedulable":false}}`, "agent")},
		{"a conflict that would change nothing", node(false, `{"metadata":{"resourceVersion":"$OUTDATED"},"spec":{"unschedulable":true}}`, "agent")},
		{"the status by the main resource", node(false, `{"status":{"nodeInfo":{"bootID":"b2"}}}`, "kubelet")},
		{"the status, which takes metadata and no spec", node(true,
			`{"metadata":{"labels":{"l":"1"}},"spec":{"unschedulable":false},"status":{"nodeInfo":{"bootID":"b2"},"conditions":[{"type":"Ready","status":"True","reason":"Up"}]}}`, "kubelet")},
		{"another condition in addition", node(true, `{"status":{"conditions":[{"type":"Drained","status":"False"}]}}`, "agent")},
		{"a condition goes", node(true, `{"status":{"conditions":[{"type":"Drained","$patch":"delete"}]}}`, "agent")},
		{"an annotation goes", node(false, `{"metadata":{"annotations":{"a":null}}}`, "agent")},
		{"a taint", node(false, `{"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}}`, "manager")},
		{"uncordon", node(false, `{"spec":{"unschedulable":null}}`, "manager")},
		{"cordon by somebody else", node(false, `{"spec":{"unschedulable":true}}`, "kubectl")},
		{"no patch", node(false, `{"metadata":`, "agent")},
		{"delete the node", remove(makeNode())},
		{"delete it again", remove(makeNode())},
		{"get what is gone", get},
		{"create it again", create(makeNode())},
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
		{"an invalid limit", policy(`{"spec":{"concurrency":{"maxUnavailable":"150%"}}}`)},
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

// makeNode sets a label, as every kubelet does, because a real API server records no managers for
// an object that was created without fields.
func makeNode() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: map[string]string{corev1.LabelHostname: nodeName}}}
}

func makePolicy() *v1alpha1.RebootPolicy {
	return &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName}}
}

// The simulated API server must give the same answers and events as a real one.
func TestDifferential(t *testing.T) {
	var answers [2][]string
	for i, s := range []server{newSimulated(t), newReal(t)} {
		nodes, policies := requests()
		last := ask(s.client, nodes, &answers[i])
		ask(s.client, policies, &answers[i])
		answers[i] = append(answers[i], s.seen(last)...)
	}
	if diff := cmp.Diff(answers[1], answers[0]); diff != "" {
		t.Errorf("(-real +simulated)\n%s", diff)
	}
}

// ask sends requests for one object, records the answers, and returns the object's last version.
func ask(c client.Client, requests []request, answers *[]string) (version string) {
	outdated := ""
	for _, r := range requests {
		object, err := r.do(c, version, outdated)
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

// answerOf formats an answer without times, UIDs and version numbers, which differ between servers.
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

// server holds a client and a function that returns the revisions of both kinds, each kind in the
// order of its watch.
type server struct {
	client client.Client
	seen   func(last string) []string
}

// newSimulated returns the simulated server.
func newSimulated(t *testing.T) server {
	t.Helper()
	parsed, err := definition.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	store := apiserver.New(parsed, nil)
	nodes, _, _ := store.Watch(apiserver.Key{Kind: apiserver.Nodes})
	policies, _, _ := store.Watch(apiserver.Key{Kind: apiserver.Policies})
	return server{apiserver.NewClient(store), func(string) (events []string) {
		for _, e := range append(nodes.Take(), policies.Take()...) {
			switch {
			case e.Before == nil:
				events = append(events, "ADDED "+answerOf(e.After, nil))
			case e.After == nil:
				events = append(events, "DELETED "+e.Name)
			default:
				events = append(events, "MODIFIED "+answerOf(e.After, nil))
			}
		}
		return events
	}}
}

// newReal starts a real server. Its seen waits for the last revision of the node and for the end of
// the policy.
func newReal(t *testing.T) server {
	t.Helper()
	c, err := testenv.NewClient(embedded.StartServerFor(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := c.Watch(t.Context(), &corev1.NodeList{})
	if err != nil {
		t.Fatal(err)
	}
	policies, err := c.Watch(t.Context(), &v1alpha1.RebootPolicyList{})
	if err != nil {
		t.Fatal(err)
	}
	return server{c, func(last string) []string {
		events := follow(t, nodes, func(e watch.Event) bool { return e.Object.(client.Object).GetResourceVersion() == last })
		return append(events, follow(t, policies, func(e watch.Event) bool { return e.Type == watch.Deleted })...)
	}}
}

// follow returns the events of a watch up to the one for which done returns true.
func follow(t *testing.T, w watch.Interface, done func(watch.Event) bool) (events []string) {
	t.Helper()
	for {
		select {
		case e := <-w.ResultChan():
			object, ok := e.Object.(client.Object)
			if !ok {
				t.Fatalf("the watch has ended: %v", e)
			}
			shown := object.GetName()
			if e.Type != watch.Deleted {
				shown = answerOf(object, nil)
			}
			if events = append(events, fmt.Sprintf("%s %s", e.Type, shown)); done(e) {
				return events
			}
		case <-time.After(time.Minute):
			t.Fatalf("the watch shows no more than\n%s", strings.Join(events, "\n"))
		}
	}
}
