package notify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/secret"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

const (
	// waiting is how many messages may wait for one Secret's services; those beyond are lost, which is reported.
	waiting = 64
	// Grouping is how long a failure waits for others that are reported with it.
	Grouping = 15 * time.Second
	// keyURL is the key of a Secret with the addresses.
	keyURL = "url"
)

// pauses are between attempts to deliver a message; after the last one it is given up.
var pauses = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute}

// Message is one thing to send.
type Message struct {
	Event v1alpha1.NotifyEvent
	// Policy is whose nodes it is about, by name.
	Policy string
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
	// idle has what workers without work ask.
	idle chan idleWorker
}

// idleWorker asks whether the worker of a Secret may end. The answer comes before it looks into its queue again.
type idleWorker struct {
	secret string
	answer chan<- bool
}

// delivery is a message for the services of one Secret.
type delivery struct {
	Message

	secret string
}

// New makes a notifier that reads the addresses for each message. It calls done once for each message and Secret, with an
// error, free of credentials, where it was not delivered.
func New(secrets secret.Reader, clock clock.WithTicker, done func(m Message, r Result, err error)) *Notifier {
	return &Notifier{secrets: secrets, clock: clock, done: done, inbox: make(chan delivery, waiting), idle: make(chan idleWorker)}
}

// Notify puts a message into the queue of each Secret that wants it, and never waits.
func (n *Notifier) Notify(to []v1alpha1.Notification, m Message) {
	for _, t := range to {
		if t.Wants(m.Event) {
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

// Start delivers until the manager ends; messages that wait then are lost.
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
				go n.work(ctx, d.secret, q)
			}
			n.enqueue(q, d)
		case may := <-n.idle:
			over := len(queues[may.secret]) == 0
			if over {
				delete(queues, may.secret)
			}
			may.answer <- over
		case <-ctx.Done():
			return nil
		}
	}
}

// work delivers one after the other, until nothing waits in its queue. Failures wait a little, and are sent together.
func (n *Notifier) work(ctx context.Context, secret string, q <-chan delivery) {
	var ahead *delivery
	for {
		d, ok := n.take(ctx, secret, q, ahead)
		if !ok {
			return
		}
		if ahead = nil; d.Event == v1alpha1.NotifyFailed {
			if !lifecycle.Sleep(ctx, n.clock, Grouping) {
				return
			}
			d, ahead = gather(d, q)
		}
		n.deliver(ctx, d)
	}
}

// take is what was read ahead, or the next one; false: there is none, or the process ends.
func (n *Notifier) take(ctx context.Context, secret string, q <-chan delivery, ahead *delivery) (delivery, bool) {
	if ahead != nil {
		return *ahead, true
	}
	for {
		select {
		case d := <-q:
			return d, true
		default:
		}
		over := make(chan bool, 1)
		select {
		case n.idle <- idleWorker{secret, over}:
		case <-ctx.Done():
			return delivery{}, false
		}
		if <-over {
			return delivery{}, false
		}
	}
}

// gather adds the failures that have come meanwhile, and returns what it read too much.
func gather(d delivery, q <-chan delivery) (delivery, *delivery) {
	for {
		select {
		case more := <-q:
			if more.Event != d.Event || more.Policy != d.Policy {
				return d, &more
			}
			d.Text += "\n" + more.Text
		default:
			return d, nil
		}
	}
}

// deliver tries until every service has taken the message, or gives up. A service that has taken it does not get it again.
func (n *Notifier) deliver(ctx context.Context, d delivery) {
	taken := map[string]bool{}
	for attempt := 0; ; attempt++ {
		err := n.try(ctx, d, taken)
		if err == nil {
			n.done(d.Message, Sent, nil)
			return
		}
		if attempt == len(pauses) {
			n.done(d.Message, Failed, fmt.Errorf("the services of Secret %s were not sent %q: %w", d.secret, firstLine(d.Text), err))
			return
		}
		ctrl.LoggerFrom(ctx).Info("Could not deliver a notification, trying again", "secret", d.secret, "event", d.Event, "reason", err.Error())
		if !lifecycle.Sleep(ctx, n.clock, pauses[attempt]) {
			return
		}
	}
}

// try sends to the services that have not taken the message yet. Each has its own time: those that never answer take none
// from the ones after them.
func (n *Notifier) try(ctx context.Context, d delivery, taken map[string]bool) error {
	addresses, err := n.addresses(ctx, d.secret)
	if err != nil {
		return err
	}
	var errs []error
	for i, address := range addresses {
		if taken[address] {
			continue
		}
		if err := send(ctx, address, "reboot-operator: "+d.Policy, d.Text); err != nil {
			errs = append(errs, fmt.Errorf("service %d: %w", i+1, err))
			continue
		}
		taken[address] = true
	}
	return errors.Join(errs...)
}

// addresses are read anew for each attempt: a Secret that is fixed meanwhile counts.
func (n *Notifier) addresses(ctx context.Context, secret string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
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

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return message.Shorten(longest, line)
}
