// Package simulation lets the operator live through weeks in which everything goes wrong, in virtual time: two managers and
// an agent for each node, the code that ships, in a bubble of testing/synctest, over an API server in memory. What happens
// to them is drawn from a seed; what they do about it is judged by a package that shares no decision with them.
package simulation
