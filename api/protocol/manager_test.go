package protocol

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// An entry is for the Node whose UID it names. Where it names none, it is for none.
func TestPublish_OnlyOnTheNodeOfTheEntry(t *testing.T) {
	for uid, want := range map[types.UID]bool{"1": true, "2": false, "": false} {
		e := v1alpha1.LedgerEntry{NodeUID: uid, Seq: 7, BootID: boot}
		if _, ok := Publish(Record{UID: "1"}, e, "workers", now); ok != want {
			t.Errorf("an entry for Node %q is published on Node 1: %t", uid, ok)
		}
		if _, ok := Cancel(Record{UID: "1", Grant: makeGrant(7, active, boot)}, e, "workers", now); ok != want {
			t.Errorf("an entry for Node %q is cancelled on Node 1: %t", uid, ok)
		}
	}
}
