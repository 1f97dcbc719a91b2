package drain_test

import (
	"io"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/hack/wire"
)

const (
	evicts       = "create pods/eviction"
	listsPods    = "list pods"
	watchesPods  = "watch pods"
	watchBudgets = "watch poddisruptionbudgets"
)

var isEviction = wire.Is(evicts)

// evictions returns the evicted pods in the order of the requests.
func (w *world) evictions() []string {
	all := []string{}
	for _, r := range w.wire.Of(evicts) {
		all = append(all, r.Name)
	}
	return all
}

// endWatch ends a watch as the server does.
func (w *world) endWatch(description string) {
	GinkgoHelper()
	Eventually(w.wire.Drop, soon, polling).WithArguments(wire.Is(description), io.EOF).Should(Equal(1))
}

// expire is a watch that delivers a single ERROR event.
func expire(status metav1.Status) wire.Func {
	return func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		return wire.Answer(r, http.StatusOK, map[string]any{"type": "ERROR", "object": wire.Failure(status)}), nil
	}
}
