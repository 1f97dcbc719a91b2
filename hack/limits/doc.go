// Package limits is tests of what the operator's two programs take, and how soon they let go: real processes, asked to end in
// every phase of their work, against a real API server that stops answering in the middle of it. What is flat over thousands of
// cycles and under floods is shown beside what could grow, in controllers and agent; `make limits` runs all of them.
package limits
