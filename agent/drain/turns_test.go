package drain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestBudgetChanged(t *testing.T) {
	refusedThree := func(t *testing.T) *script {
		t.Helper()
		return begin(t, makeTarget("a"), makeTarget("b"), makeTarget("c"), makeTarget("x", app("api"))).
			sent("a", "b", "c", "x").answered(0, no, "a", "b", "c", "x").next(0, 1)
	}
	t.Run("behaviour 38: a budget wakes as many pods as it allows", func(t *testing.T) {
		refusedThree(t).budget(0.1, web(2)).next(0.1, 1, "a", "b")
	})
	t.Run("requests under way use it up", func(t *testing.T) {
		refusedThree(t).budget(0.1, web(1)).next(0.1, 1, "a").sent("a").budget(0.2, web(1)).next(0.2, 1)
	})
	t.Run("pods that were let go do not use it up while they end", func(t *testing.T) {
		s := refusedThree(t).budget(0.1, web(1)).next(0.1, 1, "a").sent("a").answered(0.2, yes, "a").budget(0.2, web(0))
		s.budget(0.3, web(1)).next(0.3, 1, "b")
		s.p.put(makeTarget("b", deleted(30)))
		s.budget(0.4, web(1)).next(0.4, 1, "c")
	})
	t.Run("a budget that allows nothing wakes nobody", func(t *testing.T) {
		refusedThree(t).budget(0.1, web(0)).next(0.1, 1)
	})
	t.Run("a budget that goes frees all its pods", func(t *testing.T) {
		refusedThree(t).budget(0.1, web(0)).budget(0.2, budget{}).next(0.2, 1, "a", "b", "c")
	})
	t.Run("a budget that turns to other pods frees all its pods", func(t *testing.T) {
		refusedThree(t).budget(0.1, web(0)).budget(0.2, api(0)).next(0.2, 1, "a", "b", "c")
	})
	t.Run("another namespace's budget is none of the pods' business", func(t *testing.T) {
		s := refusedThree(t)
		s.p.budgetChanged(types.NamespacedName{Namespace: "other", Name: "web"}, web(5), at(0.1))
		s.next(0.1, 1)
	})
	t.Run("pods of several budgets wake only when one budget goes", func(t *testing.T) {
		s := begin(t, makeTarget("a")).sent("a").answered(0, answer{verdict: crowded}, "a")
		s.budget(1, web(3)).next(1, 30).budget(2, budget{}).next(2, 0, "a")
	})
	t.Run("pods whose turn has not come do not use it up", func(t *testing.T) {
		s := begin(t, makeTarget("a", order(1))).sent("a").answered(0, no, "a")
		s.p.put(makeTarget("z"))
		s.sent("z").answered(0, no, "z").budget(0.1, web(1)).next(0.1, 0, "z")
	})
	t.Run("news that overtook the refusal counts", func(t *testing.T) {
		begin(t, makeTarget("a")).sent("a").budget(0.1, web(1)).answered(0.2, no, "a").next(0.2, 0, "a")
	})
	t.Run("older news does not, or it would be asked without end", func(t *testing.T) {
		begin(t, makeTarget("a")).budget(0, web(1)).sent("a").answered(0.2, no, "a").next(0.2, 1.2)
	})
	t.Run("a failure keeps a pod blocked by its budget", func(t *testing.T) {
		s := refusedThree(t).sent("a").answered(1, answer{verdict: failed, message: "EOF"}, "a")
		s.budget(1.1, web(1)).next(1.1, 0, "b", "c", "x", "a")
	})
	t.Run("a place that a failed request did not take goes to the next pod", func(t *testing.T) {
		s := refusedThree(t).budget(0.1, web(1)).next(0.1, 1, "a").sent("a")
		s.answered(0.2, answer{verdict: failed, message: "EOF"}, "a").next(0.2, 1, "b")
		s.sent("b").answered(0.3, answer{verdict: failed, message: "EOF"}, "b").next(0.3, 1, "c")
		s.sent("c").answered(0.4, yes, "c").budget(0.4, web(0)).next(0.4, 1)
	})
	t.Run("nor did a request whose pod is gone", func(t *testing.T) {
		refusedThree(t).budget(0.1, web(1)).sent("a").answered(0.2, answer{verdict: gone}, "a").next(0.2, 1, "b")
	})
	t.Run("a place that was taken since goes to nobody", func(t *testing.T) {
		s := begin(t, makeTarget("a"), makeTarget("b"), makeTarget("c"), makeTarget("d")).sent("a", "b", "c", "d")
		s.answered(0, no, "a", "b", "c", "d").budget(0.1, web(2)).next(0.1, 1, "a", "b").sent("a", "b").answered(0.2, yes, "b")
		s.answered(0.3, answer{verdict: failed, message: "EOF"}, "a").next(0.3, 1, "c")
	})
	t.Run("pods of a budget that allows nothing are asked for when it changes, else only to be sure", func(t *testing.T) {
		s := begin(t, makeTarget("a", isReady), makeTarget("b", isReady)).sent("a", "b").answered(0, no, "a", "b").next(0, 1)
		s.budget(0.5, web(0)).next(1, 30.5).budget(20, web(0)).next(30.5, 50)
		s.budget(40, web(1)).next(40, 50, "a").sent("a").answered(40, yes, "a")
	})
	t.Run("so are those that it refuses from then on", func(t *testing.T) {
		begin(t, makeTarget("a", isReady)).budget(0, web(0)).sent("a").answered(0, no, "a").next(1, 30).next(30, 0, "a")
	})
	t.Run("but not pods that are not ready: a budget may let these go all the same", func(t *testing.T) {
		begin(t, makeTarget("a")).budget(0, web(0)).sent("a").answered(0, no, "a").budget(0.1, web(0)).next(0.1, 1)
	})
	t.Run("nor those that cease to be ready", func(t *testing.T) {
		s := begin(t, makeTarget("a", isReady)).budget(0, web(0)).sent("a").answered(0, no, "a").next(1, 30)
		s.p.put(makeTarget("a"))
		s.next(2, 0, "a")
	})
	t.Run("a new watch begins from nothing", func(t *testing.T) {
		s := refusedThree(t).budget(0.1, web(0))
		s.p.budgets.forget("other")
		if len(s.p.budgets.known) != 1 {
			t.Error("another namespace's budgets were forgotten")
		}
		s.p.budgets.forget("default")
		if len(s.p.budgets.known) != 0 {
			t.Error("the budgets were not forgotten")
		}
	})
}

func TestBudgetsWanted(t *testing.T) {
	s := begin(t, makeTarget("a"), makeTarget("b", inNamespace("shop")), makeTarget("c", inNamespace("idle")),
		makeTarget("d", inNamespace("crowd"))).sent("a", "b", "c", "d")
	s.answered(0, no, "a", "b").answered(0, yes, "c").answered(0, answer{verdict: crowded}, "d")
	if diff := cmp.Diff([]string{"crowd", "default", "shop"}, s.p.namespaces((*podState).held)); diff != "" {
		t.Errorf("budgetsWanted (-want +got):\n%s", diff)
	}
}
