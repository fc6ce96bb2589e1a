package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/audit"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// Where nobody said enforce, the same story takes the same course as in a
// namespace that Freshbind knows nothing of, and every bind that it would have
// refused is reported.
func TestAuditChangesNothing(t *testing.T) {
	t.Parallel()
	const rounds, size = 2, 5
	w := ownWorld(t, scenario.WorldOptions{Cluster: controlplane.Options{AuditLog: true}})
	reference, audited := w.exempt(t), w.namespace(t, nil)
	stages := []*stage{reference, audited}

	var p scenario.Pool
	for _, s := range stages {
		p = s.pool(scenario.Pool{Replicas: size, Strategy: scenario.Recreate})
	}
	w.delay(upstream.SandboxTemplates, lag)
	for round := 1; round <= rounds; round++ {
		for _, s := range stages {
			s.full(p, imageOf(round))
			s.image(p, imageOf(round+1))
			s.claim(p, scenario.Names(fmt.Sprintf("c%d-", round), size)...)
		}
	}
	for _, s := range stages {
		s.full(p, imageOf(rounds+1))
	}

	want, _ := reference.judged()
	got, findings := audited.judged()
	if want.Classes[audit.Stale] == 0 {
		t.Fatalf("no stale bind: this test has shown nothing: %s", want)
	}
	if diff := cmp.Diff(course(want), course(got)); diff != "" {
		t.Errorf("audit changed the course of things (-want,+got):\n%s", diff)
	}
	audited.unmarked()
	w.wroteNothing(t)

	var refusable []string
	for _, b := range findings {
		refusable = append(refusable, b.Claim.Name+" -> "+b.Sandbox.Name)
	}
	var reported []string
	for _, d := range audited.decisions(func(d decision) bool { return d.Verdict == "deny" && d.Claim != "" }) {
		reported = append(reported, d.Claim+" -> "+d.Sandbox)
	}
	slices.Sort(refusable)
	slices.Sort(reported)
	if diff := cmp.Diff(refusable, reported); diff != "" {
		t.Errorf("binds that should have been refused, and those that Freshbind says it would have (-want,+got):\n%s", diff)
	}
	counted := w.metric(t, verdicts, `verdict="deny"`, `mode="audit"`, `operation="bind"`) +
		w.metric(t, verdicts, `verdict="deny"`, `mode="audit"`, `operation="coldstart"`)
	if int(counted) != len(refusable) {
		t.Errorf("%g refusals counted, want %d", counted, len(refusable))
	}
	if enforced := w.metric(t, verdicts, `verdict="deny"`, `mode="enforce"`); enforced > 0 {
		t.Errorf("%g writes were refused", enforced)
	}
}

const verdicts = "freshbind_bind_verdicts_total"

func imageOf(round int) string { return fmt.Sprintf("sandbox:v%d", round) }

// course is what has to be the same in both namespaces.
func course(s audit.Summary) audit.Summary {
	return audit.Summary{
		Claims: s.Claims, Ready: s.Ready, Warm: s.Warm, Cold: s.Cold, Classes: s.Classes,
		Births: s.Births, StaleBirths: s.StaleBirths, MemberDeletes: s.MemberDeletes, Hidden: s.Hidden,
	}
}

// exempt creates a namespace that the webhook configurations leave out.
func (w *world) exempt(t *testing.T) *stage {
	t.Helper()
	s := w.enforced(t)
	s.must(w.Guard.Install(t.Context(), s.Name))
	s.eventually("the namespace is left out", func(ctx context.Context) (string, bool) {
		orphan := builders.MakeColdStart(builders.MakeClaim(s.Name, "nobody").Obj(), builders.MakeTemplate(s.Name, "nobody").Obj()).Obj()
		_, err := s.Resource(upstream.Sandboxes).Create(ctx, orphan, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return fmt.Sprint(err), err == nil
	})
	_, err := w.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Patch(t.Context(), s.Name, mergePatch, []byte(`{"metadata":{"labels":{"`+platform.EnforcementKey+`":null}}}`), patchOptions)
	s.must(err)
	return s
}

// unmarked checks that nothing in the namespace carries a key of Freshbind's.
func (s *stage) unmarked() {
	s.t.Helper()
	for _, r := range []schema.GroupVersionResource{
		upstream.Sandboxes.WithVersion(s.Version), upstream.SandboxClaims.WithVersion(s.Version),
		upstream.SandboxWarmPools.WithVersion(s.Version), upstream.SandboxTemplates.WithVersion(s.Version),
		{Version: "v1", Resource: "pods"},
	} {
		list, err := s.w.dynamic.Resource(r).Namespace(s.Name).List(s.t.Context(), metav1.ListOptions{})
		s.must(err)
		for i := range list.Items {
			raw, err := list.Items[i].MarshalJSON()
			s.must(err)
			if strings.Contains(string(raw), "freshbind.dev/") {
				s.t.Errorf("%s %s carries a mark of Freshbind's: %s", r.Resource, list.Items[i].GetName(), raw)
			}
		}
	}
}

// request is a line of the API server's audit log.
type request struct {
	Stage     string `json:"stage"`
	Verb      string `json:"verb"`
	User      struct{ Username string }
	ObjectRef struct{ Resource, Namespace, Name string }
	// Annotations say which webhooks were asked and whether they changed
	// something.
	Annotations map[string]string `json:"annotations"`
}

// wroteNothing checks by the API server's own books that Freshbind wrote
// nothing but history and events, and that its webhooks changed nothing.
func (w *world) wroteNothing(t *testing.T) {
	t.Helper()
	log, err := os.ReadFile(w.Cluster.AuditLogPath())
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for line := range strings.Lines(string(log)) {
		var r request
		if json.Unmarshal([]byte(line), &r) != nil || r.Stage != "ResponseComplete" {
			continue
		}
		for key, value := range r.Annotations {
			if !strings.HasPrefix(key, "mutation.webhook.admission.k8s.io/") {
				continue
			}
			if asked++; strings.Contains(value, `"mutated":true`) {
				t.Errorf("%s %s/%s was changed: %s", r.ObjectRef.Resource, r.ObjectRef.Namespace, r.ObjectRef.Name, value)
			}
		}
		reads := []string{"get", "list", "watch"}
		own := []string{"controllerrevisions", "events"}
		if r.User.Username == fixture.User && !slices.Contains(reads, r.Verb) && !slices.Contains(own, r.ObjectRef.Resource) {
			t.Errorf("Freshbind made a write: %s %s %s/%s", r.Verb, r.ObjectRef.Resource, r.ObjectRef.Namespace, r.ObjectRef.Name)
		}
	}
	if asked == 0 {
		t.Error("the audit log tells of no call to a mutating webhook: this test has shown nothing")
	}
}
