package checker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/test/builders"
)

// writers is a recording that says who wrote, as audit logs do.
type writers struct {
	*scene
	by string
}

const poolController = "pool-controller"

func newWriters(t testing.TB) *writers {
	w := &writers{by: poolController}
	x := newRecording(t)
	x.by = func() string { return w.by }
	w.scene = castScene(x, builders.V1Beta1, "Recreate")
	return w
}

func (w *writers) served() {
	w.create("c1")
	w.serve()
}

// What made a member, and deletes it while a claim has it, meant a member.
func TestWhatIsKilledAfterItsBind(t *testing.T) {
	const kills, spares = "c1: KilledAfterBind", "c1: Fresh"
	later, earlier := "2099-01-01T00:00:00Z", "2020-01-01T00:00:00Z"
	for name, tc := range map[string]struct {
		tell func(w *writers)
		want string
	}{
		"the sandbox": {func(w *writers) { w.served(); w.del(builders.SandboxFrom(w.member)) }, kills},
		"the sandbox, which has a finalizer": {func(w *writers) {
			w.served()
			w.member = w.mod(builders.SandboxFrom(w.member).Deleting(w.now))
			w.by = "garbage-collector"
			w.del(builders.SandboxFrom(w.member))
		}, kills},
		"its Pod":                   {func(w *writers) { w.served(); w.mod(builders.PodFrom(w.pod).Deleting(w.now)) }, kills},
		"its Pod, at once":          {func(w *writers) { w.served(); w.del(builders.PodFrom(w.pod)) }, kills},
		"by somebody else":          {func(w *writers) { w.served(); w.by = "alice"; w.del(builders.SandboxFrom(w.member)) }, spares},
		"its Pod, by somebody else": {func(w *writers) { w.served(); w.by = "kubelet"; w.del(builders.PodFrom(w.pod)) }, spares},
		"nobody knows who made it": {func(w *writers) {
			w.by = ""
			w.birth("python-m2")
			w.served()
			w.del(builders.SandboxFrom(w.member))
		}, spares},
		"a cold start": {func(w *writers) {
			w.create("c1")
			w.del(builders.SandboxFrom(w.add(builders.MakeColdStart(w.claim, w.template))))
		}, spares},
		"one that a LIST showed": {func(w *writers) {
			w.member = w.list(builders.MakeMember(w.pool, w.template).Name("python-m2"))
			w.pod = w.add(builders.MakePod(w.member).Stored("node"))
			w.served()
			w.del(builders.SandboxFrom(w.member))
		}, spares},
		"the claim was gone": {func(w *writers) {
			w.served()
			w.del(builders.ClaimFrom(w.claim))
			w.del(builders.SandboxFrom(w.member))
		}, spares},
		"the claim was going": {func(w *writers) {
			w.served()
			w.mod(builders.ClaimFrom(w.claim).Deleting(w.now))
			w.del(builders.SandboxFrom(w.member))
		}, spares},
		"the claim expires":             {func(w *writers) { w.lives(int64(5), "ttlSecondsAfterFinished") }, spares},
		"the claim's time is up":        {func(w *writers) { w.lives(earlier, "shutdownTime") }, spares},
		"when that is, nobody can read": {func(w *writers) { w.lives("soon", "shutdownTime") }, spares},
		"the claim has time":            {func(w *writers) { w.lives(later, "shutdownTime") }, kills},
		"the sandbox's time is up":      {func(w *writers) { w.says(earlier, "shutdownTime") }, spares},
		"the sandbox has time":          {func(w *writers) { w.says(later, "shutdownTime") }, kills},
		"the sandbox is suspended":      {func(w *writers) { w.says("Suspended", "operatingMode") }, spares},
		"the sandbox has no replicas":   {func(w *writers) { w.says(int64(0), "replicas") }, spares},
		"another Pod of that name": {func(w *writers) {
			w.served()
			w.by = "alice"
			w.del(builders.PodFrom(w.pod))
			w.by = poolController
			w.del(builders.PodFrom(w.add(builders.PodFrom(w.pod).UID("again"))))
		}, kills},
		"the claim let it go": {func(w *writers) {
			w.served()
			w.member = w.mod(builders.SandboxFrom(w.member).Owners())
			w.del(builders.SandboxFrom(w.member))
		}, spares},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWriters(t)
			tc.tell(w)
			w.progress()
			if diff := cmp.Diff([]string{tc.want}, w.verdicts()); diff != "" {
				t.Errorf("verdicts (-want,+got):\n%s\n%s", diff, w.dump())
			}
		})
	}
}

