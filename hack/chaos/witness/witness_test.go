package witness_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/reboot-operator/reboot-operator/hack/chaos/witness"
)

// A witness that cannot decode an answer must fail, because asking again would loop forever.
func TestRun_FailsIfAnAnswerCannotBeDecoded(t *testing.T) {
	etcd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"result":{"events":[{"kv":{"mod_revision":"many"}}]}}`)
	}))
	t.Cleanup(etcd.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	if err := witness.New(etcd.URL, runtime.NewScheme()).Run(ctx); err == nil || !strings.Contains(err.Error(), "decoding a watch of etcd") {
		t.Errorf("error %v", err)
	}
}
