//go:build !race

package reboot

// stride is which combinations are looked at: all.
const stride = 1
