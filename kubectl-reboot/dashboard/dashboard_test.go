package dashboard_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	. "github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/dashboard"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/explanation"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
)

// markup is a text that must not take effect as markup.
const markup = `<script>alert(1)</script><img src=x onerror=alert(2)>" onfocus="alert(3)` + "\u202e\x1b"

// busy returns a fleet in which everything happens at once.
func busy() fleet.Fleet {
	ago := metav1.NewTime(Now.Add(-20 * time.Hour))
	end := metav1.NewTime(Now.Add(-19*time.Hour - 50*time.Minute))
	policies := []v1alpha1.RebootPolicy{
		Policy("workers", AtMost("4"), Holds("worker-04", 7, 9*time.Minute), Holds("worker-05", 8, 4*time.Minute), Holds("worker-06", 9, 6*time.Minute),
			func(p *v1alpha1.RebootPolicy) {
				p.Status.History = []v1alpha1.PastReboot{
					{Node: "worker-01", Seq: 5, GrantedAt: ago, EndedAt: end, Result: v1alpha1.RebootSucceeded, Reason: "UpdateStaged", FromVersion: "4459.2.0", ToVersion: "4459.2.1"},
					{Node: "worker-02", Seq: 6, GrantedAt: ago, EndedAt: end, Result: v1alpha1.RebootAborted, Reason: "DrainTimedOut", Message: markup},
				}
			}),
		Policy("edge", Halted("2 nodes failed since the last success (maxFailures is 2): edge-1 (DrainTimedOut), edge-2 (RebootTimedOut)"), Holds("edge-2", 3, 4*time.Hour)),
		Policy("gpu", AtMost("3"), Weeknights, Spec(func(s *v1alpha1.RebootPolicySpec) { s.Pause = &v1alpha1.Pause{Reason: markup} })),
		Policy("night", Weeknights, AgentsMissing("night-3")),
	}
	nodes := []corev1.Node{
		Node("worker-01", "workers"), Node("worker-02", "workers"), Node("worker-03", "workers"),
		Node("worker-04", "workers", Needs(50*time.Hour), Granted("workers", 7, 9*time.Minute), Progressed(7, protocol.PhaseDraining, 8*time.Minute),
			Condition(corev1.NodeDrainInProgress, corev1.ConditionTrue, "Draining", 8*time.Minute, "The drain waits for default/db-0 (PodDisruptionBudget db). "+markup)),
		Node("worker-05", "workers", Needs(49*time.Hour), Granted("workers", 8, 4*time.Minute), Progressed(8, protocol.PhaseRebooting, 2*time.Minute)),
		Node("worker-06", "workers", Granted("workers", 9, 6*time.Minute), Progressed(9, protocol.PhaseRebooting, 4*time.Minute), Booted(30*time.Second)),
		Node("worker-16", "workers", Needs(time.Hour), Annotated(v1alpha1.AnnotationPaused, "true")),
		Node("worker-17", "workers", func(n *corev1.Node) { n.Status.Conditions = n.Status.Conditions[:1] }),
		Node("edge-1", "edge", Needs(9*time.Hour)),
		Node("edge-2", "edge", Needs(9*time.Hour), Granted("edge", 3, 4*time.Hour), Progressed(3, protocol.PhaseRebooting, 4*time.Hour), NotReady),
		Node("gpu-1", "gpu", Needs(9*time.Hour)), Node("gpu-2", "gpu", Annotated(v1alpha1.AnnotationMaxUptime, "720h0m0s"),
			Annotated(v1alpha1.AnnotationBootedAt, Ago(29*24*time.Hour).UTC().Format(time.RFC3339))),
		Node("night-1", "night", Needs(time.Hour)), Node("night-2", "night", Needs(time.Hour)), Node("night-3", "night"),
		Node("stray-1", "none", Needs(time.Hour)),
	}
	for i := 7; i < 16; i++ {
		nodes = append(nodes, Node(fmt.Sprintf("worker-%02d", i), "workers", Needs(48*time.Hour)))
	}
	return fleet.New(policies, nodes, Now)
}

