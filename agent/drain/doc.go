// Package drain empties a node before it reboots.
//
// One Drain call costs 2 + E requests: one LIST of the node's pods, one WATCH from there, and one request for each of the
// E pods that must go. It never polls, never looks a pod up by name, and never asks for a pod's owner. Where a selector asks for
// the labels of namespaces, each of these is one GET more, and so are they with one LIST after each five minutes.
//
//	      LIST, WATCH ──► filter.decide ──► progress ◄── answers of the API server
//	spec.nodeName=node     (pure)            (pure)  ◄── WATCH of PodDisruptionBudgets, where one refused
//	                                            │
//	                                       next(now): which requests now, when to look again
//	                                            │
//	                                       at most 10 requests at a time
//
// Everything that is known about the drain is in one progress value, touched by one goroutine only: the one that called
// Drain. The others (the watches and the requests) send it changes. Nothing is stored anywhere else, so a Drain that died
// half-way is continued by calling Drain again.
//
// A pod is a UID, not a name: requests carry the UID as a precondition, and only UIDs that the watch still shows are asked
// for again. A StatefulSet's pod that has come back under its old name, here or elsewhere, is another pod. What is remembered
// of controllers, by their UIDs too, is for one Drain call: which pods come back to the node, and stay.
package drain
