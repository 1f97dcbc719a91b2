package promserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Sample is one series of an instant query's answer.
type Sample struct {
	Metric map[string]string `json:"metric"`
	// Value is the instant, in seconds, and the value as text.
	Value [2]any `json:"value"`
}

// Query evaluates an expression that yields an instant vector, now.
func (s *Server) Query(ctx context.Context, expression string) ([]Sample, error) {
	var data struct{ Result []Sample }
	err := s.API(ctx, "query", url.Values{"query": {expression}}, &data)
	return data.Result, err
}

// get returns the status and the body of an answer.
func (s *Server) get(ctx context.Context, path string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("making a request: %w", err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("asking Prometheus: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, fmt.Errorf("reading Prometheus' answer: %w", err)
	}
	return response.StatusCode, body, nil
}
