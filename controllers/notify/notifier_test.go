package notify

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/reading"
)

// receiver is a webhook over HTTP that reports what it received.
type receiver struct {
	*httptest.Server

	got  chan string
	code int
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{got: make(chan string, 100), code: http.StatusOK}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		w.WriteHeader(r.code)
		r.got <- string(body)
	}))
	t.Cleanup(r.Close)
	return r
}

// address returns the address of the webhook for shoutrrr, with a password.
func (r *receiver) address() string {
	return "generic://" + r.Listener.Addr().String() + "/hook/s3cr3ttoken?disabletls=yes"
}

// expect waits for a body.
func (r *receiver) expect(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-r.got:
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("nothing came, want %q", want)
	}
}

// secrets holds the values of key url by the names of the Secrets.
type secrets map[string]string

func (s secrets) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	value, found := s[key.Name]
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
	}
	object.(*corev1.Secret).Data = map[string][]byte{"url": []byte(value)}
	return nil
}

func (secrets) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

type outcome struct {
	message Message
	result  Result
	err     error
}

// bench is a notifier with the test's clock.
type bench struct {
	*Notifier

	t     *testing.T
	clock *clocktesting.FakeClock
	ended chan outcome
}

func newBench(t *testing.T, s secrets) *bench {
	t.Helper()
	b := &bench{t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 6, 1, 22, 0, 0, 0, time.UTC)), ended: make(chan outcome, 1000)}
	b.Notifier = New(reading.Secrets{Reader: s, Namespace: "reboot-operator-system"}, b.clock, func(m Message, r Result, err error) {
		b.ended <- outcome{m, r, err}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return b
}

// send notifies the services of these Secrets.
func (b *bench) send(event v1alpha1.NotifyEvent, text string, names ...string) {
	to := make([]v1alpha1.Notification, len(names))
	for i, name := range names {
		to[i].SecretRef.Name = name
	}
	b.Notify(to, Message{Event: event, Policy: "workers", Text: text})
}

// step advances the time once somebody waits for it.
func (b *bench) step(d time.Duration) {
	b.t.Helper()
	waits := func(context.Context) (bool, error) { return b.clock.HasWaiters(), nil }
	if err := wait.PollUntilContextTimeout(b.t.Context(), time.Millisecond, time.Minute, true, waits); err != nil {
		b.t.Fatal("nobody waits for the time to pass")
	}
	b.clock.Step(d)
}

func (b *bench) end(result Result, sentence string) {
	b.t.Helper()
	select {
	case o := <-b.ended:
		got := ""
		if o.err != nil {
			got = o.err.Error()
		}
		if o.result != result || !strings.Contains(got, sentence) || strings.Contains(got, "s3cr3t") {
			b.t.Errorf("%s %q, want %s %q", o.result, got, result, sentence)
		}
	case <-time.After(time.Minute):
		b.t.Fatalf("the message does not end, want %s", result)
	}
}

// TestNotifier_Delivers shows that every service that wants a message gets it once, in order.
func TestNotifier_Delivers(t *testing.T) {
	a, c := newReceiver(t), newReceiver(t)
	b := newBench(t, secrets{"two": a.address() + "\n" + c.address() + "\n", "one": a.address()})
	b.send(v1alpha1.NotifyStarted, "first", "two")
	a.expect(t, "first")
	c.expect(t, "first")
	b.end(Sent, "")
	halts := []v1alpha1.Notification{{SecretRef: v1alpha1.SecretReference{Name: "one"}, Events: []v1alpha1.NotifyEvent{v1alpha1.NotifyHalted}}}
	b.Notify(halts, Message{Event: v1alpha1.NotifyStarted, Text: "not wanted"})
	b.Notify(halts, Message{Event: v1alpha1.NotifyHalted, Text: "wanted"})
	a.expect(t, "wanted")
	b.end(Sent, "")
}

// TestNotifier_EachNode shows that only a service that names the events of each node receives them,
// with its own template if it has one. Braces in the text of a message are not replaced.
func TestNotifier_EachNode(t *testing.T) {
	a := newReceiver(t)
	b := newBench(t, secrets{"one": a.address(), "all": a.address()})
	one, all := v1alpha1.SecretReference{Name: "one"}, v1alpha1.SecretReference{Name: "all"}
	back := Message{Event: v1alpha1.NotifyBack, Policy: "workers", Node: "n1", Text: "{node} is back"}
	b.Notify([]v1alpha1.Notification{
		{SecretRef: all},
		{SecretRef: one, Events: []v1alpha1.NotifyEvent{v1alpha1.NotifyBack}, Template: "[prod] {event} {node} of {policy}: {text}"},
	}, back)
	a.expect(t, "[prod] Back n1 of workers: {node} is back")
	b.Notify([]v1alpha1.Notification{{SecretRef: one, Events: []v1alpha1.NotifyEvent{v1alpha1.NotifyBack}}}, back)
	a.expect(t, "{node} is back")
	b.end(Sent, "")
	b.end(Sent, "")
	if len(b.ended) > 0 {
		t.Error("a service that names no events has got one of each node")
	}
}

// TestNotifier_NoMarkup shows that markup is removed from texts, which a user of a host may have
// written, but not from templates of the administrator.
func TestNotifier_NoMarkup(t *testing.T) {
	a := newReceiver(t)
	b := newBench(t, secrets{"one": a.address()})
	hostile := "blocked by x (<!channel> @everyone <@U1> [click](https://evil.example/) <https://evil.example|docs>)"
	b.Notify([]v1alpha1.Notification{{SecretRef: v1alpha1.SecretReference{Name: "one"}, Template: "<!here> {text}"}},
		Message{Event: v1alpha1.NotifyHalted, Policy: "workers", Text: hostile})
	a.expect(t, "<!here> blocked by x (‹!channel› ＠everyone ‹＠U1› [click] (https[:]//evil.example/) ‹https[:]//evil.example|docs›)")
	b.end(Sent, "")
}

// TestNotifier_GroupsFailures shows that failures of one policy within 15 seconds become one
// message, and that later messages stay after them.
func TestNotifier_GroupsFailures(t *testing.T) {
	a := newReceiver(t)
	b := newBench(t, secrets{"one": a.address()})
	b.send(v1alpha1.NotifyFailed, "n1 failed", "one")
	back := []v1alpha1.Notification{{SecretRef: v1alpha1.SecretReference{Name: "one"}, Events: []v1alpha1.NotifyEvent{v1alpha1.NotifyBack}}}
	b.Notify(back, Message{Event: v1alpha1.NotifyBack, Policy: "workers", Node: "n9", Text: "n9 is back"})
	b.send(v1alpha1.NotifyFailed, "n2 failed", "one")
	b.send(v1alpha1.NotifyFinished, "done", "one")
	b.send(v1alpha1.NotifyFailed, "n3 failed", "one")
	b.Notify([]v1alpha1.Notification{{SecretRef: v1alpha1.SecretReference{Name: "one"}}}, Message{Event: v1alpha1.NotifyFailed, Policy: "databases", Text: "db1 failed"})
	for len(b.inbox) > 0 {
		<-time.After(time.Millisecond)
	}
	b.step(grouping)
	a.expect(t, "n1 failed\nn2 failed")
	a.expect(t, "n9 is back")
	a.expect(t, "done")
	b.step(grouping)
	a.expect(t, "n3 failed")
	b.step(grouping)
	a.expect(t, "db1 failed")
}

// TestNotifier_TriesAgain shows that a message is sent again to a service that fails, but not to
// one that has accepted it. In the end it is dropped.
func TestNotifier_TriesAgain(t *testing.T) {
	good, bad := newReceiver(t), newReceiver(t)
	bad.code = http.StatusInternalServerError
	b := newBench(t, secrets{"both": good.address() + "\n" + bad.address()})
	b.send(v1alpha1.NotifyHalted, "help\nnow", "both")
	good.expect(t, "help\nnow")
	for _, pause := range pauses {
		bad.expect(t, "help\nnow")
		b.step(pause)
	}
	bad.expect(t, "help\nnow")
	b.end(Failed, `the services of Secret both were not sent "help": service 2: `)
	if len(good.got) > 0 {
		t.Error("the good one was notified twice")
	}
}

// TestNotifier_Hangs shows that a service that never answers does not delay others, and gets a
// limited number of messages.
func TestNotifier_Hangs(t *testing.T) {
	release := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(func() { close(release); hung.Close() })
	a := newReceiver(t)
	b := newBench(t, secrets{"hung": "generic://" + hung.Listener.Addr().String() + "/s3cr3t?disabletls=yes", "one": a.address()})
	started := time.Now()
	for i := range 3 * waiting {
		b.send(v1alpha1.NotifyStarted, strconv.Itoa(i), "hung")
	}
	if took := time.Since(started); took > timeout {
		t.Errorf("Notify waited %s", took)
	}
	b.end(Dropped, "64 messages wait already for its services")
	for len(b.inbox) > 0 {
		<-time.After(time.Millisecond)
	}
	b.send(v1alpha1.NotifyStarted, "for the other", "one")
	a.expect(t, "for the other")
}

// TestNotifier_Errors shows that errors say what is wrong but never contain the address.
func TestNotifier_Errors(t *testing.T) {
	for name, tc := range map[string]struct {
		secrets  secrets
		sentence string
	}{
		"no Secret":                {nil, "Secret x is missing in namespace reboot-operator-system"},
		"no address":               {secrets{"x": "\n"}, "Secret x has no address in key url"},
		"an unknown service":       {secrets{"x": "pigeon://s3cr3t@loft"}, "the address cannot be used"},
		"no address at all":        {secrets{"x": "s3cr3t"}, "the address cannot be used"},
		"a port nobody listens on": {secrets{"x": "generic://127.0.0.1:1/s3cr3t?disabletls=yes"}, "service 1: "},
		"an invalid token":         {secrets{"x": "slack://hook:s3cr3t@webhook"}, "service 1: "},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tc.secrets)
			b.send(v1alpha1.NotifyStarted, "hello", "x")
			for _, pause := range pauses {
				b.step(pause)
			}
			b.end(Failed, tc.sentence)
		})
	}
}

// TestWorker_Bounded shows that a worker takes only a limited number of failures from the queue
// while a service is down.
func TestWorker_Bounded(t *testing.T) {
	queue := make(chan delivery, waiting)
	w := worker{queue: queue}
	for range 3 {
		for len(queue) < waiting {
			queue <- delivery{Message: Message{Event: v1alpha1.NotifyBack, Policy: "workers", Node: "n1"}}
		}
		w.gather(delivery{Message: Message{Event: v1alpha1.NotifyFailed, Policy: "workers", Node: "n2"}})
	}
	if len(w.ahead) > waiting {
		t.Errorf("%d messages wait outside the queue, at most %d may", len(w.ahead), waiting)
	}
}
