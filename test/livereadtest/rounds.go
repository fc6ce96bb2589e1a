// Package livereadtest has doubles for tests of what reads through liveread, and shows
// which reads are made one after the other.
package livereadtest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/liveread"
)

// Rounds answers no read before everybody waits for one. It works in a bubble of
// testing/synctest.
type Rounds struct {
	mu      sync.Mutex
	pending []string
	answer  chan struct{}
}

// NewRounds holds no read yet.
func NewRounds() *Rounds { return &Rounds{answer: make(chan struct{})} }

// GetterFunc is a function that reads.
type GetterFunc func(context.Context, liveread.Ref) (*unstructured.Unstructured, error)

// Get calls it.
func (g GetterFunc) Get(ctx context.Context, ref liveread.Ref) (*unstructured.Unstructured, error) {
	return g(ctx, ref)
}

// Reader holds the reads from g. A name says what a read is of.
func (r *Rounds) Reader(g liveread.Getter, name func(liveread.Ref) string) *liveread.Reader {
	return liveread.NewReader(GetterFunc(func(ctx context.Context, ref liveread.Ref) (*unstructured.Unstructured, error) {
		r.mu.Lock()
		r.pending = append(r.pending, name(ref))
		answer := r.answer
		r.mu.Unlock()
		<-answer
		return g.Get(ctx, ref)
	}), nil)
}

// Of returns the rounds of reads that a question takes, each as sorted names, and the
// error that it ends with.
func (r *Rounds) Of(ask func() error) (rounds []string, err error) {
	done := make(chan error, 1)
	go func() { done <- ask() }()
	for of := r.round(); of != ""; of = r.round() {
		rounds = append(rounds, of)
	}
	return rounds, <-done
}

// round answers the reads that everybody waits for, and returns what they were of.
func (r *Rounds) round() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.answer)
	of := r.pending
	r.pending, r.answer = nil, make(chan struct{})
	slices.Sort(of)
	return strings.Join(of, " ")
}
