package dashboard_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	. "github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/dashboard"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
)

// TestBrowser_Follows tests that a change of the fleet appears in the open page, and does not
// disturb what a person is doing there.
func TestBrowser_Follows(t *testing.T) {
	b := chromium(t)
	s, web := served(t, clock.RealClock{})
	waiting := func(more ...func(*corev1.Node)) fleet.Fleet {
		n2 := append([]func(*corev1.Node){Needs(time.Hour)}, more...)
		policy, n3 := Policy("w"), Node("n3", "w")
		if len(more) > 0 {
			policy, n3 = Policy("w", Holds("n2", 7, 0)), Node("n3", "w", Needs(time.Hour), Annotated(v1alpha1.AnnotationPaused, "true"))
		}
		return fleet.New([]v1alpha1.RebootPolicy{policy}, []corev1.Node{
			Node("n1", "w", Needs(time.Hour), Annotated(v1alpha1.AnnotationPaused, "true")), Node("n2", "w", n2...), n3,
		}, Now)
	}
	live := dashboard.Options{Cluster: "prod", Live: true, Zone: Berlin}
	explained := func(f fleet.Fleet) dashboard.Page {
		page := rendered(t, f, live)
		page.Explain = func(node string) string { return dashboard.Explain(f, live, node) }
		return page
	}
	s.Show(explained(waiting()))
	address := web.URL + s.Path()
	b.open(address + "#node=n2")
	b.until(`document.getElementById("detail").textContent.includes("kubectl reboot explain n2")`)
	b.evaluate(`document.querySelector("[data-node=n2]").click(); true`, nil)
	b.until(`document.getElementById("live").textContent === "live"`)
	b.until(`document.querySelector("[data-node=n2]").classList.contains("next")`)

	b.evaluate(`document.querySelector("[data-node=n1]").click(); document.querySelector("#waiting details").open = true; document.querySelector("[data-node=n1]").focus()`, nil)
	b.until(`document.getElementById("detail").textContent.includes("n1: waiting, NodePaused") && document.getElementById("detail").textContent.includes("kubectl reboot explain n1")`)
	b.until(`document.querySelector("#detail pre").textContent.startsWith("n1 waits: NodePaused") && location.hash === "#node=n1"`)
	b.press("ArrowRight")
	b.until(`document.activeElement.dataset.node === "n2"`)

	s.Show(explained(waiting(Granted("w", 7, 0), Progressed(7, protocol.PhaseDraining, 0))))
	b.until(`document.querySelector("[data-node=n2]").classList.contains("draining") && document.querySelector("#progress").textContent.includes("n2") && document.querySelector("#waiting").textContent.includes("n3")`)
	b.until(`document.activeElement.dataset.node === "n2" && document.querySelector("#waiting details").open && !document.getElementById("detail").hidden`)
	b.until(`document.title.startsWith("prod: 0 of 3 up to date, 1 rebooting, 2 waiting")`)

	b.evaluate(`document.getElementById("find").value = "n3"; document.getElementById("find").dispatchEvent(new Event("input", {bubbles: true}))`, nil)
	b.until(`[...document.querySelectorAll(".tiles li:not([hidden])")].length === 1`)
	b.quiet(address)

	web.CloseClientConnections()
	web.Close()
	b.until(`document.getElementById("live").textContent.startsWith("OLD")`)
}

// TestBrowser_Hostile tests that untrusted text stays text in a browser, in the first page and in
// updates.
func TestBrowser_Hostile(t *testing.T) {
	b := chromium(t)
	s, web := served(t, clock.RealClock{})
	live := dashboard.Options{Cluster: markup, Live: true, Trouble: markup, Log: []string{markup}}
	s.Show(rendered(t, busy(), live))
	address := web.URL + s.Path()
	b.open(address)
	b.until(`document.getElementById("live").textContent === "live"`)
	live.Log = append(live.Log, "the second")
	s.Show(rendered(t, busy(), live))
	b.until(`document.getElementById("log").textContent.includes("the second")`)
	b.evaluate(`for (const tile of document.querySelectorAll(".tiles .tile")) tile.click()`, nil)
	var markups int
	b.evaluate(`document.querySelectorAll("img, main script, [onfocus], [onerror]").length`, &markups)
	if markups != 0 {
		t.Errorf("%d texts have become markup", markups)
	}
	b.until(`document.getElementById("progress").textContent.includes("<script>alert(1)</script>")`)
	b.quiet(address)
}

// TestBrowser_Accessible tests that axe-core finds no problems, in light and dark mode, on a phone
// and on a wide screen, and that nothing overflows.
func TestBrowser_Accessible(t *testing.T) {
	b := chromium(t)
	axe, err := os.ReadFile(axePath)
	must(t, err)
	for name, f := range map[string]fleet.Fleet{"busy": busy(), "thousand": thousand()} {
		s, web := served(t, clock.RealClock{})
		s.Show(rendered(t, f, dashboard.Options{Cluster: "prod (https://10.0.0.1)", Live: true, Log: []string{"Mon 15:47:00  worker-05: Draining → Rebooting"}}))
		b.open(web.URL + s.Path())
		b.until(`document.getElementById("live").textContent === "live"`)
		b.evaluate(`document.querySelector(".tiles .tile").click()`, nil)
		b.evaluate(string(axe)+"; true", nil)
		for _, width := range []int{400, 1600} {
			for _, scheme := range []string{"light", "dark"} {
				if name == "thousand" && (width == 400) == (scheme == "dark") { // half of the combinations suffice
					continue
				}
				b.look(width, scheme)
				b.picture(fmt.Sprintf("%s-%d-%s", name, width, scheme))
				b.evaluate(`for (const d of document.querySelectorAll("details")) d.open = true`, nil)
				var findings []string
				b.evaluate(`axe.run().then(r => r.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map(n => n.html).join(" ")))`, &findings)
				for _, f := range findings {
					t.Errorf("%s at %d, %s: %s", name, width, scheme, f)
				}
				var wide int
				b.evaluate(`document.documentElement.scrollWidth`, &wide)
				if wide > width {
					t.Errorf("%s at %d is %d wide", name, width, wide)
				}
				b.evaluate(`for (const d of document.querySelectorAll("details")) d.open = false`, nil)
			}
		}
	}
}
