package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/freshbind/freshbind/internal/checker"
)

// maxStorms is how many are made at most until they have shown enough together.
const maxStorms = 5

// TestKruiseStorm makes the same storm with OpenKruise Agents: claims are SandboxClaims and
// users of E2B, who may give back what they got. Where nothing is enforced, the same judge
// finds stale binds.
func TestKruiseStorm(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	o := options{seed: 1, claims: testClaims, upstream: kruiseUpstream}
	err := inWorld(t.Context(), o.platform(), t.Output(), func(ctx context.Context, w *world) (bool, error) {
		w.RanOn(t)
		t.Run("enforced", func(t *testing.T) {
			w.proven(ctx, t, o)
		})
		t.Run("not enforced", func(t *testing.T) {
			o.seed, o.claims, o.unguarded = 2, minClaims, true
			r := w.played(ctx, t, o)
			if r.stale == 0 {
				t.Error("nobody got a stale sandbox: the storm shows nothing")
			}
			// The platform itself gives nothing to two.
			if r.duplicate > 0 {
				t.Errorf("somebody got what another one had:\n%s", explain(r.notes))
			}
		})
		return !t.Failed(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// proven makes storms until they have shown enough together, and none of them may have a fault:
// how much a late cache gets wrong depends on how busy the machine is. Their seeds are odd, so
// that other storms can have the even ones.
func (w *world) proven(ctx context.Context, t *testing.T, o options) {
	t.Helper()
	var storms []result
	for range maxStorms {
		r := w.played(ctx, t, o)
		if faults := r.faults(); len(faults) > 0 {
			t.Fatalf("not good:\n%s", explain(faults))
		}
		storms = append(storms, r)
		lacking := unproven(storms...)
		if len(lacking) == 0 {
			return
		}
		t.Logf("after %d storms:\n%s", len(storms), explain(lacking))
		o.seed += 2
	}
	t.Errorf("%d storms show too little", len(storms))
}

// The seed lets two pools of each storm refer to templates, and over seeds that follow each
// other all of them.
func TestPoolsRefer(t *testing.T) {
	var all [pools]int
	for seed := range uint64(pools) {
		refer := 0
		for i := range all {
			if (options{seed: seed}).refers(i) {
				refer++
				all[i]++
			}
		}
		if refer != 2 {
			t.Errorf("with seed %d, %d pools refer to templates, want 2", seed, refer)
		}
	}
	if want := [pools]int{2, 2, 2}; all != want {
		t.Errorf("pools refer to templates in %v of %d storms, want %v", all, pools, want)
	}
}

// played is a storm that could be made.
func (w *world) played(ctx context.Context, t *testing.T, o options) result {
	t.Helper()
	r, err := w.storm(ctx, o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s\n%s", r.line(), r.raids())
	return r
}

// A creation is found again by the version that it made: its name is not in the log.
func TestCreatedSandboxesHaveIDs(t *testing.T) {
	const created = `{"apiVersion":"agents.kruise.io/v1alpha1","kind":"Sandbox","metadata":{"name":"python-x","resourceVersion":"70"}}`
	cases := map[string]struct {
		method, path string
		status       int
		want         bool
	}{
		"a creation":         {http.MethodPost, "/apis/agents.kruise.io/v1alpha1/namespaces/a/sandboxes", http.StatusCreated, true},
		"one that is denied": {http.MethodPost, "/apis/agents.kruise.io/v1alpha1/namespaces/a/sandboxes", http.StatusConflict, false},
		"another kind":       {http.MethodPost, "/apis/agents.kruise.io/v1alpha1/namespaces/a/sandboxclaims", http.StatusCreated, false},
		"an update":          {http.MethodPut, "/apis/agents.kruise.io/v1alpha1/namespaces/a/sandboxes/x", http.StatusCreated, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			known, sent := newIDs(), ""
			server := roundTripper(func(r *http.Request) (*http.Response, error) {
				sent = r.Header.Get(auditIDHeader)
				return &http.Response{StatusCode: tc.status, Body: io.NopCloser(strings.NewReader(created))}, nil
			})
			request, err := http.NewRequestWithContext(t.Context(), tc.method, "https://example.com"+tc.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := known.ofCreated(server).RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			if err != nil || string(body) != created {
				t.Errorf("the answer is %q (%v), want what the server said", body, err)
			}
			if err := response.Body.Close(); err != nil {
				t.Error(err)
			}
			id, ok := known.of("70")
			if ok != tc.want || tc.want && (id == "" || id != sent) {
				t.Errorf("the version is of request %q, known %t, want %q, known %t", id, ok, sent, tc.want)
			}
		})
	}
}

// A cold start counts by its id, whatever else the log has of its namespace.
func TestJudgeColdStartsByTheirIDs(t *testing.T) {
	cold := func(received int) request {
		r := write("create", "sandboxes", "", "e2b", received, received+5)
		r.id, r.judged = "made", true
		return r
	}
	cases := map[string]struct {
		created request
		want    tally
	}{
		"received before the update was answered": {cold(99), tally{raced: 1}},
		"received after the update was answered":  {cold(101), tally{stale: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := evidenceOf(t, tc.created)
			e.ids.note("70", "made")
			e.report.Findings = []checker.Bind{{
				Namespace: testNS, Sandbox: checker.Ref{Name: "python-x", UID: "s9"}, RV: "70", SeenAt: ms(300),
				StaleSince: "50", Findings: []checker.Finding{{Class: checker.Raced, Message: "runs a, in force was b"}},
			}}
			got := e.judge()
			got.notes, got.attacks = nil, nil
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(tally{})); diff != "" {
				t.Errorf("tally (-want,+got):\n%s", diff)
			}
		})
	}
}
