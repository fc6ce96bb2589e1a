package fakekruise

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// Tries is how often the server tries to have a member for a user.
const Tries = 5

// pauses are how long the server waits after each try that failed. Its back-off doubles
// until that would be more than 16 seconds, and ends there: after the fifth try it waits
// for nothing.
var pauses = [Tries]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}

// jitter is by how much a pause can be longer.
const jitter = 0.3

// patience is how long the user of a created Sandbox waits for it, and how long a SandboxClaim
// is tried that says nothing else. Upstream's is a minute, in which a machine that has more to
// do may not get that far.
const patience = 10 * time.Minute

// Server is the E2B server.
type Server struct {
	taker taker
}

// Result is what a user of E2B got.
type Result struct {
	Sandbox *unstructured.Unstructured
	// Created: the pool had nothing for them.
	Created bool
	// Tries is how many there were.
	Tries int
	// Took is how long they waited, at the server's pace.
	Took time.Duration
}

// StartServer starts a server with caches of its own, until ctx ends.
func StartServer(ctx context.Context, cfg *rest.Config, options Options) (*Server, error) {
	v, err := newView(cfg, options, Sets, Sandboxes, Templates)
	if err != nil {
		return nil, fmt.Errorf("start E2B server: %w", err)
	}
	return v.server(ctx)
}

func (v *view) server(ctx context.Context) (*Server, error) {
	if err := v.start(ctx); err != nil {
		return nil, fmt.Errorf("start E2B server: %w", err)
	}
	return &Server{taker{view: v, seen: newSeen()}}, nil
}

// Create is one request of a user.
func (s *Server) Create(ctx context.Context, r Request) (Result, error) {
	out, started := Result{}, time.Now()
	for {
		out.Tries++
		box, created, err := s.taker.take(ctx, r)
		if err == nil {
			out.Sandbox, out.Created = box, created
			err = s.ready(ctx, &out, r)
			out.Took = time.Since(started)
			return out, err
		}
		last := !again(err) || out.Tries >= Tries
		if again(err) {
			pause := pauses[out.Tries-1]
			err = errors.Join(err, sleep(ctx, s.taker.options.wait(pause+time.Duration(rand.Float64()*jitter*float64(pause)))))
		}
		if last || ctx.Err() != nil {
			out.Took = time.Since(started)
			return out, fmt.Errorf("after %d tries: %w", out.Tries, err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// ready waits for what was created, or is to run another image. Whatever never comes to
// run is deleted, by its name alone.
func (s *Server) ready(ctx context.Context, out *Result, r Request) error {
	if !out.Created && r.Image == "" {
		return nil
	}
	key := keyOf(out.Sandbox)
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		now := s.taker.get(Sandboxes, key)
		if now == nil || !isReady(now) {
			return false, nil
		}
		out.Sandbox = now
		return true, nil
	})
	if err != nil {
		gone := s.taker.in(Sandboxes, r.Namespace).Delete(ctx, out.Sandbox.GetName(), metav1.DeleteOptions{})
		return errors.Join(fmt.Errorf("sandbox %s is not ready: %w", key, err), ignoreNotFound(gone))
	}
	return nil
}

// Delete is the end of a sandbox: it goes back to its pool where it says so, in a request
// that names no version.
func (s *Server) Delete(ctx context.Context, box *unstructured.Unstructured) error {
	in := s.taker.in(Sandboxes, box.GetNamespace())
	if box.GetAnnotations()[keyCleanupEnabled] != yes {
		return ignoreNotFound(in.Delete(ctx, box.GetName(), metav1.DeleteOptions{}))
	}
	_, err := in.Patch(ctx, box.GetName(), types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+keyCleanup+`":"`+yes+`"}}}`), metav1.PatchOptions{})
	return err
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
