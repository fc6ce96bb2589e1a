package agentsandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/test/builders"
)

// mayHold are so many names of sandboxes that a claim may have.
func mayHold(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("may-%03d", i))
	}
	return names
}

// Anybody who writes Sandboxes gives a claim as many as they like.
func TestHowManySandboxesOfAClaimAreRead(t *testing.T) {
	template := builders.MakeTemplate("ns", "python").Obj()
	claim := builders.MakeClaim("ns", "c1").Names("python-abc").Obj()
	member, pod := running(template)
	named := func(name string) *unstructured.Unstructured {
		return builders.SandboxFrom(builders.MakeColdStart(claim, template).Obj()).Name(name).Obj()
	}
	byStatus := builders.ClaimFrom(claim).Set("elsewhere", "status", "sandbox", "name").Obj()
	for name, tc := range map[string]struct {
		claim *unstructured.Unstructured
		more  []string
		holds *unstructured.Unstructured
		want  freshness.Reason
		err   string
		reads int
	}{
		"as many as are read, none is its":    {claim, mayHold(maxMayHold), member, freshness.Fresh, "", maxMayHold + 1},
		"as many beside the written one":      {claim, append(mayHold(maxMayHold), "python-abc"), member, freshness.Fresh, "", maxMayHold + 1},
		"one more, none is its":               {claim, mayHold(maxMayHold + 1), member, "", "claim c1: 13 may be its", maxMayHold + 1},
		"many, it has one of those":           {claim, mayHold(300), named("may-005"), freshness.ClaimHoldsAnother, "", maxMayHold + 1},
		"many, it has one that is not read":   {claim, mayHold(300), named("may-299"), "", "claim c1: 300 may be its", maxMayHold + 1},
		"many, it has the one that it names":  {byStatus, mayHold(300), named("elsewhere"), freshness.ClaimHoldsAnother, "", maxMayHold + 2},
		"many, it has that of its cold start": {claim, mayHold(300), named("c1"), freshness.ClaimHoldsAnother, "", maxMayHold + 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(tc.claim, testPool, template, pod, tc.holds)
			w, _ := (&Platform{}).Classify(admissionv1.Update, member, builders.Bound(member, claim, template).Obj())
			w.MayHold = tc.more
			f, err := newPlatform(s, nil).Snapshot(t.Context(), w)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("Snapshot() error = %v, want %q", err, tc.err)
			}
			if err == nil {
				if v := freshness.Judge(f.Snapshot); v.Reason != tc.want {
					t.Errorf("judged %s (%s), want %s", v.Reason, v.Detail, tc.want)
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			read := slices.DeleteFunc(slices.Clone(s.read), func(of string) bool { return !strings.HasPrefix(of, "sandbox/") })
			if len(read) != tc.reads {
				t.Errorf("%d sandboxes are read, want %d", len(read), tc.reads)
			}
		})
	}
}

func TestSandboxesOfAClaimAreReadAFewAtOnce(t *testing.T) {
	template := builders.MakeTemplate("ns", "python").Obj()
	claim := builders.MakeClaim("ns", "c1").Names("python-abc").Obj()
	member, pod := running(template)
	synctest.Test(t, func(t *testing.T) {
		rounds := roundsOf(t, []*unstructured.Unstructured{claim, testPool, template, pod}, func(ctx context.Context, p *Platform) error {
			w, _ := p.Classify(admissionv1.Update, member, builders.Bound(member, claim, template).Obj())
			w.MayHold = mayHold(maxMayHold)
			_, err := p.Snapshot(ctx, w)
			return err
		})
		var got []int
		for _, of := range rounds {
			got = append(got, strings.Count(of, "sandbox/"))
		}
		// The sandbox of a cold start is guessed.
		if diff := cmp.Diff([]int{1, heldAtOnce, heldAtOnce, heldAtOnce}, got); diff != "" {
			t.Errorf("sandboxes at once (-want,+got):\n%s\nrounds: %v", diff, rounds)
		}
	})
}