// thousand returns a fleet of a thousand nodes, most of which need a reboot.
func thousand() fleet.Fleet {
	policy := Policy("w", AtMost("2%"), Weeknights)
	nodes := make([]corev1.Node, 1000)
	for i := range nodes {
		name := fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i/250, i%250)
		if nodes[i] = Node(name, "w", Needs(time.Hour)); i%4 == 0 {
			nodes[i] = Node(name, "w")
		}
	}
	return fleet.New([]v1alpha1.RebootPolicy{policy}, nodes, Now)
}

func rendered(t testing.TB, f fleet.Fleet, o dashboard.Options) dashboard.Page {
	t.Helper()
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	page, err := dashboard.Render(dashboard.Of(f, o))
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// TestRender_Zone tests that times inside the manager's sentences are in the reader's time zone,
// too.
func TestRender_Zone(t *testing.T) {
	page := rendered(t, busy(), dashboard.Options{Zone: Berlin})
	for _, section := range []string{"attention", "nodes", "progress"} {
		if html := page.Sections[section]; !strings.Contains(html, "was sent to reboot at Mon 2026-11-23 12:48:00 CET") {
			t.Errorf("%s: %s", section, html)
		}
	}
}

// TestRender tests each part of the page, and the command of each notice.
func TestRender(t *testing.T) {
	page := rendered(t, busy(), dashboard.Options{Cluster: "prod (https://10.0.0.1)", Live: true, Log: []string{"Mon 15:47:00  worker-05: Draining → Rebooting"}})
	for section, want := range map[string][]string{
		"summary":   {"1 failed", "4 rebooting", "prod"},
		"attention": {"policy edge has halted", `kubectl reboot resume rbp/edge --halt`, "policy gpu is paused", "kubectl reboot explain edge-2"},
		"policies":  {"halted", "3, limit 4", ", all but 1"},
		"nodes":     {"worker-04: draining", "worker-05: rebooting", "worker-06: settling", "worker-16: waiting, NodePaused", "edge-2: failed", "worker-17: not reporting", "night-3: not reporting", "worker-01: up to date"},
		"progress":  {"default/db-0 (PodDisruptionBudget db)", "RebootTimedOut"},
		"waiting":   {"BudgetExhausted", "NodePaused", "kubectl reboot resume node/worker-16", "NoPolicy", "stray-1"},
		"forecast":  {"<svg", "night-1", "1 staying until somebody acts", "reboots: 2<", "1 that will need a reboot because of their uptime", "<strong>gpu-2</strong> Tue 2026-11-24"},
		"history":   {"worker-01", "4459.2.0 → 4459.2.1", "Aborted"},
		"log":       {"Draining → Rebooting"},
	} {
		for _, text := range want {
			if !strings.Contains(strings.ReplaceAll(page.Sections[section], "&#43;", "+"), text) {
				t.Errorf("%s does not have %q:\n%s", section, text, page.Sections[section])
			}
		}
		if section == "history" && strings.Index(page.Sections[section], "worker-02") > strings.Index(page.Sections[section], "worker-01") {
			t.Error("the history does not begin with the newest reboot")
		}
		if !strings.Contains(page.HTML, page.Sections[section]) {
			t.Errorf("the page does not have section %s", section)
		}
	}
	if folder := os.Getenv("DASHBOARD_FOLDER"); folder != "" { // to look at the pages
		for name, f := range map[string]fleet.Fleet{"busy": busy(), "thousand": thousand()} {
			page := rendered(t, f, dashboard.Options{Cluster: "prod (https://10.0.0.1)"})
			if err := os.WriteFile(filepath.Join(folder, name+".html"), []byte(page.HTML), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestRender_Hostile tests that text from nodes, hooks and people stays text everywhere.
func TestRender_Hostile(t *testing.T) {
	page := rendered(t, busy(), dashboard.Options{Cluster: markup, Trouble: markup, Live: true, Log: []string{markup}})
	tag := regexp.MustCompile(`<[a-z][^>]*>`)
	for name, html := range page.Sections {
		for _, bad := range []string{"<script", "<img", "\u202e", "\x1b"} {
			if strings.Contains(html, bad) {
				t.Errorf("%s has %q:\n%s", name, bad, html)
			}
		}
		for _, m := range tag.FindAllString(html, -1) {
			if strings.Contains(strings.ReplaceAll(m, "&#34;", ""), `" onfocus`) {
				t.Errorf("%s: a value has left its attribute: %s", name, m)
			}
		}
	}
	for _, name := range []string{"summary", "attention", "nodes", "progress", "waiting", "forecast", "history", "log"} {
		if !strings.Contains(page.Sections[name], "&lt;script&gt;alert(1)") {
			t.Errorf("%s does not show the hostile text, so nothing is shown about it", name)
		}
	}
	if n := strings.Count(page.HTML, "<script"); n != 1 {
		t.Errorf("the page has %d scripts, want its own", n)
	}
}

// TestRender_Policy tests that the page allows its own script and style sheet by their hashes, and
// no other resources.
func TestRender_Policy(t *testing.T) {
	page := rendered(t, busy(), dashboard.Options{})
	hashed := func(element string) string { // hash of what a browser finds between the tags
		_, text, _ := strings.Cut(page.HTML, "<"+element+">")
		text, _, _ = strings.Cut(text, "</"+element+">")
		sum := sha256.Sum256([]byte(text))
		return strings.ReplaceAll(template.HTMLEscapeString("'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"';"), "+", "&#43;")
	}
	for _, want := range []string{"default-src &#39;none&#39;;", "connect-src &#39;self&#39;;", "script-src " + hashed("script"), "style-src " + hashed("style")} {
		if !strings.Contains(page.HTML, want) {
			t.Errorf("the page's policy does not have %q", want)
		}
	}
	rest := strings.NewReplacer(`xmlns="http://www.w3.org/2000/svg"`, "", "img src=x", "", `<a href="https://github.com/reboot-operator/reboot-operator/`, "").Replace(page.HTML)
	for _, bad := range []string{"http:", "https:", "url(", "@import", "src=", "style=\""} {
		if strings.Contains(rest, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

// TestOf_ALastGrantThatIsNotReleased tests that a node that still needs a reboot is not shown as up
// to date.
func TestOf_ALastGrantThatIsNotReleased(t *testing.T) {
	policy := Policy("w", Holds("n1", 7, time.Hour))
	policy.Status.Grants[0].NodeUID = "of-an-earlier-node"
	v := dashboard.Of(fleet.New([]v1alpha1.RebootPolicy{policy}, []corev1.Node{Node("n1", "w", Needs(time.Hour))}, Now), dashboard.Options{Zone: Berlin})
	if tile := v.Pools[0].Tiles[0]; tile.State != dashboard.Waiting || tile.Message != "the manager has not released its last grant yet" {
		t.Errorf("got %+v", tile)
	}
}

// TestOf_ANodeThatIsDown tests that a node that is not Ready is not shown as up to date.
func TestOf_ANodeThatIsDown(t *testing.T) {
	v := dashboard.Of(fleet.New([]v1alpha1.RebootPolicy{Policy("w")}, []corev1.Node{Node("n1", "w", NotReady)}, Now), dashboard.Options{Zone: Berlin})
	if tile := v.Pools[0].Tiles[0]; tile.Label() != "n1: not reporting, NodeUnavailable" || tile.Message != explanation.NotReady {
		t.Errorf("got %+v", tile)
	}
}

// TestOf_ADrainTimesOut tests that drain.timeout ends a drain before the reboot is overdue.
func TestOf_ADrainTimesOut(t *testing.T) {
	node := Node("n1", "w", Needs(time.Hour), Granted("w", 7, 3*time.Minute), Progressed(7, protocol.PhaseDraining, 2*time.Minute))
	v := dashboard.Of(fleet.New([]v1alpha1.RebootPolicy{Policy("w", Holds("n1", 7, 3*time.Minute))}, []corev1.Node{node}, Now), dashboard.Options{Zone: Berlin})
	if r := v.Progress[0]; r.Ends.At.IsZero() || !r.Ends.At.Equal(r.DrainUntil) {
		t.Errorf("it ends %s, and drain.timeout is over %s", r.Ends.At, r.DrainUntil)
	}
}

// TestRender_DoneIsNotKnown tests that a policy with an overdue reboot is not done, even if the
// need is gone.
func TestRender_DoneIsNotKnown(t *testing.T) {
	node := Node("n1", "w", Granted("w", 7, 4*time.Hour), Progressed(7, protocol.PhaseRebooting, 4*time.Hour), NotReady)
	page := rendered(t, fleet.New([]v1alpha1.RebootPolicy{Policy("w", Holds("n1", 7, 4*time.Hour))}, []corev1.Node{node}, Now), dashboard.Options{})
	if html := page.Sections["policies"]; !strings.Contains(html, "<dt>done</dt><dd>not known</dd>") {
		t.Error(html)
	}
}

// TestRender_Nothing tests a cluster without policies, and that the page claims calm only if the
// manager has nothing to do.
func TestRender_Nothing(t *testing.T) {
	lags := fleet.New([]v1alpha1.RebootPolicy{Policy("w")}, []corev1.Node{Node("n1", "w", Needs(time.Hour))}, Now)
	for what, f := range map[string]fleet.Fleet{"no policy": fleet.New(nil, []corev1.Node{Node("n1", "w")}, Now), "a manager that lags": lags} {
		if html := rendered(t, f, dashboard.Options{}).Sections["attention"]; strings.Contains(html, "Nothing needs you") {
			t.Errorf("%s: %s", what, html)
		}
	}
	well := fleet.New([]v1alpha1.RebootPolicy{Policy("w")}, []corev1.Node{Node("n1", "w")}, Now)
	if html := rendered(t, well, dashboard.Options{Trouble: "this may be out of date"}).Sections["attention"]; strings.Contains(html, "Nothing needs you") {
		t.Errorf("an old page: %s", html)
	}
	well.Manager = fleet.ManagerOf([]coordinationv1.Lease{{Spec: coordinationv1.LeaseSpec{RenewTime: new(metav1.NewMicroTime(Now.Add(-time.Hour)))}}}, nil)
	if html := rendered(t, well, dashboard.Options{}).Sections["summary"]; !strings.Contains(html, ">no manager has run since Mon 2026-11-23 14:48:00 UTC; 1 of 1 up to date<") {
		t.Errorf("no manager: %s", html)
	}
	if html := rendered(t, fleet.New([]v1alpha1.RebootPolicy{Policy("w")}, nil, Now), dashboard.Options{}).Sections["policies"]; !strings.Contains(html, "<dt>up to date</dt><dd>no node</dd>") {
		t.Errorf("a policy without nodes: %s", html)
	}
	page := rendered(t, fleet.New(nil, nil, Now), dashboard.Options{})
	for section, want := range map[string]string{"policies": "No RebootPolicy.", "forecast": "No RebootPolicy.", "attention": "Nothing needs you."} {
		if !strings.Contains(page.Sections[section], want) {
			t.Errorf("%s is %s", section, page.Sections[section])
		}
	}
}

// TestView_Headline_NoManager tests the title of the page while no manager runs.
func TestView_Headline_NoManager(t *testing.T) {
	f := fleet.New([]v1alpha1.RebootPolicy{Policy("w")}, []corev1.Node{Node("n1", "w", Needs(time.Hour))}, Now)
	f.Manager = fleet.ManagerOf([]coordinationv1.Lease{{Spec: coordinationv1.LeaseSpec{RenewTime: new(metav1.NewMicroTime(Now.Add(-time.Hour)))}}}, nil)
	const want = "no manager has run since Mon 2026-11-23 15:48:00 CET; 0 of 1 up to date, 1 waiting"
	if got := dashboard.Of(f, dashboard.Options{Zone: Berlin}).Headline(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRender_Chosen tests that only the named policies are shown.
func TestRender_Chosen(t *testing.T) {
	page := rendered(t, busy(), dashboard.Options{Names: []string{"night"}})
	for name, html := range page.Sections {
		if strings.Contains(html, "worker-") || strings.Contains(html, "stray-1") {
			t.Errorf("%s shows other policies' nodes:\n%s", name, html)
		}
	}
}

// TestRender_Thousand tests that the page of a large fleet stays small enough to open quickly.
func TestRender_Thousand(t *testing.T) {
	page := rendered(t, thousand(), dashboard.Options{})
	if n := strings.Count(page.HTML, `data-node=`); n != 1000 {
		t.Errorf("the page has %d tiles", n)
	}
	if size := len(page.HTML); size > 1<<20 {
		t.Errorf("the page has %d bytes, more than a megabyte", size)
	}
	if allocated := testing.AllocsPerRun(1, func() { rendered(t, thousand(), dashboard.Options{}) }); allocated > 2e6 {
		t.Errorf("rendering allocates %v times: it no longer grows with the nodes, but with their square", allocated)
	}
}

func BenchmarkRender(b *testing.B) {
	f := thousand()
	for b.Loop() {
		rendered(b, f, dashboard.Options{})
	}
}

// served starts a server for the duration of the test.
func served(t *testing.T, clock clock.WithTicker) (*dashboard.Server, *httptest.Server) {
	t.Helper()
	s := dashboard.NewServer(clock)
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return s, web
}

func ask(t *testing.T, method, url, host string) (status int, header http.Header, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(text)
}

// TestServer_Refuses tests that the page requires the token and a local Host header, and that no
// request changes anything.
func TestServer_Refuses(t *testing.T) {
	s, web := served(t, clock.RealClock{})
	page := rendered(t, busy(), dashboard.Options{Live: true})
	s.Show(page)
	if other := dashboard.NewServer(clock.RealClock{}); other.Path() == s.Path() || len(s.Path()) < 30 {
		t.Errorf("the path can be guessed: %s", s.Path())
	}
	cases := map[string]struct {
		method, path, host string
		want               int
	}{
		"the page":                   {http.MethodGet, s.Path(), "", http.StatusOK},
		"localhost as the host name": {http.MethodGet, s.Path(), "localhost:8080", http.StatusOK},
		"a rebound DNS name":         {http.MethodGet, s.Path(), "evil.example", http.StatusForbidden},
		"with a port":                {http.MethodGet, s.Path(), "evil.example:8080", http.StatusForbidden},
		"a host name that begins with the right one": {http.MethodGet, s.Path(), "127.0.0.1.evil.example", http.StatusForbidden},
		"events under a rebound DNS name":            {http.MethodGet, s.Path() + "events", "evil.example", http.StatusForbidden},
		"no token":                                   {http.MethodGet, "/", "", http.StatusNotFound},
		"events without a token":                     {http.MethodGet, "/events", "", http.StatusNotFound},
		"a wrong token":                              {http.MethodGet, "/" + strings.Repeat("A", 32) + "/", "", http.StatusNotFound},
		"part of the token":                          {http.MethodGet, s.Path()[:20] + "/", "", http.StatusNotFound},
		"an explanation without a token":             {http.MethodGet, "/explain?node=n1", "", http.StatusNotFound},
		"another page below":                         {http.MethodGet, s.Path() + "x", "", http.StatusNotFound},
		"a POST":                                     {http.MethodPost, s.Path(), "", http.StatusMethodNotAllowed},
		"a DELETE":                                   {http.MethodDelete, s.Path(), "", http.StatusMethodNotAllowed},
		"an OPTIONS of a preflight":                  {http.MethodOptions, s.Path(), "", http.StatusMethodNotAllowed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status, header, body := ask(t, tc.method, web.URL+tc.path, tc.host)
			if status != tc.want {
				t.Errorf("got %d, want %d", status, tc.want)
			}
			if (body == page.HTML) != (tc.want == http.StatusOK) {
				t.Errorf("it gets the page, or not, against its status: %.200s", body)
			}
			if strings.Contains(body, s.Path()) {
				t.Error("an answer has the token")
			}
			for key, want := range map[string]string{
				"Content-Security-Policy": "frame-ancestors 'none'", "Cross-Origin-Resource-Policy": "same-origin",
				"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			} {
				if !strings.Contains(header.Get(key), want) {
					t.Errorf("header %s is %q", key, header.Get(key))
				}
			}
			if got := header.Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("other origins may read it: %s", got)
			}
		})
	}
}

// events opens the event stream, and returns a function that returns the next event.
func events(t *testing.T, url string) func() string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("it is %s", got)
	}
	reader := bufio.NewReader(response.Body)
	return func() string {
		var event strings.Builder
		for {
			line, err := reader.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if line == "\n" {
				return event.String()
			}
			event.WriteString(line)
		}
	}
}

func sectionsOf(t *testing.T, event string) map[string]string {
	t.Helper()
	var sections map[string]string
	if err := json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &sections); err != nil {
		t.Fatalf("%v: %s", err, event)
	}
	return sections
}

// TestServer_Explains tests that a tile opens the output of kubectl reboot explain.
func TestServer_Explains(t *testing.T) {
	s, web := served(t, clock.RealClock{})
	f := busy()
	page := rendered(t, f, dashboard.Options{Live: true})
	page.Explain = func(node string) string { return dashboard.Explain(f, dashboard.Options{Zone: Berlin}, node) }
	s.Show(page)
	for node, want := range map[string]string{"worker-16": "worker-16 waits: NodePaused\n", "nowhere": `node "nowhere" not found`, "worker-04": "Do        nothing"} {
		if _, header, body := ask(t, http.MethodGet, web.URL+s.Path()+"explain?node="+node, ""); !strings.Contains(body, want) || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
			t.Errorf("%s: %s", node, body)
		}
	}
	if _, _, body := ask(t, http.MethodGet, web.URL+s.Path()+"explain?node=worker-04", ""); strings.ContainsAny(body, "\u202e\x1b") {
		t.Errorf("hostile text is not harmless: %q", body)
	}
}

// TestRender_NeedsYou tests that the page is not calm while a node fails, and that its tile does
// not look like a waiting one.
func TestRender_NeedsYou(t *testing.T) {
	failed := Node("n1", "w", Needs(2*time.Hour), Granted("w", 1, 2*time.Hour), Progressed(1, protocol.PhaseAborted, time.Hour, func(p *protocol.Progress) {
		p.Failures, p.Reason, p.Message = 1, v1alpha1.ReasonDrainTimedOut, "default/db-0 stayed"
	}))
	night := Policy("w", Weeknights)
	calm := rendered(t, fleet.New([]v1alpha1.RebootPolicy{night}, []corev1.Node{Node("a", "w", Needs(time.Hour))}, Now), dashboard.Options{})
	if html := calm.Sections["attention"]; !strings.Contains(html, "Nothing needs you.") {
		t.Errorf("a closed window alone: %s", html)
	}
	page := rendered(t, fleet.New([]v1alpha1.RebootPolicy{night}, []corev1.Node{Node("a", "w", Needs(time.Hour)), failed}, Now), dashboard.Options{})
	if html := page.Sections["attention"]; strings.Contains(html, "Nothing needs you") || !strings.Contains(html, "n1 was not rebooted (DrainTimedOut): default/db-0 stayed") {
		t.Error(html)
	}
	html := page.Sections["nodes"]
	if !strings.Contains(html, `class="tile failed" tabindex="-1" aria-label="n1: failed, DrainTimedOut"`) || strings.Index(html, `data-node="n1"`) > strings.Index(html, `data-node="a"`) {
		t.Errorf("the failed node is not first, or looks like another: %s", html)
	}
}

// TestRender_EachCause tests that nodes with the same reason but different causes get separate
// sentences.
func TestRender_EachCause(t *testing.T) {
	blocked := func(message string) func(*corev1.Node) {
		return Annotated(v1alpha1.AnnotationReport, fmt.Sprintf(`{"blockedBy":[{"reason":"Inhibited","message":%q}]}`, message))
	}
	page := rendered(t, fleet.New([]v1alpha1.RebootPolicy{Policy("w")}, []corev1.Node{
		Node("n1", "w", Needs(time.Hour), blocked("backup runs")), Node("n2", "w", Needs(time.Hour), blocked("an upgrade runs")), Node("n3", "w", Needs(time.Hour), blocked("backup runs")),
	}, Now), dashboard.Options{})
	for _, want := range []string{"n1, n3: backup runs", "n2: an upgrade runs"} {
		if !strings.Contains(page.Sections["waiting"], want) {
			t.Errorf("missing %q: %s", want, page.Sections["waiting"])
		}
	}
}

// TestServer_Events tests that the stream first sends all sections and then the changed ones, with
// keep-alives in between.
func TestServer_Events(t *testing.T) {
	clock := testingclock.NewFakeClock(Now)
	s, web := served(t, clock)
	s.Show(dashboard.Page{HTML: "whole", Sections: map[string]string{"nodes": "n1 waits\nfor long", "history": "none"}})
	next := events(t, web.URL+s.Path()+"events")
	if got := sectionsOf(t, next()); len(got) != 2 || got["nodes"] != "n1 waits\nfor long" {
		t.Errorf("it begins with %v", got)
	}
	s.Show(dashboard.Page{HTML: "newer", Sections: map[string]string{"nodes": "n1 drains", "history": "none"}})
	if got := sectionsOf(t, next()); len(got) != 1 || got["nodes"] != "n1 drains" {
		t.Errorf("it goes on with %v", got)
	}
	clock.Step(time.Minute)
	if got := next(); got != "event: beat\ndata:\n" {
		t.Errorf("got %q", got)
	}
}

// TestOf_NoTurnComesIfTheLimitIsZero tests that the advice is not to wait if the limit is zero.
func TestOf_NoTurnComesIfTheLimitIsZero(t *testing.T) {
	f := fleet.New([]v1alpha1.RebootPolicy{Policy("w", AtMost("0"))}, []corev1.Node{Node("n1", "w", Needs(time.Hour))}, Now)
	v := dashboard.Of(f, dashboard.Options{Zone: time.UTC})
	if len(v.Waits) != 1 || !strings.HasPrefix(v.Waits[0].Advice.Text, "raise spec.concurrency.maxUnavailable") {
		t.Errorf("%+v", v.Waits)
	}
}

// TestRender_ADryRunIsNeverDone tests that a dry run has no completion time, because it reboots
// nothing.
func TestRender_ADryRunIsNeverDone(t *testing.T) {
	f := fleet.New([]v1alpha1.RebootPolicy{Policy("w", Spec(func(s *v1alpha1.RebootPolicySpec) { s.Mode = v1alpha1.ModeDryRun }))}, []corev1.Node{Node("n1", "w", Needs(time.Hour))}, Now)
	page, err := dashboard.Render(dashboard.Of(f, dashboard.Options{Zone: time.UTC}))
	if err != nil || strings.Contains(page.Sections["policies"], "not known") {
		t.Errorf("%v\n%s", err, page.Sections["policies"])
	}
}
