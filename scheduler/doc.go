// Package scheduler is a scheduler extender: it keeps members that are about to
// be deleted off the nodes, has them evict nobody, and spreads the others.
//
// It answers from caches. In doubt a pod passes: admission still guards the bind.
package scheduler
