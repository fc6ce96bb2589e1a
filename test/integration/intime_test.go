package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/exposition"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/webhooks"
)

// stampHooks stamp and repair what is created.
var stampHooks = []string{webhooks.StampHook.Name, webhooks.StampBirthHook.Name, webhooks.StampPodHook.Name}

// inTime does something until none of these hooks, which fail open, was too late for it:
// what they let pass unjudged shows nothing.
func (w *world) inTime(t *testing.T, do func(), hooks ...string) {
	t.Helper()
	inTime(t, w.Cluster, w.Guard, do, hooks...)
}

func (e *empty) inTime(do func(), hooks ...string) {
	e.t.Helper()
	inTime(e.t, e.cluster, e.guard, do, hooks...)
}

func inTime(t *testing.T, cluster *controlplane.Cluster, guard *fixture.Freshbind, do func(), hooks ...string) {
	t.Helper()
	tries := 0
	err := scenario.Poll(t.Context(), within, func(context.Context) (bool, error) {
		tries++
		before, err := passed(t.Context(), cluster, guard, hooks...)
		if err != nil {
			return false, err
		}
		do()
		after, err := passed(t.Context(), cluster, guard, hooks...)
		return after == before, err
	})
	if err != nil {
		t.Fatalf("%q were too late %d times: %v", hooks, tries, err)
	}
}

// passed counts what these hooks, which fail open, let pass: the API server had no answer in
// time, or Freshbind itself, as its log says, had none before its own deadline.
func passed(ctx context.Context, cluster *controlplane.Cluster, guard *fixture.Freshbind, hooks ...string) (writes int, err error) {
	return letPass(ctx, cluster, guard, "context deadline", hooks...)
}

// letPass counts what the API server let pass without an answer of these hooks, and what
// Freshbind did, which says so in its log.
func letPass(ctx context.Context, cluster *controlplane.Cluster, guard *fixture.Freshbind, says string, hooks ...string) (writes int, err error) {
	metrics, err := exposition.OfAPIServer(ctx, cluster.Config())
	if err != nil {
		return 0, err
	}
	for _, hook := range hooks {
		writes += int(unanswered(metrics, hook))
	}
	log, err := os.ReadFile(guard.LogPath())
	return writes + bytes.Count(log, []byte(says)), err
}

// unstamped is how many writes have passed the hooks that stamp and repair without an answer
// in time.
func (w *world) unstamped(t *testing.T) int {
	t.Helper()
	n, err := passed(t.Context(), w.Cluster, w.Guard, stampHooks...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// unprotected is how many deletes have passed because the API server had no answer in time,
// or Freshbind could not read in time what it depends on, as its log says.
func (w *world) unprotected(t *testing.T) int {
	t.Helper()
	n, err := letPass(t.Context(), w.Cluster, w.Guard, "Let a delete pass unjudged", webhooks.ProtectHook.Name, webhooks.ProtectPodHook.Name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func unanswered(metrics exposition.Metrics, hook string) float64 {
	return metrics.Sum("apiserver_admission_webhook_fail_open_count", fmt.Sprintf("name=%q", hook))
}
