package footprint

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
)

// sink accepts every event.
type sink struct{ got chan struct{} }

func (s sink) Create(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	s.got <- struct{}{}
	return e, nil
}

func (s sink) Update(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) { return e, nil }

func (s sink) Patch(_ context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	return e, nil
}

func TestMain(m *testing.M) {
	Precise()
	m.Run()
}

func TestNow_DistinguishesEventsFromTheRestOfTheHeap(t *testing.T) {
	s := sink{got: make(chan struct{})}
	broadcaster := events.NewBroadcaster(s)
	if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broadcaster.Shutdown)
	recorder := broadcaster.NewRecorder(scheme.Scheme, "test")
	before, err := Now()
	if err != nil {
		t.Skip(err)
	}
	const many = 500 // the profile is a sample, whose error would exceed the allowed variation with more events
	for i := range many {
		about := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: types.UID(time.Duration(i).String())}}
		recorder.Eventf(about, nil, corev1.EventTypeNormal, "Reason", "Act", "a note of some length that is reported again and again")
		<-s.got
	}
	after, err := Now()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(before, after)
	if grown := after.Events - before.Events; grown < many*500 {
		t.Errorf("%d events take %d bytes", many, grown)
	}
	if grown := after.growth(before, 256<<10); grown != "" {
		t.Errorf("and of the rest there is more: %s", grown)
	}
}

func TestFootprint_Growth(t *testing.T) {
	before := Footprint{Goroutines: 10, Files: 5, Heap: 2 << 20, Events: 1}
	for name, tc := range map[string]struct {
		after Footprint
		want  string
	}{
		"the same": {before, ""},
		"less":     {Footprint{}, ""},
		"a few":    {Footprint{Goroutines: 13, Files: 8, Heap: 3 << 20, Events: 1 << 30}, ""},
		"more":     {Footprint{Goroutines: 14, Files: 9, Heap: 3<<20 + 1}, "14 goroutines instead of 10, 9 open files instead of 5, a heap of 3145729 bytes instead of 2097152"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.after.growth(before, 1<<20); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
