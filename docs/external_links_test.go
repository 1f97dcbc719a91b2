package docs_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// externalLinks is the variable that `make links` sets to check links on the internet.
const externalLinks = "EXTERNAL_LINKS"

// TestExternalLinks checks that every link to another site works.
func TestExternalLinks(t *testing.T) {
	t.Parallel()
	if os.Getenv(externalLinks) == "" {
		t.Skip("`make links` runs this")
	}
	from := map[string]string{}
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			if target := m[1]; strings.HasPrefix(target, "https://") {
				from[target] = page
			}
		}
	}
	if len(from) == 0 {
		t.Fatal("no links found")
	}
	for target, page := range from {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			if err := leadsSomewhere(t.Context(), target); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		})
	}
}

// leadsSomewhere requests a page up to three times. A site that refuses programs does not count as a
// broken link.
func leadsSomewhere(ctx context.Context, target string) error {
	var err error
	for range 3 {
		if err = ask(ctx, target); err == nil {
			return nil
		}
	}
	return err
}

func ask(ctx context.Context, target string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return nil
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s: %s", target, response.Status)
	}
	return nil
}

func TestLeadsSomewhere(t *testing.T) {
	for status, leads := range map[int]bool{200: true, 403: true, 429: true, 404: false, 410: false, 503: false} {
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		if err := leadsSomewhere(t.Context(), site.URL); (err == nil) != leads {
			t.Errorf("%d: %v", status, err)
		}
		site.Close()
		if err := leadsSomewhere(t.Context(), site.URL); err == nil {
			t.Error("a site that is not there leads somewhere")
		}
	}
	failures := 2
	moody := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if failures--; failures >= 0 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer moody.Close()
	if err := leadsSomewhere(t.Context(), moody.URL); err != nil {
		t.Errorf("at the third time: %v", err)
	}
}
