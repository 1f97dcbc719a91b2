package controllers

import "testing"

// However often a pass has failed, the next one comes soon: rights that were missing are there by then, and windows have opened.
func TestOneWorker_ComesAgainSoonAfterErrors(t *testing.T) {
	limiter := oneWorker().RateLimiter
	for range 100 {
		if wait := limiter.When(request(workers)); wait > errorPauseMax {
			t.Fatalf("the next pass comes after %s", wait)
		}
	}
}
