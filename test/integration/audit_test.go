package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// In mode audit the same scenario goes as it goes without Freshbind, and every
// bind that would have been refused is named.
func TestAuditChangesNothing(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, scenario.WorldOptions{Cluster: controlplane.Options{AuditLog: true}})
	audited, exempt := w.namespace(t, nil), w.namespace(t, nil)
	guard := w.enforced(t)
	// One namespace is left out altogether: how things go without Freshbind.
	if err := w.Guard.Install(t.Context(), exempt.Name); err != nil {
		t.Fatal(err)
	}
	guard.must(guard.WaitGuarded(t.Context(), within))

	names := scenario.Names("c", 5)
	for _, s := range []*stage{audited, exempt} {
		p := s.pool(scenario.Pool{Replicas: 5, Strategy: scenario.Recreate})
		s.atRest(p)
		see := s.hold(upstream.SandboxTemplates)
		s.image(p, "sandbox:v2")
		s.claim(p, names...)
		see()
		s.full(p, "sandbox:v2")
	}

	got, findings := audited.judged()
	want, _ := exempt.judged()
	type outcome struct{ Stale, Ready, Warm, Hidden int }
	of := func(s checker.Summary) outcome {
		return outcome{s.Classes[checker.Stale], s.Ready, s.Warm, s.Hidden}
	}
	if diff := cmp.Diff(of(want), of(got)); diff != "" {
		t.Errorf("audited differs from exempt (-exempt,+audited):\n%s", diff)
	}
	if got.Classes[checker.Stale] != 5 {
		t.Errorf("%d stale binds, want all 5: this test has shown nothing", got.Classes[checker.Stale])
	}
	for _, write := range w.writes(t, 0, audited.Name, time.Time{}) {
		t.Errorf("Freshbind wrote: %s", write)
	}
	for _, s := range audited.list(upstream.Sandboxes) {
		if s.GetLabels()[stampKey] != "" || s.GetAnnotations()["freshbind.dev/bound-to"] != "" {
			t.Errorf("sandbox %s carries our marks", s.GetName())
		}
	}

	named := map[string]bool{}
	for _, b := range findings {
		named[b.Claim.Name+" "+b.Sandbox.Name] = true
	}
	audited.eventually("an event for each bind that would have been refused", func(ctx context.Context) (string, bool) {
		reported := map[string]bool{}
		events, err := audited.kube().EventsV1().Events(audited.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error(), false
		}
		for _, e := range events.Items {
			if e.Regarding.Kind == "SandboxClaim" && e.Related != nil && strings.HasPrefix(e.Note, "would be refused") {
				reported[e.Regarding.Name+" "+e.Related.Name] = true
			}
		}
		diff := cmp.Diff(named, reported)
		return diff, diff == ""
	})
	if denied := w.metric(t, "freshbind_bind_verdicts_total", `operation="bind"`, `verdict="deny"`, `mode="audit"`); denied < 5 {
		t.Errorf("%v denials counted in mode audit, want at least 5", denied)
	}
}

// writes returns what Freshbind wrote in a namespace, by an API server's own audit
// log, besides what it keeps for itself: revisions and events.
// since is when they were asked for at the earliest: a log is written after the answer.
func (w *world) writes(t *testing.T, server int, namespace string, since time.Time) []string {
	t.Helper()
	var out []string
	seen := 0
	for _, e := range w.requests(t, server) {
		seen++
		switch {
		case e.RequestReceivedTimestamp.Before(since),
			e.ObjectRef.Namespace != namespace, e.Verb == "get", e.Verb == "list", e.Verb == "watch",
			e.ObjectRef.Resource == "controllerrevisions", e.ObjectRef.Resource == "events":
		default:
			out = append(out, fmt.Sprintf("%s %s %s", e.Verb, e.ObjectRef.Resource, e.ObjectRef.Name))
		}
	}
	if seen == 0 {
		t.Fatal("the audit log has no request of Freshbind: this test has shown nothing")
	}
	return out
}

// request is one of Freshbind's, as the API server's audit log has it.
type request struct {
	Stage, Verb, RequestURI string
	User                    struct{ Username string }
	ObjectRef               struct{ Resource, Namespace, Name, Subresource string }
	ResponseStatus          struct{ Code int }

	RequestReceivedTimestamp time.Time
}

// requestLog reads an audit log as it grows.
type requestLog struct {
	mu   sync.Mutex
	read int64
	seen []request
}

// requests are those of Freshbind that an API server has answered so far, and
// the watches that it was asked for.
func (w *world) requests(t *testing.T, server int) []request {
	t.Helper()
	seen, err := w.audited[server].update(w.Cluster.AuditLogPath(server))
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func (l *requestLog) update(path string) ([]request, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	grown, err := wholeLines(path, l.read)
	if err != nil {
		return nil, err
	}
	l.read += int64(len(grown))
	for line := range bytes.Lines(grown) {
		if !bytes.Contains(line, []byte(fixture.User)) {
			continue
		}
		var e request
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		done := "ResponseComplete"
		if e.Verb == "watch" {
			done = "RequestReceived"
		}
		if e.User.Username == fixture.User && e.Stage == done {
			l.seen = append(l.seen, e)
		}
	}
	return slices.Clip(l.seen), nil
}
