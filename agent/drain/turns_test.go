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
	t.Run("requests in flight count against the allowance", func(t *testing.T) {
		refusedThree(t).budget(0.1, web(1)).next(0.1, 1, "a").sent("a").budget(0.2, web(1)).next(0.2, 1)
	})
	t.Run("terminating pods do not count against the allowance", func(t *testing.T) {
		s := refusedThree(t).budget(0.1, web(1)).next(0.1, 1, "a").sent("a").answered(0.2, yes, "a").budget(0.2, web(0))
		s.budget(0.3, web(1)).next(0.3, 1, "b")
		s.p.put(makeTarget("b", deleted(30)))
		s.budget(0.4, web(1)).next(0.4, 1, "c")
	})
	t.Run("a budget that allows nothing wakes no pod", func(t *testing.T) {
		refusedThree(t).budget(0.1, web(0)).next(0.1, 1)
	})
	t.Run("a deleted budget frees all its pods", func(t *testing.T) {
		refusedThree(t).budget(0.1, web(0)).budget(0.2, budget{}).next(0.2, 1, "a", "b", "c")
	})
	t.Run("a budget that selects other pods now frees all its pods", func(t *testing.T) {
		refusedThree(t).budget(0.1, web(0)).budget(0.2, api(0)).next(0.2, 1, "a", "b", "c")
	})
	t.Run("a budget of another namespace does not apply", func(t *testing.T) {
		s := refusedThree(t)
		s.p.budgetChanged(types.NamespacedName{Namespace: "other", Name: "web"}, web(5), at(0.1))
		s.next(0.1, 1)
	})
	t.Run("pods of several budgets wake only when one is deleted", func(t *testing.T) {
		s := begin(t, makeTarget("a")).sent("a").answered(0, answer{verdict: crowded}, "a")
		s.budget(1, web(3)).next(1, 30).budget(2, budget{}).next(2, 0, "a")
	})
	t.Run("pods whose turn has not come do not count against the allowance", func(t *testing.T) {
		s := begin(t, makeTarget("a", order(1))).sent("a").answered(0, no, "a")
		s.p.put(makeTarget("z"))
		s.sent("z").answered(0, no, "z").budget(0.1, web(1)).next(0.1, 0, "z")
	})
	t.Run("a newer status than that of the refusal counts", func(t *testing.T) {
		begin(t, makeTarget("a")).sent("a").budget(0.1, web(1)).answered(0.2, no, "a").next(0.2, 0, "a")
	})
	t.Run("an older status than that of the refusal does not count", func(t *testing.T) {
		begin(t, makeTarget("a")).budget(0, web(1)).sent("a").answered(0.2, no, "a").next(0.2, 1.2)
	})
	t.Run("a failure keeps a pod blocked by its budget", func(t *testing.T) {
		s := refusedThree(t).sent("a").answered(1, answer{verdict: failed, message: "EOF"}, "a")
		s.budget(1.1, web(1)).next(1.1, 0, "b", "c", "x", "a")
	})
	t.Run("the allowance of a failed request goes to the next pod", func(t *testing.T) {
		s := refusedThree(t).budget(0.1, web(1)).next(0.1, 1, "a").sent("a")
		s.answered(0.2, answer{verdict: failed, message: "EOF"}, "a").next(0.2, 1, "b")
		s.sent("b").answered(0.3, answer{verdict: failed, message: "EOF"}, "b").next(0.3, 1, "c")
		s.sent("c").answered(0.4, yes, "c").budget(0.4, web(0)).next(0.4, 1)
	})
	t.Run("the allowance of a request whose pod is gone goes to the next pod", func(t *testing.T) {
		refusedThree(t).budget(0.1, web(1)).sent("a").answered(0.2, answer{verdict: gone}, "a").next(0.2, 1, "b")
	})
	t.Run("an allowance that was used since wakes no pod", func(t *testing.T) {
		s := begin(t, makeTarget("a"), makeTarget("b"), makeTarget("c"), makeTarget("d")).sent("a", "b", "c", "d")
		s.answered(0, no, "a", "b", "c", "d").budget(0.1, web(2)).next(0.1, 1, "a", "b").sent("a", "b").answered(0.2, yes, "b")
		s.answered(0.3, answer{verdict: failed, message: "EOF"}, "a").next(0.3, 1, "c")
	})
	t.Run("pods of a closed budget are evicted when it changes, and otherwise rarely", func(t *testing.T) {
		s := begin(t, makeTarget("a", isReady), makeTarget("b", isReady)).sent("a", "b").answered(0, no, "a", "b").next(0, 1)
		s.budget(0.5, web(0)).next(1, 30.5).budget(20, web(0)).next(30.5, 50)
		s.budget(40, web(1)).next(40, 50, "a").sent("a").answered(40, yes, "a")
	})
	t.Run("pods that a closed budget refuses are evicted when it changes, and otherwise rarely", func(t *testing.T) {
		begin(t, makeTarget("a", isReady)).budget(0, web(0)).sent("a").answered(0, no, "a").next(1, 30).next(30, 0, "a")
	})
	t.Run("pods that are not ready are tried, because a closed budget may let them go", func(t *testing.T) {
		begin(t, makeTarget("a")).budget(0, web(0)).sent("a").answered(0, no, "a").budget(0.1, web(0)).next(0.1, 1)
	})
	t.Run("pods that stop being ready are tried, because a closed budget may let them go", func(t *testing.T) {
		s := begin(t, makeTarget("a", isReady)).budget(0, web(0)).sent("a").answered(0, no, "a").next(1, 30)
		s.p.put(makeTarget("a"))
		s.next(2, 0, "a")
	})
	t.Run("a new watch starts without old statuses", func(t *testing.T) {
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
