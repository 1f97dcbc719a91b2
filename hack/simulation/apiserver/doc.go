// Package apiserver is as much of an API server as the operator needs, in memory: Nodes and RebootPolicies with resource
// versions, optimistic concurrency, strategic merge patches, the status subresource, who set a cordon, the rules of the
// CustomResourceDefinition about the ledger, and watches whose history is compacted. It has no delays and makes no
// mistakes: package process adds both.
package apiserver
