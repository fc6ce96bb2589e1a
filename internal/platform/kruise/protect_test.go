package kruise

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
)

func TestDeletion(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	until := func(d time.Duration) func(*cluster) {
		return func(c *cluster) { set(c.written, now.Add(d).Format(time.RFC3339), "spec", "shutdownTime") }
	}
	phase := func(of string) func(*cluster) {
		return func(c *cluster) { set(c.written, of, "status", "phase") }
	}
	completed := func(c *cluster) { set(c.claim(), phaseCompleted, "status", "phase") }
	forUser := func(c *cluster) { c.written = takenFor(c.member, "user", "") }
	for name, tc := range map[string]struct {
		change  []func(*cluster)
		allowed bool
	}{
		"a user's":                             {[]func(*cluster){forUser}, false},
		"a user's, to live for ever":           {[]func(*cluster){forUser, func(c *cluster) { unstructured.RemoveNestedField(c.written.Object, "spec", "shutdownTime") }}, false},
		"its time is up":                       {[]func(*cluster){forUser, until(-time.Second)}, true},
		"its time is up by another clock":      {[]func(*cluster){forUser, until(30 * time.Second)}, true},
		"its time is to come":                  {[]func(*cluster){forUser, until(time.Hour)}, false},
		"it is being recycled":                 {[]func(*cluster){forUser, phase(phaseRecycling)}, true},
		"it was let go":                        {[]func(*cluster){forUser, func(c *cluster) { annotate(c.written, letGoAnnotation, yes) }}, true},
		"it has failed":                        {[]func(*cluster){forUser, phase("Failed")}, true},
		"it is paused":                         {[]func(*cluster){forUser, phase("Paused")}, false},
		"locked for scale-down":                {[]func(*cluster){forUser, func(c *cluster) { annotate(c.written, ownerAnnotation, scaleDown) }}, true},
		"an idle member":                       {[]func(*cluster){func(c *cluster) { c.written = c.member }}, true},
		"a pool's, and marked":                 {[]func(*cluster){forUser, func(c *cluster) { c.written.SetOwnerReferences(c.member.GetOwnerReferences()) }}, true},
		"nobody's":                             {[]func(*cluster){forUser, func(c *cluster) { c.written.SetLabels(nil) }}, true},
		"a claim's that is completed":          {[]func(*cluster){completed}, false},
		"a claim's that fails":                 {nil, true},
		"a claim's that takes more":            {[]func(*cluster){func(c *cluster) { set(c.claim(), "Claiming", "status", "phase") }}, true},
		"a claim's, under another label":       {[]func(*cluster){completed, func(c *cluster) { c.written = takenFor(c.member, "uid-c", "another") }}, false},
		"a claim's that is being deleted":      {[]func(*cluster){completed, func(c *cluster) { c.claim().SetDeletionTimestamp(&metav1.Time{Time: now}) }}, true},
		"a claim's that is gone":               {[]func(*cluster){func(c *cluster) { delete(c.objs, Claims.Resource+"/c") }}, true},
		"a claim's that came again":            {[]func(*cluster){completed, func(c *cluster) { c.claim().SetUID("uid-of-the-next") }}, true},
		"a completed claim's whose time is up": {[]func(*cluster){completed, until(-time.Hour)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			set(c.written, now.Add(time.Hour).Format(time.RFC3339), "spec", "shutdownTime")
			for _, change := range tc.change {
				change(c)
			}
			d, err := c.platform().Deletion(t.Context(), c.written, now)
			if err != nil {
				t.Fatal(err)
			}
			if v := freshness.JudgeDelete(d); v.Allowed != tc.allowed {
				t.Errorf("allowed is %t (%s), want %t", v.Allowed, v.Detail, tc.allowed)
			}
		})
	}
}

func TestAClaimThatCannotBeReadIsNotGone(t *testing.T) {
	c := newCluster()
	c.fail[Claims.Resource+"/c"] = true
	if d, err := c.platform().Deletion(t.Context(), c.written, time.Unix(0, 0)); err == nil {
		t.Errorf("the delete is judged by %v, want an error", d)
	}
}

// What nobody has, or whose time is up, costs no read.
func TestDeletesThatAreAllowedAnywayReadNothing(t *testing.T) {
	for name, change := range map[string]func(*cluster){
		"an idle member":        func(c *cluster) { c.written = c.member },
		"locked for scale-down": func(c *cluster) { annotate(c.written, ownerAnnotation, scaleDown) },
		"its time is up":        func(c *cluster) { set(c.written, "1970-01-01T00:00:00Z", "spec", "shutdownTime") },
	} {
		c := newCluster()
		change(c)
		if _, err := c.platform().Deletion(t.Context(), c.written, time.Unix(0, 0)); err != nil || len(c.read) > 0 {
			t.Errorf("%s: %v is read: %v", name, c.read, err)
		}
	}
}

func TestUpstreamLooksAgain(t *testing.T) {
	if code, reason := (&Platform{}).AnswerDelete(); code != 409 || reason != metav1.StatusReasonConflict {
		t.Errorf("a delete is refused with %d %s, want 409 Conflict", code, reason)
	}
}

func annotate(u *unstructured.Unstructured, key, value string) {
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	u.SetAnnotations(annotations)
}
