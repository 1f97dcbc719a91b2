//go:build race

package plan_test

// racing tells that the race detector is on. What is tested here has one goroutine, and takes ten times as long then: a part
// of it is enough.
const racing = true
