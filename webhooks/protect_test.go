package webhooks

import (
	"context"
	"errors"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

type deletions struct {
	d    freshness.Deletion
	err  error
	code int32
}

func (f deletions) Deletion(context.Context, *unstructured.Unstructured, time.Time) (freshness.Deletion, error) {
	return f.d, f.err
}

func (f deletions) AnswerDelete() (int32, metav1.StatusReason) {
	return f.code, metav1.StatusReasonConflict
}

func TestProtect(t *testing.T) {
	inUse := freshness.Deletion{
		Sandbox: "m", Owner: freshness.Owner{Kind: freshness.OwnedByClaim, Name: "c", UID: "u"}, Claim: &freshness.Claim{UID: "u"},
	}
	idle := freshness.Deletion{Sandbox: "m", Owner: freshness.Owner{Kind: freshness.OwnedByPool, Name: "p", UID: "u"}}
	away := errors.New("etcd is away")
	cases := map[string]struct {
		deletions deletions
		mode      settings.Mode
		modeErr   error
		// pool is what the pool said of its own enforcement.
		pool    string
		allowed bool
		verdict string
	}{
		"in use":                    {deletions{d: inUse, code: 409}, settings.Enforce, nil, "", false, "deny"},
		"in use, audited":           {deletions{d: inUse}, settings.Audit, nil, "", true, "deny"},
		"in use, the pool enforces": {deletions{d: inUse, code: 409}, settings.Audit, nil, "enforce", false, "deny"},
		"the pool loosens nothing":  {deletions{d: inUse, code: 409}, settings.Enforce, nil, "audit", false, "deny"},
		"idle":                      {deletions{d: idle}, settings.Enforce, nil, "enforce", true, "allow"},
		"undecided never waits":     {deletions{err: away}, settings.Enforce, nil, "enforce", true, ""},
		"mode unreadable, enforced": {deletions{d: inUse, code: 409}, settings.Enforce, away, "", false, "deny"},
		"mode unreadable, audited":  {deletions{d: inUse}, settings.Audit, away, "", true, "deny"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Protect{
				Deletions: tc.deletions, Modes: modes(t, tc.mode, tc.modeErr), Timeout: time.Minute,
				Clock: testingclock.NewFakePassiveClock(time.Unix(0, 0)),
			}
			bound := builders.Bound(member, claim, template)
			if tc.pool != "" {
				bound.Label(settings.EnforcementKey, tc.pool)
			}
			resp := p.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Delete, Namespace: "ns", OldObject: raw(t, bound.Obj()),
			}})
			if resp.Allowed != tc.allowed || resp.AuditAnnotations["verdict"] != tc.verdict {
				t.Errorf("Handle() = allowed %t, verdict %q, want %t, %q", resp.Allowed, resp.AuditAnnotations["verdict"], tc.allowed, tc.verdict)
			}
			if !resp.Allowed && (resp.Result.Code != 409 || resp.Result.Reason != metav1.StatusReasonConflict) {
				t.Errorf("Handle() = %d %s, want what the platform says, 409 Conflict", resp.Result.Code, resp.Result.Reason)
			}
		})
	}
}
