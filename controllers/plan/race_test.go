//go:build race

package plan_test

// racing tells that the race detector is on: then the search, which has one goroutine, takes ten times as long.
const racing = true
