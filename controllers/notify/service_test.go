package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/reading"
)

// wire replaces the network for services of shoutrrr that use the default client.
type wire func(*http.Request) error

func (w wire) RoundTrip(q *http.Request) (*http.Response, error) {
	if err := w(q); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: q}, nil
}

// use installs the wire until the test ends.
func (w wire) use(t *testing.T) {
	t.Helper()
	transport := http.DefaultClient.Transport
	http.DefaultClient.Transport = w
	t.Cleanup(func() { http.DefaultClient.Transport = transport })
}

// TestSend_OutlivesAPanic shows that an address on which a service panics only loses its own
// message, and that no part of it is reported.
func TestSend_OutlivesAPanic(t *testing.T) {
	wire(func(q *http.Request) error { panic("no way to " + q.URL.String()) }).use(t)
	for name, tc := range map[string]struct {
		address string
		want    error
	}{
		"for a custom address that the service cannot convert":    {"teams+https://prod-12.westeurope.logic.azure.com/workflows/s3cr3t", errAddress},
		"for a custom address with an option that cannot be read": {"generic+https://host/s3cr3t?disabletls=maybe", errAddress},
		"while it sends": {"generic://host/s3cr3t", errService},
	} {
		t.Run(name, func(t *testing.T) {
			if err := newService(tc.address).send(t.Context(), "title", "text"); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

// TestSend_RevealsNothingOfAnAddress shows that errors about an address do not depend on its
// content.
func TestSend_RevealsNothingOfAnAddress(t *testing.T) {
	const accepted = "the address cannot be used: it does not have the form of service %s, or that service did not accept it"
	for name, tc := range map[string]struct{ address, want string }{
		"a password that is not escaped":               {"smtp://ops:Pa%ss!9@mail.example.com:587/", errAddress.Error()},
		"a user whose name begins the password":        {"generic://bot:bot12345@host/%zz", errAddress.Error()},
		"a password of punctuation only":               {"smtp://ops:!%$@mail.example.com/", errAddress.Error()},
		"an unknown scheme":                            {"Pa-ss9://ops@host", errScheme.Error()},
		"a token alone":                                {"Pa-ss-9", errScheme.Error()},
		"a custom address for a service that has none": {"slack+https://Pa!ss:9@host/", errAddress.Error()},
		"a service with parts that are missing":        {"slack://P!ss-9", fmt.Sprintf(accepted, "slack")},
		"an unknown option":                            {"smtp://ops:P!ss9@mail.example.com/?P!ss9=P!ss9", fmt.Sprintf(accepted, "smtp")},
	} {
		t.Run(name, func(t *testing.T) {
			if err := newService(tc.address).send(t.Context(), "title", "text"); err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestSend_LeavesNothingBehind shows that a service that answers too late leaves nothing running
// after its answer.
func TestSend_LeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan struct{})
		wire(func(*http.Request) error { <-late; return nil }).use(t)
		err := newService("generic://host/hook").send(t.Context(), "title", "text")
		if err == nil || !strings.Contains(err.Error(), "no answer within 10s") {
			t.Errorf("got %v, want that nothing came within the time", err)
		}
		close(late) // The test fails if a goroutine is still blocked at its end.
		synctest.Wait()
	})
}

// TestSend_BoundsServicesThatHang shows that a service that never answers gets only a limited number of
// messages at once, and more once it answers.
func TestSend_BoundsServicesThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late, asked := make(chan struct{}), atomic.Int32{}
		wire(func(*http.Request) error { asked.Add(1); <-late; return nil }).use(t)
		s := newService("generic://host/hook")
		for range mostUnanswered {
			if err := s.send(t.Context(), "title", "text"); err == nil || err.Error() != "no answer within 10s" {
				t.Errorf("got %v, want that nothing came within the time", err)
			}
		}
		if err := s.send(t.Context(), "title", "text"); err == nil || err.Error() != "8 messages before this one have no answer yet" {
			t.Errorf("got %v, want a refusal", err)
		}
		if n := asked.Load(); n != mostUnanswered {
			t.Errorf("the service was asked %d times at once", n)
		}
		close(late)
		synctest.Wait()
		if err := s.send(t.Context(), "title", "text"); err != nil {
			t.Errorf("got %v once the service answers", err)
		}
	})
}

// TestSend_BeginsNothingTooLate shows that a message is not sent after its time-out, because it
// would count as not sent.
func TestSend_BeginsNothingTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire(func(*http.Request) error { t.Error("the service was notified"); return nil }).use(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := newService("generic://host/hook").send(ctx, "title", "text"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that it was cancelled", err)
		}
		synctest.Wait()
	})
}

