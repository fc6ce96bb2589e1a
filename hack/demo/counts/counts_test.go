package counts

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

var (
	start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	pool  = builders.MakePool("ns", "python").Obj()
)

func at(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }

// member is a ready member of the image, shown.
func member(name, image string) *builders.Sandbox {
	template := builders.MakeTemplate("ns", "python").Image(image).Obj()
	return builders.MakeMember(pool, template).Name(name).Set([]any{map[string]any{
		"type": "Ready", "status": "True", "lastTransitionTime": start.Format(time.RFC3339),
	}}, "status", "conditions")
}

func unready(name, image string) *unstructured.Unstructured {
	return member(name, image).Unset("status").Obj()
}

func leaving(name, image string) *unstructured.Unstructured {
	u := member(name, image).Obj()
	u.SetDeletionTimestamp(&metav1.Time{Time: start})
	return u
}

func claimed(name, image string) *unstructured.Unstructured {
	u := member(name, image).Obj()
	claim := builders.MakeClaim("ns", "c").Obj()
	u.SetOwnerReferences([]metav1.OwnerReference{builders.ControllerRef(claim)})
	return u
}

func serving(admit string) *unstructured.Unstructured {
	u := pool.DeepCopy()
	u.SetAnnotations(map[string]string{settings.AdmitKey: admit})
	return u
}

type step struct {
	kind checker.EventType
	obj  *unstructured.Unstructured
}

func log(t *testing.T, steps ...step) *Log {
	t.Helper()
	l := &Log{}
	for i, s := range steps {
		s.obj.SetResourceVersion([]string{"10", "11", "12", "13", "14", "15", "16", "17"}[i])
		s.obj.SetUID(types.UID(s.obj.GetName()))
		if s.obj.GetKind() == "SandboxWarmPool" {
			s.obj.SetUID(pool.GetUID())
		}
		if err := l.Write(checker.Event{Type: s.kind, Object: s.obj, SeenAt: at(i)}); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestSince(t *testing.T) {
	edit := Edit{RV: "11", At: at(1), Image: "v2"}
	two := []step{{checker.Listed, member("a", "v1").Obj()}, {checker.Listed, member("b", "v1").Obj()}}
	cases := map[string]struct {
		steps []step
		want  []Instant
	}{
		"nothing happens": {nil, []Instant{{At: at(1), Ready: 2}}},
		"one is replaced": {
			[]step{
				{checker.Modified, leaving("a", "v1")},
				{checker.Deleted, leaving("a", "v1")},
				{checker.Added, unready("c", "v2")},
				{checker.Modified, member("c", "v2").Obj()},
			},
			[]Instant{
				{At: at(1), Ready: 2},
				{At: at(2), Ready: 1, Replacing: 1},
				{At: at(3), Ready: 1, Replacing: 1},
				{At: at(4), Ready: 1, Replacing: 1},
				{At: at(5), Ready: 2, Claimable: 1},
			},
		},
		"a claim's sandbox is no member": {
			[]step{{checker.Modified, claimed("a", "v1")}, {checker.Deleted, claimed("a", "v1")}},
			[]Instant{{At: at(1), Ready: 2}, {At: at(2), Ready: 1}, {At: at(3), Ready: 1}},
		},
		"older members are claimable while the pool serves them, unless hidden": {
			[]step{
				{checker.Modified, serving("any")},
				{checker.Modified, member("a", "v1").NoLabel(builders.LabelTemplateRef).Obj()},
				{checker.Modified, serving("fresh")},
			},
			[]Instant{
				{At: at(1), Ready: 2},
				{At: at(2), Ready: 2, Claimable: 2},
				{At: at(3), Ready: 2, Claimable: 1},
				{At: at(4), Ready: 2},
			},
		},
		"one that never was ready leaves no gap, and ready again is no replacement": {
			[]step{
				{checker.Added, unready("c", "v2")},
				{checker.Deleted, unready("c", "v2")},
				{checker.Deleted, member("a", "v1").Obj()},
				{checker.Modified, unready("b", "v1")},
				{checker.Modified, member("b", "v1").Obj()},
			},
			[]Instant{
				{At: at(1), Ready: 2},
				{At: at(2), Ready: 2},
				{At: at(3), Ready: 2},
				{At: at(4), Ready: 1, Replacing: 1},
				{At: at(5), Ready: 0, Replacing: 1},
				{At: at(6), Ready: 1, Replacing: 1},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var steps []step
			for _, s := range append(two[:2:2], tc.steps...) {
				steps = append(steps, step{s.kind, s.obj.DeepCopy()})
			}
			if diff := cmp.Diff(tc.want, log(t, steps...).Since(edit)); diff != "" {
				t.Errorf("Since() (-want,+got):\n%s", diff)
			}
		})
	}
}

// Two watches deliver each in its own order only.
func TestSinceOrdersByVersion(t *testing.T) {
	l := &Log{}
	for _, v := range []struct {
		name, rv string
		seen     int
	}{{"b", "20", 3}, {"a", "9", 4}} {
		u := member(v.name, "v2").RV(0).Obj()
		u.SetResourceVersion(v.rv)
		if err := l.Write(checker.Event{Type: checker.Added, Object: u, SeenAt: at(v.seen)}); err != nil {
			t.Fatal(err)
		}
	}
	want := []Instant{{At: at(1), Ready: 1, Claimable: 1}, {At: at(3), Ready: 2, Claimable: 2}}
	if diff := cmp.Diff(want, l.Since(Edit{RV: "11", At: at(1), Image: "v2"})); diff != "" {
		t.Errorf("Since() (-want,+got):\n%s", diff)
	}
}

func TestExtremesOf(t *testing.T) {
	got := ExtremesOf([]Instant{{Ready: 4, Claimable: 4}, {Ready: 2, Claimable: 1, Replacing: 2}, {Ready: 3, Claimable: 3, Replacing: 1}})
	if diff := cmp.Diff(Extremes{LowestReady: 2, LowestClaimable: 1, MostReplacing: 2}, got); diff != "" {
		t.Errorf("ExtremesOf() (-want,+got):\n%s", diff)
	}
}
