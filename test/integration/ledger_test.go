package integration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freshbind/freshbind/test/builders"
)

func TestTheLedgerNamesWhoIsPassedOver(t *testing.T) {
	const cold = "c cold beside uid-first, there for 10s"
	template, pool := builders.MakeTemplate("ns", "python").Obj(), builders.MakePool("ns", "python").Obj()
	now := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		askedFirst bool
		wait       time.Duration
		taken      bool
		want       []string
	}{
		"known before the claim was made": {wait: 10 * time.Second, want: []string{cold}},
		"known only after it was made":    {askedFirst: true, wait: 10 * time.Second},
		"there for a moment":              {wait: idleFor / 2},
		"on its way to another claim":     {wait: 10 * time.Second, taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			see := func(event watch.EventType, o *unstructured.Unstructured, after time.Duration) {
				l.see(event, o, now.Add(after))
			}
			member := func(name string) *unstructured.Unstructured {
				return builders.MakeMember(pool, template).Name(name).UID("uid-" + name).Created(now).Ready(true).Obj()
			}
			bound := func(member *unstructured.Unstructured, claim string) *unstructured.Unstructured {
				return builders.Bound(member, builders.MakeClaim("ns", claim).UID("uid-"+claim).Obj(), template).Obj()
			}
			first, second := member("first"), member("second")
			see(watch.Added, first, 0)
			see(watch.Added, second, 0)
			if tc.askedFirst {
				l.asks("c")
			}
			see(watch.Modified, bound(second, "other"), 0)
			if !tc.askedFirst {
				l.asks("c")
			}
			see(watch.Added, builders.MakeColdStart(builders.MakeClaim("ns", "c").UID("uid-c").Obj(), template).Obj(), tc.wait)
			if tc.taken {
				see(watch.Modified, bound(first, "next"), tc.wait+idleFor/2)
			}
			if diff := cmp.Diff(tc.want, l.skipped()); diff != "" {
				t.Errorf("passed over (-want,+got):\n%s", diff)
			}
		})
	}
}
