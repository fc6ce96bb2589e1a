// Package cli judges what a cluster holds for people at a terminal: it reads,
// compares by content with the very code that admission uses, and says it in
// words. It needs nothing of Freshbind's in the cluster.
package cli
