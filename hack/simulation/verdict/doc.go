// Package verdict judges a history: what every revision of Nodes and policies said, and what the hosts really did. It is
// pure, and it shares no decision with the operator: it counts nodes, limits and windows by itself.
package verdict
