package testenv_test

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

func TestNotShown_NamesTheTestThatIsSkipped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "not-shown")
	t.Setenv("NOT_SHOWN", path)
	t.Run("skipped", func(t *testing.T) {
		testenv.NotShown(t, "there is no make")
		t.Error("it goes on")
	})
	text, err := os.ReadFile(path)
	if want := t.Name() + "/skipped: there is no make\n"; err != nil || string(text) != want {
		t.Errorf("%v, got %q, want %q", err, text, want)
	}
}

func TestStart(t *testing.T) {
	env := testenv.StartFor(t)
	c, err := client.New(env.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: "empty"}}); err != nil {
		t.Fatalf("the empty policy must be accepted: %v", err)
	}
}
