// Package process is what a program of the operator runs in during a simulation: a life that can end or be stopped between
// any two requests, a client whose requests take time and go wrong, a cache that lags behind, and as much of a
// controller-runtime manager as the controllers need. Everything that happens by chance comes from random sources with a seed, each
// thrown by one party alone, so that a seed replays the same story again.
package process
