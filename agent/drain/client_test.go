package drain

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestReadList(t *testing.T) {
	pods := func(names ...string) string {
		var items []string
		for _, name := range names {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"containers":[{"name":"c"}]}}`, name))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	cases := map[string]struct {
		json, version string
		names         []string
		err           string
	}{
		"a list": {
			json:    `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":` + pods("a", "b") + `}` + "\n",
			version: "7", names: []string{"a", "b"},
		},
		"metadata at the end":            {json: `{"items":` + pods("a") + `,"metadata":{"resourceVersion":"7"}}`, version: "7", names: []string{"a"}},
		"an empty list":                  {json: `{"metadata":{"resourceVersion":"7"},"items":[]}`, version: "7"},
		"no items":                       {json: `{"metadata":{"resourceVersion":"7"},"items":null}`, version: "7"},
		"an unknown field":               {json: `{"more":{"a":[1]},"items":` + pods("a") + `}`, names: []string{"a"}},
		"the input ends within an item":  {json: `{"items":[{"metadata":{"name":"a"},`, err: "unexpected EOF"},
		"the input ends after an item":   {json: `{"items":` + strings.TrimSuffix(pods("a"), "]"), names: []string{"a"}, err: "EOF"},
		"the input ends after the items": {json: `{"items":` + pods("a"), names: []string{"a"}, err: "EOF"},
		"nothing":                        {err: "EOF"},
		"no list":                        {json: `"x"`, err: "x instead of an object or an array"},
		"items that are not a list":      {json: `{"items":"x"}`, err: "x instead of an object or an array"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var names []string
			version, err := readList(strings.NewReader(tc.json), func(pod *corev1.Pod) error {
				names = append(names, pod.Name)
				return nil
			})
			if diff := cmp.Diff(tc.names, names); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if tc.err == "" && (err != nil || version != tc.version) || tc.err != "" && (err == nil || !strings.HasSuffix(err.Error(), tc.err)) {
				t.Errorf("version %q, error %v, want %q, %q", version, err, tc.version, tc.err)
			}
		})
	}
}

func TestReadList_EndsWithTheErrorOfWhoTakesAnItem(t *testing.T) {
	want := errors.New("no")
	if _, err := readList(strings.NewReader(`{"items":[{},{}]}`), func(*corev1.Pod) error { return want }); !errors.Is(err, want) {
		t.Errorf("error %v", err)
	}
}

// A list of a tenant's pods may be larger than the agent's memory.
func TestReadList_PassesAnItemOnBeforeTheNextIsRead(t *testing.T) {
	from, to := io.Pipe()
	taken := make(chan string)
	done := make(chan error, 1)
	go func() {
		_, err := readList(from, func(pod *corev1.Pod) error {
			taken <- pod.Name
			return nil
		})
		done <- err
	}()
	for _, part := range []string{`{"items":[{"metadata":{"name":"a"}},`, `{"metadata":{"name":"b"}}]`} {
		if _, err := io.WriteString(to, part); err != nil {
			t.Fatal(err)
		}
		t.Log("took", <-taken)
	}
	if _, err := io.WriteString(to, "}"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
