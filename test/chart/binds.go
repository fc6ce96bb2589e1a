package chart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	// bindRate is how many binds a second are tried.
	bindRate = 25
	// bindsAtOnce bounds those that wait for an answer. Without it a machine that is
	// too slow for a moment gets ever more of them, and never recovers.
	bindsAtOnce = 16
	// within bounds every wait; nothing here should come near it.
	within = 10 * time.Minute
	// retryPause is how soon a writer tries again.
	retryPause = 200 * time.Millisecond
)

// binds tries to give a member to claims that do not exist, again and again: a
// bind that is judged to the end, with live reads, and always denied in the same
// words. Every other answer is a call that did not get through. Nothing is
// stored.
type binds struct {
	ns *scenario.Namespace
	// member is an idle member of a pool.
	member string
	// without reports whether a replica that had lost its lease served nothing at a time; nil for never.
	without func(at time.Time) bool

	mu      sync.Mutex
	tried   int
	failed  []failure
	longest time.Duration
}

// failure is a call that was not completed.
type failure struct {
	at   time.Time
	text string
}

// slow: there was not time enough, for the call or for what it reads. That is
// the machine's doing, which other tests share, and not that of what is tested.
func (f failure) slow() bool {
	return slices.ContainsFunc([]string{
		"deadline exceeded", "could not decide", "Client.Timeout", "timed out", "i/o timeout", "handshake timeout", "in the time allotted",
		// Nobody answered the ping of an HTTP/2 connection.
		"http2: client connection lost",
	}, func(message string) bool { return strings.Contains(f.text, message) })
}

// during tries bindRate binds a second while f runs, fewer when too many wait.
func (b *binds) during(ctx context.Context, f func()) {
	ctx, stop := context.WithCancel(ctx)
	var tried errgroup.Group
	tried.SetLimit(bindsAtOnce)
	var running sync.WaitGroup
	running.Go(func() {
		defer func() { _ = tried.Wait() }()
		tick := time.NewTicker(time.Second / bindRate)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				tried.TryGo(func() error {
					b.bind(context.WithoutCancel(ctx))
					return nil
				})
			}
		}
	})
	defer running.Wait()
	defer stop()
	f()
}

// bind tries one bind until it is judged.
func (b *binds) bind(ctx context.Context) {
	start := time.Now()
	uid := string(uuid.NewUUID())
	b.mu.Lock()
	b.tried++
	b.mu.Unlock()
	for time.Since(start) < within {
		err := b.try(ctx, uid)
		if err == nil {
			break
		}
		b.mu.Lock()
		b.failed = append(b.failed, failure{time.Now(), err.Error()})
		b.mu.Unlock()
		<-time.After(retryPause)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.longest = max(b.longest, time.Since(start))
}

var errAllowed = errors.New("a bind for a claim that does not exist was allowed")

// try returns nil when the bind was judged.
func (b *binds) try(ctx context.Context, uid string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": []any{map[string]any{
		"apiVersion": "extensions.agents.x-k8s.io/" + b.ns.Version, "kind": "SandboxClaim", "name": "nobody", "uid": uid, "controller": true,
	}}}})
	if err != nil {
		return fmt.Errorf("encode bind: %w", err)
	}
	_, err = b.ns.Resource(upstream.Sandboxes).Patch(ctx, b.member, types.MergePatchType, patch,
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil && strings.Contains(err.Error(), string(freshness.ClaimGone)) {
		return nil
	}
	if err == nil {
		return errAllowed
	}
	return err
}

// result is what came of all of it.
func (b *binds) result() string {
	lost := b.lost()
	b.mu.Lock()
	defer b.mu.Unlock()
	text := fmt.Sprintf("%d binds, %d calls lost, %d out of time, longest until judged %s",
		b.tried, len(lost), len(b.failed)-len(lost), b.longest.Round(time.Millisecond))
	if len(lost) > 0 {
		text += ", the first lost: " + lost[0].text
	}
	return text
}

// lost are the calls that failed for another reason than too little time: for themselves, or for a leader to renew its
// lease, without which it ends.
func (b *binds) lost() []failure {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.failed), func(f failure) bool { return f.slow() || b.without != nil && b.without(f.at) })
}
