package scenario

import (
	"slices"
	"testing"

	"github.com/freshbind/freshbind/internal/checker"
)

// failures counts the errors of a test.
type failures struct {
	testing.TB
	n int
}

func (f *failures) Helper()               {}
func (f *failures) Attr(string, string)   {}
func (f *failures) Errorf(string, ...any) { f.n++ }

func TestCheckFresh(t *testing.T) {
	finding := func(namespace string, class checker.Class) checker.Bind {
		return checker.Bind{Namespace: namespace, Class: class}
	}
	for name, tc := range map[string]struct {
		claims, ready int
		findings      []checker.Bind
		want          int
	}{
		"two, and fresh":        {claims: 2, ready: 2},
		"one is not ready":      {claims: 2, ready: 1, want: 1},
		"one is missing":        {claims: 1, ready: 1, want: 1},
		"one more":              {claims: 3, ready: 2, want: 1},
		"one is stale":          {claims: 2, ready: 2, findings: []checker.Bind{finding("ns", checker.Stale)}, want: 1},
		"one raced":             {claims: 2, ready: 2, findings: []checker.Bind{finding("ns", checker.Raced)}},
		"another's is stale":    {claims: 2, ready: 2, findings: []checker.Bind{finding("other", checker.Stale)}},
		"one is, and another's": {claims: 2, ready: 2, findings: []checker.Bind{finding("other", checker.Stale), finding("ns", checker.Stale)}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := &checker.Report{
				Namespaces: []checker.Summary{{Namespace: "other"}, {Namespace: "ns", Claims: tc.claims, Ready: tc.ready}},
				Findings:   slices.Clone(tc.findings),
			}
			f := &failures{TB: t}
			if got := CheckFresh(f, r, "ns", 2); got.Claims != tc.claims || got.Ready != tc.ready || f.n != tc.want {
				t.Errorf("%d failures, %d claims, %d ready, want %d, %d, %d", f.n, got.Claims, got.Ready, tc.want, tc.claims, tc.ready)
			}
			for i, b := range tc.findings {
				if r.Findings[i].Namespace != b.Namespace {
					t.Error("the report has changed")
				}
			}
		})
	}
}
