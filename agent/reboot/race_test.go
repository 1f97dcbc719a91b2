//go:build race

package reboot

// stride is which combinations are looked at with the race detector on: every seventh, because the search has one goroutine
// and takes ten times as long. No dimension of it has seven values.
const stride = 7
