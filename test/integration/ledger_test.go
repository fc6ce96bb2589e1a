package integration

import (
	"fmt"
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
		wants      string
		askedFirst bool
		// standsFor is how many other claims are made before the cold start, and passedBy how many
		// that are made after it are served before somebody takes the member.
		standsFor, passedBy int
		// takenBy is "c0", which was made before, or "next".
		takenBy string
		want    []string
	}{
		"known before the claim was made":       {standsFor: turns - 1, want: []string{cold}},
		"known only after it was made":          {askedFirst: true, standsFor: turns - 1},
		"there for a few claims":                {standsFor: turns - 2},
		"of an image that nobody gets":          {standsFor: turns - 1, wants: "sandbox:v2"},
		"on its way to an earlier claim":        {standsFor: turns - 1, passedBy: 2 * turns, takenBy: "c0"},
		"given to one of the next claims":       {standsFor: turns - 1, passedBy: turns - 1, takenBy: "next"},
		"passed by, and given to a later claim": {standsFor: turns - 1, passedBy: turns, takenBy: "next", want: []string{cold}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			l.want(tc.wants)
			see := func(event watch.EventType, o *unstructured.Unstructured, after time.Duration) {
				l.see(event, o, now.Add(after))
			}
			member := func(name string) *unstructured.Unstructured {
				return builders.MakeMember(pool, template).Name(name).UID("uid-" + name).Created(now).Ready(true).Obj()
			}
			claim := func(name string) *unstructured.Unstructured {
				return builders.MakeClaim("ns", name).UID("uid-" + name).Obj()
			}
			first, second := member("first"), member("second")
			see(watch.Added, first, 0)
			see(watch.Added, second, 0)
			if tc.askedFirst {
				l.asks("c")
			}
			see(watch.Modified, builders.Bound(second, claim("other"), template).Obj(), 0)
			for i := range tc.standsFor {
				l.asks(fmt.Sprint("c", i))
			}
			if !tc.askedFirst {
				l.asks("c")
			}
			see(watch.Added, builders.MakeColdStart(claim("c"), template).Obj(), 10*time.Second)
			for i := range tc.passedBy {
				name := fmt.Sprint("later", i)
				l.asks(name)
				see(watch.Added, builders.MakeColdStart(claim(name), template).UID("uid-of-"+name).Obj(), 10*time.Second)
			}
			if tc.takenBy != "" {
				if tc.takenBy == "next" {
					l.asks("next")
				}
				see(watch.Modified, builders.Bound(first, claim(tc.takenBy), template).Obj(), time.Hour)
			}
			// Those of later claims are beside it, too.
			l.cold = l.cold[:1]
			if diff := cmp.Diff(tc.want, l.skipped()); diff != "" {
				t.Errorf("passed over (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestTheLedgerCountsWhatIsNotReplaced(t *testing.T) {
	template, pool := builders.MakeTemplate("ns", "python").Obj(), builders.MakePool("ns", "python").Obj()
	now := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		// events are a member's name, after + when it becomes ready, - when it is deleted and = when a claim gets it.
		events []string
		want   int
	}{
		"one after another":                  {events: []string{"-a", "+c", "-b", "+d"}, want: 1},
		"two at once":                        {events: []string{"-a", "-b", "+c", "+d"}, want: 2},
		"the gap of a bind":                  {events: []string{"=a", "-b", "+c", "+d"}, want: 1},
		"the oldest gap is filled first":     {events: []string{"=a", "+c", "-b", "-c"}, want: 2},
		"one too many":                       {events: []string{"+c", "-c"}},
		"one too many, an older one deleted": {events: []string{"+c", "-a", "-b"}, want: 1},
		"one too many, and a bind":           {events: []string{"+c", "=a", "-b", "-c"}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			member := func(name string) *unstructured.Unstructured {
				return builders.MakeMember(pool, template).Name(name).UID("uid-" + name).Created(now).Ready(true).Obj()
			}
			l.start([]unstructured.Unstructured{*member("a"), *member("b")})
			for _, event := range tc.events {
				switch m := member(event[1:]); event[0] {
				case '+':
					l.see(watch.Added, m, now)
				case '-':
					l.see(watch.Deleted, m, now)
				case '=':
					l.see(watch.Modified, builders.Bound(m, builders.MakeClaim("ns", "c").UID("uid-c").Obj(), template).Obj(), now)
				}
			}
			if l.most != tc.want {
				t.Errorf("%d members deleted and not yet replaced at one time, want %d", l.most, tc.want)
			}
		})
	}
}
