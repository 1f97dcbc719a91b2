package testenv

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Probe returns the result of a kubelet's probe: the status and the text of the answer, or the
// error.
func Probe(ctx context.Context, address, path string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", response.StatusCode, text)
}
