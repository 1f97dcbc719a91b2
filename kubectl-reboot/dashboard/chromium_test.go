package dashboard_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// axePath is the path to which hack/browser/build.sh downloads axe-core.
var axePath = filepath.Join("..", "..", "bin", "browser", "node_modules", "axe-core", "axe.min.js")

// longest is the timeout of each browser operation, long enough for a busy machine.
const longest = 3 * time.Minute

// tab is a page in its own headless Chromium, driven through two pipes by the DevTools protocol.
type tab struct {
	t       *testing.T
	out     io.Writer
	session string

	mu      sync.Mutex
	id      int
	answers map[int]chan reply
	// problems holds console messages, opened dialogs and failed scripts. asked holds the requested
	// URLs.
	problems, asked []string
}

type reply struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// chromium opens an empty page. It skips the test if hack/browser/build.sh could not download the
// browser, or fails it if CHROMIUM_REQUIRED is set.
func chromium(t *testing.T) *tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err == nil {
		_, err = os.Stat(axePath)
	}
	if err != nil {
		if os.Getenv("CHROMIUM_REQUIRED") != "" {
			t.Fatalf("%v, and CHROMIUM_REQUIRED is set: hack/browser/build.sh", err)
		}
		t.Skipf("%v: hack/browser/build.sh", err)
	}
	folder, err := os.MkdirTemp("", "chromium") //nolint:usetesting // children of the browser may write there for a moment longer
	must(t, err)
	read, itsOut, err := os.Pipe()
	must(t, err)
	itsIn, write, err := os.Pipe()
	must(t, err)
	command := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--disable-background-networking", "--remote-debugging-pipe", "--user-data-dir="+folder, "about:blank")
	command.ExtraFiles = []*os.File{itsIn, itsOut}
	must(t, command.Start())
	itsIn.Close()
	itsOut.Close()
	b := &tab{t: t, out: write, answers: map[int]chan reply{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.listen(read)
	}()
	t.Cleanup(func() {
		write.Close() // Chromium exits at the end of its input
		kill := time.AfterFunc(longest, func() { command.Process.Kill() })
		command.Wait()
		kill.Stop()
		read.Close()
		<-done
		os.RemoveAll(folder)
	})
	var target struct{ TargetID, SessionID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listen receives answers and events until the browser exits.
func (b *tab) listen(from io.Reader) {
	for reader := bufio.NewReader(from); ; {
		text, err := reader.ReadBytes(0)
		if err != nil {
			return
		}
		var r reply
		if json.Unmarshal(text[:len(text)-1], &r) != nil {
			continue
		}
		b.mu.Lock()
		if answer := b.answers[r.ID]; answer != nil {
			delete(b.answers, r.ID)
			answer <- r
		}
		b.event(r)
		b.mu.Unlock()
	}
}

func (b *tab) event(r reply) {
	switch r.Method {
	case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Page.javascriptDialogOpening":
		b.problems = append(b.problems, r.Method+": "+string(r.Params))
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		if json.Unmarshal(r.Params, &p) == nil {
			b.asked = append(b.asked, p.Request.URL)
		}
	}
}

// call sends a command of the protocol and waits for its answer.
func (b *tab) call(method string, params, result any) {
	b.t.Helper()
	b.mu.Lock()
	b.id++
	answer := make(chan reply, 1)
	b.answers[b.id] = answer
	text, err := json.Marshal(map[string]any{"id": b.id, "method": method, "params": params, "sessionId": b.session})
	b.mu.Unlock()
	must(b.t, err)
	_, err = b.out.Write(append(text, 0))
	must(b.t, err)
	select {
	case r := <-answer:
		if r.Error != nil {
			b.t.Fatalf("%s: %s", method, r.Error.Message)
		}
		if result != nil {
			must(b.t, json.Unmarshal(r.Result, result))
		}
	case <-time.After(longest):
		b.t.Fatalf("%s: no answer", method)
	}
}

// evaluate runs an expression in the page, and waits for its result if it is a promise.
func (b *tab) evaluate(expression string, value any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%.200s: %s", expression, r.ExceptionDetails)
	}
	if value != nil {
		must(b.t, json.Unmarshal(r.Result.Value, value))
	}
}

// until waits for a condition of the page.
func (b *tab) until(condition string) {
	b.t.Helper()
	var ok bool
	b.evaluate(fmt.Sprintf(`new Promise(done => { const end = Date.now() + %d, look = () => (%s) ? done(true) : Date.now() > end ? done(false) : setTimeout(look, 20); look() })`,
		(longest/2).Milliseconds(), condition), &ok)
	if !ok {
		var body string
		b.evaluate("document.body.innerText", &body)
		b.t.Fatalf("never: %s\n%s", condition, body)
	}
}

// open opens an address.
func (b *tab) open(address string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": address}, nil)
	b.until(fmt.Sprintf("location.href === %q && document.readyState === 'complete'", address))
}

// press presses a key.
func (b *tab) press(key string) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key}, nil)
	}
}

// look sets the width of the page, and light or dark mode.
func (b *tab) look(width int, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.until(fmt.Sprintf("innerWidth === %d && matchMedia('(prefers-color-scheme: %s)').matches", width, scheme))
}

// picture saves a screenshot for people to look at.
func (b *tab) picture(name string) {
	b.t.Helper()
	folder := os.Getenv("DASHBOARD_FOLDER")
	if folder == "" {
		return
	}
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	must(b.t, err)
	must(b.t, os.WriteFile(filepath.Join(folder, name+".png"), data, 0o600))
}

// quiet expects that nothing went wrong, and that the page only sent requests to one address.
func (b *tab) quiet(address string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		b.t.Error(p)
	}
	for _, url := range b.asked {
		if !strings.HasPrefix(url, address) && url != "data:," {
			b.t.Errorf("the page asks for %s", url)
		}
	}
}