// lives has the claim say something of its end, before its sandbox is deleted.
func (w *writers) lives(value any, key string) {
	w.served()
	w.claim = w.mod(builders.ClaimFrom(w.claim).Set(value, "spec", "lifecycle", key))
	w.del(builders.SandboxFrom(w.member))
}

// says does so with the sandbox.
func (w *writers) says(value any, key string) {
	w.served()
	w.member = w.mod(builders.SandboxFrom(w.member).Set(value, "spec", key))
	w.del(builders.SandboxFrom(w.member))
}

// One that was going before its bind was no member that anybody could take.
func TestWhatWentBeforeItsBindIsNotKilledAfterIt(t *testing.T) {
	w := newWriters(t)
	w.member = w.mod(builders.SandboxFrom(w.member).Deleting(w.now))
	w.served()
	w.del(builders.SandboxFrom(w.member))
	w.progress()
	if diff := cmp.Diff([]string{"c1: DeadMember"}, w.verdicts()); diff != "" {
		t.Errorf("verdicts (-want,+got):\n%s\n%s", diff, w.dump())
	}
}

// What became of a sandbox is told also after it, or its claim, has been forgotten.
func TestWhatWasKilledIsToldAfterItIsOver(t *testing.T) {
	w := newWriters(t)
	w.served()
	w.del(builders.SandboxFrom(w.member))
	w.del(builders.ClaimFrom(w.claim))
	w.update("sandbox:v2")
	w.progress()
	w.h.Prune(w.at())
	if got := w.h.Judge().Namespace(ns).Classes[Killed]; got != 1 || len(w.h.binds) > 0 {
		t.Errorf("%d sandboxes are counted as killed, want 1; %d binds are kept", got, len(w.h.binds))
	}
}

// Pools say what they asked for over time.
func TestPoolsOverTime(t *testing.T) {
	s := newScene(t, "Recreate")
	first, begun := s.template, s.now
	s.update("sandbox:v2")
	second, updated := s.template, s.now
	s.template = s.mod(builders.TemplateFrom(s.template).Annotation("a", "b")) // says the same
	s.add(builders.MakeTemplate(ns, "node").Image("node:v1"))
	s.pool = s.mod(builders.PoolFrom(s.pool).Template("node").Strategy("OnReplenish"))
	moved := s.now
	s.add(builders.MakePool(ns, "another").Template("missing"))
	s.add(builders.MakePool("before", "python"))
	type band struct {
		From, Until time.Time
		Template    string
		RV          RV
	}
	got := map[string][]band{}
	var order []string
	for _, p := range s.h.Pools() {
		key := p.Namespace + "/" + p.Pool + " " + p.Strategy
		order = append(order, key)
		for _, b := range p.Bands {
			got[key] = append(got[key], band{b.From, b.Until, b.Revision.Template, b.Revision.RV})
		}
	}
	if diff := cmp.Diff([]string{"before/python OnReplenish", "default/another OnReplenish", "default/python OnReplenish"}, order); diff != "" {
		t.Errorf("pools (-want,+got):\n%s", diff)
	}
	rv := func(u *unstructured.Unstructured) RV { return RV(u.GetResourceVersion()) }
	bands := got["default/python OnReplenish"]
	if len(bands) != 3 {
		t.Fatalf("bands are %+v, want 3", bands)
	}
	want := []band{{bands[0].From, updated, "python", rv(first)}, {updated, moved, "python", rv(second)}, {moved, s.now, "node", bands[2].RV}}
	if diff := cmp.Diff(want, bands); diff != "" || begun.Before(bands[0].From) {
		t.Errorf("bands (-want,+got):\n%s", diff)
	}
}
