package webhooks

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// storedSandboxes are what an API server has; err is its answer.
type storedSandboxes struct {
	names []string
	err   error
	reads []string
}

func (s *storedSandboxes) get(_ context.Context, gr schema.GroupResource, namespace, name string) (*unstructured.Unstructured, error) {
	s.reads = append(s.reads, gr.String()+" "+namespace+"/"+name)
	if s.err != nil {
		return nil, s.err
	}
	for _, n := range s.names {
		if n == namespace+"/"+name {
			return &unstructured.Unstructured{Object: map[string]any{}}, nil
		}
	}
	return nil, nil
}

func sandboxRequest(t *testing.T, obj *unstructured.Unstructured) admission.Request {
	t.Helper()
	req := request(t, admissionv1.Create, nil, obj)
	req.Resource = metav1.GroupVersionResource{Group: "agents.x-k8s.io", Version: "v1beta1", Resource: "sandboxes"}
	return req
}

// What was let be created, and is there, is said to be there from one read.
func TestStampAnswersThatASandboxExists(t *testing.T) {
	cold := builders.MakeColdStart(claim, template).Obj()
	key, read := "ns/"+cold.GetName(), "sandboxes.agents.x-k8s.io ns/"+cold.GetName()
	type want struct {
		Exists bool
		Reads  []string
	}
	cases := map[string]struct {
		noted  bool
		stored storedSandboxes
		obj    *unstructured.Unstructured
		mode   settings.Mode
		birth  bool
		want   want
	}{
		"there":          {noted: true, stored: storedSandboxes{names: []string{key}}, obj: cold, mode: settings.Enforce, want: want{true, []string{read, read}}},
		"not remembered": {stored: storedSandboxes{names: []string{key}}, obj: cold, mode: settings.Enforce},
		"gone":           {noted: true, obj: cold, mode: settings.Enforce, want: want{false, []string{read}}},
		"unreadable":     {noted: true, stored: storedSandboxes{err: errors.New("etcd is away")}, obj: cold, mode: settings.Enforce, want: want{false, []string{read, read}}},
		"audit":          {noted: true, stored: storedSandboxes{names: []string{key}}, obj: cold, mode: settings.Audit},
		"a birth":        {noted: true, stored: storedSandboxes{names: []string{key}}, obj: cold, mode: settings.Enforce, birth: true},
		"its pod": {
			noted: true, stored: storedSandboxes{names: []string{key}}, mode: settings.Enforce,
			obj: builders.PodFrom(builders.MakePod(cold).Obj()).Name(cold.GetName()).Obj(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			existing := NewExistingNames(tc.stored.get)
			if tc.noted {
				existing.note(platform.Write{Operation: freshness.ColdStart, New: cold})
			}
			s := &Stamp{Revisions: fakeRevisions{}, Modes: modes(t, tc.mode, nil), Timeout: time.Minute, Existing: existing, Birth: tc.birth}
			resp := s.Handle(t.Context(), sandboxRequest(t, tc.obj))
			got := want{Exists: !resp.Allowed}
			// Once more: what is gone is forgotten, what could not be read is not.
			s.Handle(t.Context(), sandboxRequest(t, tc.obj))
			got.Reads = tc.stored.reads
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Handle() (-want,+got):\n%s", diff)
			}
			if resp.Allowed {
				return
			}
			answer := []any{resp.Result.Code, resp.Result.Reason, resp.Result.Message}
			if diff := cmp.Diff([]any{int32(http.StatusConflict), metav1.StatusReasonAlreadyExists, `sandboxes.agents.x-k8s.io "` + cold.GetName() + `" already exists`}, answer); diff != "" {
				t.Errorf("answer (-want,+got):\n%s", diff)
			}
		})
	}
}

// Only what is let through for good, and under a name that comes again, is remembered.
func TestGuardRemembersWhatMayExist(t *testing.T) {
	cold := builders.MakeColdStart(claim, template).Obj()
	bind := facts(func(*platform.Facts) {})
	bound := builders.SandboxFrom(builders.Bound(member, claim, template).Obj()).Unset("metadata", "generateName").Obj()
	fresh := facts(func(f *platform.Facts) {
		f.Member.Controller = freshness.Owner{Kind: freshness.OwnedByClaim, Name: claim.GetName(), UID: string(claim.GetUID())}
	})
	cases := map[string]struct {
		req     admission.Request
		of      *platform.Facts
		refused bool
		err     error
		mode    settings.Mode
		dryRun  bool
		want    bool
	}{
		"a cold start":     {req: sandboxRequest(t, cold), mode: settings.Enforce, want: true},
		"audited":          {req: sandboxRequest(t, cold), mode: settings.Audit},
		"a dry run":        {req: sandboxRequest(t, cold), mode: settings.Enforce, dryRun: true},
		"refused":          {req: sandboxRequest(t, cold), refused: true, mode: settings.Enforce},
		"undecided":        {req: sandboxRequest(t, cold), err: errors.New("etcd is away"), mode: settings.Enforce},
		"a generated name": {req: sandboxRequest(t, builders.SandboxFrom(cold).Set("c1-", "metadata", "generateName").Obj()), mode: settings.Enforce},
		"a bind":           {req: request(t, admissionv1.Update, member, bound), of: &bind, mode: settings.Enforce},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fakePlatform{facts: fresh, err: tc.err}
			if tc.of != nil {
				f.facts = *tc.of
			}
			if tc.refused {
				f.facts.Claim = &freshness.Claim{UID: "another"}
			}
			g := guardOn(t, f, tc.mode, &hints{})
			g.Existing = NewExistingNames((&storedSandboxes{}).get)
			tc.req.DryRun = &tc.dryRun
			g.Handle(t.Context(), tc.req)
			if got := g.Existing.names.Bytes() > 0; got != tc.want {
				t.Errorf("remembered: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestExistingNamesAreBoundedInBytes(t *testing.T) {
	e, cold := NewExistingNames((&storedSandboxes{}).get), builders.MakeColdStart(claim, template)
	for i := range 10_000 {
		e.note(platform.Write{Operation: freshness.ColdStart, New: cold.Name(strings.Repeat("x", 200) + strconv.Itoa(i)).Obj()})
	}
	if n := e.names.Bytes(); n > existingBytes || n < existingBytes/2 {
		t.Errorf("%d bytes are remembered, want up to %d", n, existingBytes)
	}
}
