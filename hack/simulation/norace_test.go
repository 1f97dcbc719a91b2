//go:build !race

package simulation

// racing tells that the race detector is on.
const racing = false