// TestNotifier_GivesEachServiceItsOwnTime shows that services that never answer do not use up the
// time of the next one, which is notified once.
func TestNotifier_GivesEachServiceItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never, sent := make(chan struct{}), 0
		wire(func(q *http.Request) error {
			if q.URL.Host == "dead" {
				<-never
				return nil
			}
			sent++
			return nil
		}).use(t)
		defer synctest.Wait()
		defer close(never)
		s := secrets{"four": "generic://dead/a\ngeneric://dead/b\ngeneric://dead/c\ngeneric://alive/d"}
		ended := make(chan outcome, 1)
		n := New(reading.Secrets{Reader: s, Namespace: "reboot-operator-system"}, clock.RealClock{}, func(m Message, r Result, err error) { ended <- outcome{m, r, err} })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go n.Start(ctx)
		n.Notify([]v1alpha1.Notification{{SecretRef: v1alpha1.SecretReference{Name: "four"}}}, Message{Event: v1alpha1.NotifyHalted, Text: "help"})
		const want = "service 1: no answer within 10s\nservice 2: no answer within 10s\nservice 3: no answer within 10s"
		if o := <-ended; o.result != Failed || !strings.HasSuffix(o.err.Error(), want) {
			t.Errorf("%s: %v, want it to end with %q", o.result, o.err, want)
		}
		if sent != 1 {
			t.Errorf("the service that answers was notified %d times", sent)
		}
	})
}

// TestRedact_LeavesNothingOfTheAddress shows that an address is removed both as it is in the Secret
// and as a library writes it.
func TestRedact_LeavesNothingOfTheAddress(t *testing.T) {
	for name, tc := range map[string]struct{ address, text, want string }{
		"the whole address": {
			"smtp://ops:Pa%25ss!9@mail.example.com:587/", "sending to smtp://ops:Pa%25ss!9@mail.example.com:587/ failed", "sending to … failed",
		},
		"a password with punctuation": {
			"smtp://ops:Pa%25ss!9@mail.example.com:587/", "535 refused: Pa%ss!9", "535 refused: …",
		},
		"a password that the library escapes in its own way": {
			"smtp://ops:Pa%25ss!9@mail.example.com:587/", "GET Pa%25ss%219 failed", "GET … failed",
		},
		"a password of punctuation only": {
			"smtp://ops:!%24%25~@mail.example.com:587/", "535 refused: !$%~", "535 refused: …",
		},
		"a password with separators": {
			"smtp://ops:a:b%2Fc%40d@mail.example.com:587/", "535 refused: a:b/c@d", "535 refused: …",
		},
		"a password in quotes": {
			"smtp://ops:a%22b%5Cc@mail.example.com:587/", `parse "a\"b\\c": no`, `parse "…": no`,
		},
		"a user name that is the beginning of the password": {
			"generic://bot:bot12345@10.0.0.1/", "403 for bot12345", "403 for …",
		},
		"a part that is the prefix of a later one": {
			"generic://10.0.0.1/key/keyABCDEF", "403 for keyABCDEF", "403 for …",
		},
		"the userinfo": {
			"generic://a!:b!@10.0.0.1/", "403 for a!:b!", "403 for …",
		},
		"the path and the query": {
			"generic://10.0.0.1/T-0/B-0?k=x!y", "POST https://example.com/T-0/B-0?k=x!y: 403", "POST https://example.com…?…: 403",
		},
		"a token of a query, unescaped": {
			"generic://10.0.0.1/?key=a%2Bb+c", "403 for a+b c", "403 for …",
		},
		"a part of a token": {
			"slack://hook:T00-B00-XXXX@webhook", "no webhook B00", "no … …",
		},
		"an address that cannot be read": {
			"smtp://ops:Pa%ss!9@mail", "who is Pa%ss!9", "who is …",
		},
		"no part of the address": {
			"slack://hook:T00-B00-XXXX@webhook", "no such host", "no such host",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := redact(tc.text, tc.address); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
