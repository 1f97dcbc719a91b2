// Package notify sends notifications about a policy's nodes through the services of shoutrrr. It
// never delays a reboot. A message that cannot be delivered is retried a few times and then
// dropped, which an event reports.
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
	"github.com/reboot-operator/reboot-operator/controllers/reading"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

const (
	// waiting is the number of messages that may wait for the services of one Secret. Further
	// messages are dropped, which is reported.
	waiting = 64
	// grouping is the time that a failure waits for others to be reported with it.
	grouping = 15 * time.Second
	// keyURL is the key of a Secret with the addresses.
	keyURL = "url"
)

// pauses are the times between attempts to deliver a message. After the last one it is dropped.
var pauses = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute}

// Message is a notification.
type Message struct {
	Event v1alpha1.NotifyEvent
	// Policy is the name of the policy of the nodes, and UID its metadata.uid.
	Policy string
	UID    types.UID
	// Node is the name of the node, or empty if the message is about the policy.
	Node string
	// Text is a sentence, or one per line.
	Text string
}

// by returns the message with the text of a template. An empty template does not change it.
func (m Message) by(template string) Message {
	if template != "" {
		m.Text = strings.NewReplacer("{text}", m.Text, "{event}", string(m.Event), "{policy}", m.Policy, "{node}", m.Node).Replace(template)
	}
	return m
}

// Result is the outcome of a message.
type Result string

// The outcomes of messages.
const (
	Sent    Result = "sent"
	Failed  Result = "failed"
	Dropped Result = "dropped"
)

// Notifier delivers messages in the background, in order for each Secret. A service that hangs
// delays only the messages of its Secret.
type Notifier struct {
	secrets reading.Secrets
	clock   clock.WithTicker
	done    func(m Message, r Result, err error)
	inbox   chan delivery
}

// delivery is a message for the services of one Secret.
type delivery struct {
	Message

	secret string
}

// New returns a notifier that reads the addresses for each message. It calls done once for each
// message and Secret, with an error if it was not delivered. The error does not contain
// credentials.
func New(secrets reading.Secrets, clock clock.WithTicker, done func(m Message, r Result, err error)) *Notifier {
	return &Notifier{secrets: secrets, clock: clock, done: done, inbox: make(chan delivery, waiting)}
}

// plain removes everything that chats act on: mentions, links and markup. Parts of the text may
// come from a user of a host, a hook or a webhook. The text of a template comes from the
// administrator and stays.
var plain = strings.NewReplacer("<", "‹", ">", "›", "@", "＠", "://", "[:]//", "](", "] (")

// wants reports whether a service is notified of an event.
func wants(n v1alpha1.Notification, event v1alpha1.NotifyEvent) bool {
	if len(n.Events) == 0 {
		return event != v1alpha1.NotifyRebooting && event != v1alpha1.NotifyBack
	}
	return slices.Contains(n.Events, event)
}

// Notify queues a message for each Secret that wants it. It never blocks.
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

// Start delivers until the manager stops. Messages that wait then are lost. Each Secret has one
// worker from its first message on.
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

// worker delivers the messages of one Secret in order.
type worker struct {
	*Notifier

	queue <-chan delivery
	// ahead are messages that were read from the queue but not sent with the previous message.
	ahead []delivery
	// services are the services of the Secret, by address.
	services map[string]*service
}

// run delivers until ctx ends. Failures wait a little so that they are sent together.
func (w *worker) run(ctx context.Context) {
	for {
		d, ok := w.next(ctx)
		if !ok {
			return
		}
		if d.Event == v1alpha1.NotifyFailed {
			if !lifecycle.Pause(ctx, w.clock, grouping) {
				return
			}
			d = w.gather(d)
		}
		w.deliver(ctx, d)
	}
}

// next returns the next message, or false if ctx has ended.
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

// gather adds the failures of the policy that have arrived since, up to the first message about a
// policy or about another policy's node. Messages about nodes in between are sent afterwards.
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

// deliver sends a message until every service has accepted it or the attempts are used up. A
// service that has accepted it does not get it again.
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
		if !lifecycle.Pause(ctx, w.clock, pauses[attempt]) {
			return
		}
	}
}

// try sends to the services that have not accepted the message yet. Each has its own time-out, so a
// service that never answers does not use up the time of others.
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

// addresses reads the addresses for each attempt, so that a Secret may be fixed in between.
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
