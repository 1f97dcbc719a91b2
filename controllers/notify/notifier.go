// Package notify notifies people of what happens to a policy's nodes, through the services of shoutrrr. It never holds a reboot up. A
// message that cannot be delivered is tried again a few times, and then given up, which an event reports.
package notify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/secret"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/pause"
)

const (
	// waiting is how many messages may wait for one Secret's services; those beyond are lost, which is reported.
	waiting = 64
	// grouping is how long a failure waits for others that are reported with it.
	grouping = 15 * time.Second
	// keyURL is the key of a Secret with the addresses.
	keyURL = "url"
)

// pauses are between attempts to deliver a message; after the last one it is given up.
var pauses = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute}

// Message is one thing to send.
type Message struct {
	Event v1alpha1.NotifyEvent
	// Policy is whose nodes it is about, by name, and UID is its metadata.uid.
	Policy string
	UID    types.UID
	// Node is the one that it is about. Empty: it is about the policy.
	Node string
	// Text is a sentence, or one per line.
	Text string
}

// by is the message with the text that a template makes of it. Empty: it is the message.
func (m Message) by(template string) Message {
	if template != "" {
		m.Text = strings.NewReplacer("{text}", m.Text, "{event}", string(m.Event), "{policy}", m.Policy, "{node}", m.Node).Replace(template)
	}
	return m
}

// Result is how a message ended.
type Result string

// The results of messages.
const (
	Sent    Result = "sent"
	Failed  Result = "failed"
	Dropped Result = "dropped"
)

// Notifier delivers messages in the background, in their order for each Secret. One that hangs delays its own alone.
type Notifier struct {
	secrets secret.Reader
	clock   clock.WithTicker
	done    func(m Message, r Result, err error)
	inbox   chan delivery
}

// delivery is a message for the services of one Secret.
type delivery struct {
	Message

	secret string
}

// New makes a notifier that reads the addresses for each message. It calls done once for each message and Secret, with an
// error, free of credentials, where it was not delivered.
func New(secrets secret.Reader, clock clock.WithTicker, done func(m Message, r Result, err error)) *Notifier {
	return &Notifier{secrets: secrets, clock: clock, done: done, inbox: make(chan delivery, waiting)}
}

// plain takes out what chats act on: mentions, links and mark-up. A user of a host, a hook or a webhook may have written a part of the
// text. What a template adds is the administrator's, and stays.
var plain = strings.NewReplacer("<", "‹", ">", "›", "@", "＠", "://", "[:]//", "](", "] (")

// wants reports whether a service is notified of an event.
func wants(n v1alpha1.Notification, event v1alpha1.NotifyEvent) bool {
	if len(n.Events) == 0 {
		return event != v1alpha1.NotifyRebooting && event != v1alpha1.NotifyBack
	}
	return slices.Contains(n.Events, event)
}

// Notify puts a message into the queue of each Secret that wants it, and never waits.
func (n *Notifier) Notify(to []v1alpha1.Notification, m Message) {
	m.Text = plain.Replace(m.Text)
	for _, t := range to {
		if wants(t, m.Event) {
			n.enqueue(n.inbox, delivery{Message: m.by(t.Template), secret: t.SecretRef.Name})
		}
	}
}

func (n *Notifier) enqueue(q chan<- delivery, d delivery) {
	select {
	case q <- d:
	default:
		n.done(d.Message, Dropped, fmt.Errorf("Secret %s: %d messages wait already for its services", d.secret, waiting)) //nolint:staticcheck // Secret is a kind
	}
}

// Start delivers until the manager ends; messages that wait then are lost. Each Secret keeps one worker from its first message on.
func (n *Notifier) Start(ctx context.Context) error {
	ctx = ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithName("notify"))
	queues := map[string]chan delivery{}
	for {
		select {
		case d := <-n.inbox:
			q := queues[d.secret]
			if q == nil {
				q = make(chan delivery, waiting)
				queues[d.secret] = q
				w := worker{Notifier: n, queue: q, services: map[string]*service{}}
				go w.run(ctx)
			}
			n.enqueue(q, d)
		case <-ctx.Done():
			return nil
		}
	}
}

