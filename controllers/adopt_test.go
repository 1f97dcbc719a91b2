package controllers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// A ledger takes back what the Node itself shows. In the cache of a leader that was held up while
// another one led, grants that are over are still active.
func TestConverge_AdoptsWhatTheNodeItselfShows(t *testing.T) {
	for name, tc := range map[string]struct {
		over    bool
		gone    bool
		adopted bool
	}{
		"the grant is there: the status was lost":           {adopted: true},
		"the grant is over: another leader has finished it": {over: true},
		"the Node is gone: nobody acts on its grant":        {gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, 2*needy, clock.RealClock{})
			e := s.policy().Status.Grants[0]
			s.progress(t, e, protocol.PhaseDraining)
			s.lag(e.Node, s.node(e.Node))
			if tc.over {
				change(t, s, e.Node, func(node *corev1.Node) {
					grant, err := protocol.ParseGrant(node.Annotations)
					if err != nil {
						t.Fatal(err)
					}
					grant.State = protocol.GrantFinished
					node.Annotations[v1alpha1.AnnotationGrant] = grant.String()
				})
			}
			if tc.gone {
				s.remove(t, s.node(e.Node))
			}
			change(t, s, workers, unledger)
			s.pass(t)
			if adopted := s.seqOf(e.Node) == e.Seq; adopted != tc.adopted {
				t.Errorf("in the ledger again: %t, want %t: %v", adopted, tc.adopted, s.policy().Status.Grants)
			}
		})
	}
}

// A Node that is registered again is a new one, even if its name is the same. The ledger gives its
// slot to the next node, and the grant of the old entry is not published there. If only the cache
// shows an older Node, the entry stays.
func TestConverge_KnowsANodeByItsUID(t *testing.T) {
	for name, tc := range map[string]struct {
		behind   bool
		released bool
	}{
		"registered again":                      {released: true},
		"the cache still has the one before it": {behind: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, 2*needy, clock.RealClock{})
			held := s.policy().Status.Grants[0]
			if held.NodeUID == "" {
				t.Fatalf("the ledger names no UID: %+v", held)
			}
			before, anew := s.node(held.Node), s.node(held.Node)
			anew.UID, anew.ResourceVersion, anew.Annotations = "another", "", map[string]string{}
			s.remove(t, before)
			s.create(t, anew)
			if tc.behind {
				s.lag(before.Name, before)
				change(t, s, workers, func(p *v1alpha1.RebootPolicy) { p.Status.Grants[0].NodeUID = anew.UID })
			}
			s.pass(t)
			if released := s.seqOf(held.Node) != held.Seq; released != tc.released {
				t.Errorf("released: %t, want %t: %v", released, tc.released, s.policy().Status.Grants)
			}
			if grant, err := protocol.ParseGrant(s.node(held.Node).Annotations); err != nil || (grant != nil) != tc.behind {
				t.Errorf("the new Node, for which an entry was made: %t, has grant %+v (%v)", tc.behind, grant, err)
			}
		})
	}
}
