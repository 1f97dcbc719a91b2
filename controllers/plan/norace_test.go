//go:build !race

package plan_test

// racing tells that the race detector is on.
const racing = false