// worker delivers the messages of one Secret, one after the other.
type worker struct {
	*Notifier

	queue <-chan delivery
	// ahead are read from the queue, and were not sent with the message before them.
	ahead []delivery
	// services are those of the Secret, by their addresses.
	services map[string]*service
}

// run delivers until ctx ends. Failures wait a little, and are sent together.
func (w *worker) run(ctx context.Context) {
	for {
		d, ok := w.next(ctx)
		if !ok {
			return
		}
		if d.Event == v1alpha1.NotifyFailed {
			if !pause.For(ctx, w.clock, grouping) {
				return
			}
			d = w.gather(d)
		}
		w.deliver(ctx, d)
	}
}

// next is the next message; false: ctx has ended.
func (w *worker) next(ctx context.Context) (delivery, bool) {
	if len(w.ahead) > 0 {
		d := w.ahead[0]
		w.ahead = w.ahead[1:]
		return d, true
	}
	select {
	case d := <-w.queue:
		return d, true
	case <-ctx.Done():
		return delivery{}, false
	}
}

// gather adds the failures of the policy that have come meanwhile, up to the first message about the policy itself or another one.
// Other messages about nodes that came between them are sent after them.
func (w *worker) gather(d delivery) delivery {
	for len(w.queue) > 0 && len(w.ahead) < waiting {
		w.ahead = append(w.ahead, <-w.queue)
	}
	var others []delivery
	for i, more := range w.ahead {
		switch {
		case more.Event == d.Event && more.Policy == d.Policy:
			d.Text += "\n" + more.Text
		case more.Node == "" || more.Policy != d.Policy:
			w.ahead = append(others, w.ahead[i:]...)
			return d
		default:
			others = append(others, more)
		}
	}
	w.ahead = others
	return d
}

// deliver tries until every service has taken the message, or gives up. A service that has taken it does not get it again.
func (w *worker) deliver(ctx context.Context, d delivery) {
	taken := map[string]bool{}
	for attempt := 0; ; attempt++ {
		err := w.try(ctx, d, taken)
		if err == nil {
			w.done(d.Message, Sent, nil)
			return
		}
		if attempt == len(pauses) {
			line, _, _ := strings.Cut(d.Text, "\n")
			w.done(d.Message, Failed, fmt.Errorf("the services of Secret %s were not sent %q: %w", d.secret, message.Shorten(longest, line), err))
			return
		}
		ctrl.LoggerFrom(ctx).Info("Could not deliver a notification, trying again", "secret", d.secret, "event", d.Event, "reason", err.Error())
		if !pause.For(ctx, w.clock, pauses[attempt]) {
			return
		}
	}
}

// try sends to the services that have not taken the message yet. Each has its own time: those that never answer take none
// from the ones after them.
func (w *worker) try(ctx context.Context, d delivery, taken map[string]bool) error {
	addresses, err := w.addresses(ctx, d.secret)
	if err != nil {
		return err
	}
	maps.DeleteFunc(w.services, func(address string, _ *service) bool { return !slices.Contains(addresses, address) })
	var errs []error
	for i, address := range addresses {
		if taken[address] {
			continue
		}
		if w.services[address] == nil {
			w.services[address] = newService(address)
		}
		if err := w.services[address].send(ctx, "reboot-operator: "+d.Policy, d.Text); err != nil {
			errs = append(errs, fmt.Errorf("service %d: %w", i+1, err))
			continue
		}
		taken[address] = true
	}
	return errors.Join(errs...)
}

// addresses are read for each attempt, so that a Secret may be corrected meanwhile.
func (n *Notifier) addresses(ctx context.Context, secret string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s, err := n.secrets.Secret(ctx, secret)
	if err != nil {
		return nil, err
	}
	addresses := strings.Fields(string(s.Data[keyURL]))
	if len(addresses) == 0 {
		return nil, fmt.Errorf("Secret %s has no address in key %s", secret, keyURL) //nolint:staticcheck // Secret is a kind
	}
	return addresses, nil
}
