package agentsandbox

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/test/builders"
)

func TestDeletion(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	claim := func() *builders.Claim { return builders.MakeClaim("ns", "c1") }
	finished := func(c *builders.Claim, ago time.Duration) *builders.Claim {
		return c.Set([]any{map[string]any{"type": "Finished", "status": "True", "lastTransitionTime": at(-ago)}}, "status", "conditions")
	}
	bound := builders.Bound(testMember, claim().Obj(), testTemplate)
	cases := map[string]struct {
		sandbox *unstructured.Unstructured
		claim   *unstructured.Unstructured
		allowed bool
	}{
		"claim alive":          {bound.Obj(), claim().Obj(), false},
		"idle member":          {testMember, claim().Obj(), true},
		"claim gone":           {bound.Obj(), nil, true},
		"claim replaced":       {bound.Obj(), claim().UID("new").Obj(), true},
		"claim being deleted":  {bound.Obj(), claim().Deleting(now).Obj(), true},
		"claim's time to come": {bound.Obj(), claim().Set(at(time.Hour), "spec", "lifecycle", "shutdownTime").Obj(), false},
		"claim's time is up":   {bound.Obj(), claim().Set(at(-time.Second), "spec", "lifecycle", "shutdownTime").Obj(), true},
		"claim's time is up by a clock that is ahead of ours": {bound.Obj(), claim().Set(at(30*time.Second), "spec", "lifecycle", "shutdownTime").Obj(), true},
		"finished, to be kept":                                {bound.Obj(), finished(claim(), time.Hour).Obj(), false},
		"finished, time to live is up":                        {bound.Obj(), finished(claim(), time.Hour).Set(int64(60), "spec", "lifecycle", "ttlSecondsAfterFinished").Obj(), true},
		"finished, time to live to come":                      {bound.Obj(), finished(claim(), time.Minute).Set(int64(3600), "spec", "lifecycle", "ttlSecondsAfterFinished").Obj(), false},
		"it did not finish":                                   {bound.Obj(), claim().Set(int64(60), "spec", "lifecycle", "ttlSecondsAfterFinished").Set([]any{map[string]any{"type": "Finished", "status": "False", "lastTransitionTime": at(-time.Hour)}}, "status", "conditions").Obj(), false},
		"finished, nobody knows when":                         {bound.Obj(), claim().Set(int64(60), "spec", "lifecycle", "ttlSecondsAfterFinished").Set([]any{map[string]any{"type": "Finished", "status": "True", "lastTransitionTime": "yesterday"}}, "status", "conditions").Obj(), false},
		"not ready, not expired":                              {bound.Obj(), claim().Set([]any{map[string]any{"type": "Ready", "reason": "SandboxNotReady"}}, "status", "conditions").Obj(), false},
		"expired, its status says":                            {bound.Obj(), claim().Set([]any{map[string]any{"type": "Ready", "reason": "ClaimExpired"}}, "status", "conditions").Obj(), true},
		"sandbox past its own time":                           {builders.SandboxFrom(bound.Obj()).Set(at(-time.Second), "spec", "shutdownTime").Obj(), claim().Obj(), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			if tc.claim != nil {
				s = newStore(tc.claim)
			}
			d, err := newPlatform(s, nil).Deletion(t.Context(), tc.sandbox, now)
			if err != nil {
				t.Fatal(err)
			}
			if v := freshness.JudgeDelete(d); v.Allowed != tc.allowed {
				t.Errorf("allowed is %t (%s), want %t", v.Allowed, v.Detail, tc.allowed)
			}
			if tc.sandbox == testMember && len(s.read) > 0 {
				t.Errorf("for a member %v is read", s.read)
			}
		})
	}
	t.Run("unreadable", func(t *testing.T) {
		s := newStore()
		s.fail["sandboxclaim/c1"] = errors.New("etcd is away")
		if _, err := newPlatform(s, nil).Deletion(t.Context(), bound.Obj(), now); err == nil {
			t.Error("a claim that cannot be read counts as gone")
		}
	})
}

// Upstream's pool controller takes what is not there for deleted.
func TestDeletesOfPoolsAreDone(t *testing.T) {
	p := &Platform{}
	for name, answer := range map[string]func() (int32, metav1.StatusReason){"sandbox": p.AnswerDelete, "pod": (&PodDeletions{Platform: p}).AnswerDelete} {
		if code, reason := answer(); code != 404 || reason != metav1.StatusReasonNotFound {
			t.Errorf("the delete of a %s is refused with %d %s, want 404 NotFound", name, code, reason)
		}
	}
}
