package fakeupstream

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// Releases without a Go module, with Freshbind and without: the same is played
// in two namespaces, and judged from the watch history.
func TestReleasesWithoutAModule(t *testing.T) {
	for _, style := range []Style{OneWrite, LockFree} {
		t.Run(string(style), func(t *testing.T) {
			w := newWorld(t, style)
			plays := map[string]func(*testing.T, *world){"in-place update": testUpdate, "bad members": testBadMembers}
			switch style {
			case OneWrite:
				plays["twice in a row"] = testTwiceInARow
			case LockFree:
				plays["two at once"] = testTwoAtOnce
			}
			for name, play := range plays {
				t.Run(name, func(t *testing.T) {
					t.Cleanup(func() {
						w.delay(upstream.SandboxTemplates, false)
						w.delay(upstream.Sandboxes, false)
						w.delay(upstream.SandboxClaims, false)
					})
					play(t, w)
				})
			}
		})
	}
}

func (w *world) delay(r schema.GroupResource, late bool) {
	d := lag
	if !late {
		d = 0
	}
	w.proxy.SetDelay(r.Group, r.Resource, d)
}

// hold keeps the stand-in from seeing a resource change, until the test ends or see is called.
func (w *world) hold(t *testing.T, r schema.GroupResource) (see func()) {
	w.proxy.Hold(r.Group, r.Resource)
	see = func() { w.proxy.Release(r.Group, r.Resource) }
	t.Cleanup(see)
	return see
}

// testUpdate edits a template that the stand-in sees late.
func testUpdate(t *testing.T, w *world) {
	claims := scenario.Names("c", 5)
	before := w.refused(t)
	refused := func() bool { return fmt.Sprint(w.refused(t)) != fmt.Sprint(before) }
	play := func(enforce bool) *stage {
		s := w.stage(t)
		if enforce {
			s.enforce()
			before = w.refused(t)
		}
		see := w.hold(t, upstream.SandboxTemplates)
		_, err := s.SetImage(t.Context(), s.pool.Template, "sandbox:v2")
		s.must(err)
		s.must(s.CreateClaims(t.Context(), s.pool, claims...))
		if enforce {
			s.eventually("what is stale refused", func(context.Context) (string, bool) { return fmt.Sprint(w.refused(t)), refused() })
			see()
		}
		s.must(s.WaitClaims(t.Context(), within, claims...))
		see()
		return s
	}
	if sum, _ := play(false).judged(); sum.Classes[checker.Stale] == 0 {
		t.Errorf("without Freshbind the claims got %v: this test shows nothing", sum.Classes)
	}
	s := play(true)
	s.sound(len(claims))
	for _, claim := range claims {
		if image := scenario.ImageOf(s.get(claim)); image != "sandbox:v2" {
			t.Errorf("claim %s runs %s", claim, image)
		}
	}
	s.full("sandbox:v2")
	s.warm()
}

// testBadMembers has members that are dead, used and foreign when Freshbind
// begins to enforce.
func testBadMembers(t *testing.T, w *world) {
	claims := scenario.Names("c", 5)
	spoilt := 0
	play := func(enforce bool) *stage {
		s := w.stage(t)
		spoilt = s.spoil()
		if enforce {
			s.enforce()
		}
		// One after the other: who comes second while caches move may be passed over.
		for _, claim := range claims {
			s.claim(claim)
		}
		return s
	}
	bad := []checker.Class{checker.DeadMember, checker.UsedMember, checker.ForeignMember}
	lacks := func(sum checker.Summary) bool {
		return slices.ContainsFunc(bad, func(c checker.Class) bool { return sum.Classes[c] == 0 })
	}
	var sum checker.Summary
	var findings []checker.Bind
	// A controller whose caches are late can drop one for good, and has to be shown another.
	const most = 3
	for range most {
		without := play(false)
		sum, findings = without.judged()
		// One that a cache shows late is passed over, and given to who comes later.
		for n := 0; n < len(claims) && lacks(sum); n++ {
			without.claim(fmt.Sprintf("later%d", n))
			sum, findings = without.judged()
		}
		if !lacks(sum) {
			break
		}
	}
	for _, class := range bad {
		if sum.Classes[class] == 0 {
			t.Errorf("without Freshbind the claims got %v (%v): this test shows nothing of %s", sum.Classes, findings, class)
		}
	}
	s := play(true)
	s.sound(len(claims) + spoilt)
	s.full("")
}

// spoil makes a member used, one foreign, and one dead. It returns how many
// claims that took.
func (s *stage) spoil() int {
	s.t.Helper()
	ctx := s.t.Context()
	pool, err := s.Resource(upstream.SandboxWarmPools).Get(ctx, s.pool.Name, metav1.GetOptions{})
	s.must(err)
	template, err := s.Resource(upstream.SandboxTemplates).Get(ctx, s.pool.Template, metav1.GetOptions{})
	s.must(err)

	s.olderThanTheNext()
	used, claims := s.warm()
	s.must(s.Resource(upstream.SandboxClaims).Delete(ctx, claims[len(claims)-1], metav1.DeleteOptions{}))
	owner := builders.ControllerRef(pool)
	_, err = s.Resource(upstream.Sandboxes).Patch(ctx, used.GetName(), types.MergePatchType, fmt.Appendf(nil,
		`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"controller":true}],"labels":{%q:%q,%q:%q}}}`,
		owner.APIVersion, owner.Kind, owner.Name, owner.UID,
		builders.LabelPool, builders.NameHash(s.pool.Name), builders.LabelTemplateRef, builders.NameHash(s.pool.Template)), metav1.PatchOptions{})
	s.must(err)

	// Of a pool of this name that was deleted; in v0.3.10, which would take it, of
	// nobody.
	gone := owner
	gone.UID = "00000000-0000-0000-0000-000000000000"
	foreign := builders.SandboxFrom(s.w.style.Member(pool, template)).Owners(gone)
	if s.w.style == OneWrite {
		foreign.Owners()
	}
	members := s.full("")
	dead := slices.IndexFunc(members, func(m scenario.Member) bool { return m.Name != used.GetName() })
	s.dying(members[dead].Name)
	stored, err := s.Resource(upstream.Sandboxes).Create(ctx, stripped(foreign.Obj()), metav1.CreateOptions{})
	s.must(err)
	s.t.Logf("used %s, dead %s, foreign %s", used.GetName(), members[dead].Name, stored.GetName())
	s.eventually("a foreign sandbox that is ready", func(ctx context.Context) (string, bool) {
		now, err := s.Resource(upstream.Sandboxes).Get(ctx, stored.GetName(), metav1.GetOptions{})
		s.must(err)
		return fmt.Sprint(now.Object["status"]), ready(now)
	})
	s.olderThanTheNext()
	return len(claims)
}

// warm makes claims until one is given a member: v0.3.10 makes a claim cold when
// its caches are behind with every member.
func (s *stage) warm() (member *unstructured.Unstructured, claims []string) {
	s.t.Helper()
	const most = 5
	for len(claims) < most {
		claim := fmt.Sprintf("first%d", len(claims))
		claims = append(claims, claim)
		s.claim(claim)
		if member = s.get(claim); member.GetName() != claim {
			return member, claims
		}
	}
	s.t.Fatalf("%d claims in a row started cold beside a full pool", most)
	return nil, nil
}

// olderThanTheNext waits until a member made now is younger than those there
// are: creation times are whole seconds, and a pool with one too many deletes
// its youngest.
func (s *stage) olderThanTheNext() {
	s.t.Helper()
	list, err := s.Resource(upstream.Sandboxes).List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	s.eventually("the next second", func(context.Context) (string, bool) {
		now := time.Now()
		for i := range list.Items {
			if now.Sub(list.Items[i].GetCreationTimestamp().Time) < time.Second {
				return now.String(), false
			}
		}
		return "", true
	})
}

// dying deletes a Pod that stays for as long as the test runs.
func (s *stage) dying(name string) {
	s.t.Helper()
	client, err := dynamic.NewForConfig(s.w.cluster.Config())
	s.must(err)
	pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(s.Name)
	hold := func(ctx context.Context, finalizers string) {
		patch := []byte(`{"metadata":{"finalizers":` + finalizers + `}}`)
		if _, err := pods.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			s.t.Error(err)
		}
	}
	hold(s.t.Context(), `["test.freshbind.dev/hold"]`)
	s.t.Cleanup(func() { hold(context.WithoutCancel(s.t.Context()), "null") })
	s.must(pods.Delete(s.t.Context(), name, metav1.DeleteOptions{}))
}

// testTwiceInARow: the write that tells what a claim has fails, because the claim
// was written to meanwhile, and the next pass does not see the bind of the one
// before. v0.3.10 takes another member then (kubernetes-sigs/agent-sandbox#478).
func testTwiceInARow(t *testing.T, w *world) {
	play := func(enforce bool) *stage {
		s := w.stage(t)
		if enforce {
			s.enforce()
		}
		s.seen(enforce)
		w.delay(upstream.Sandboxes, true)
		w.delay(upstream.SandboxClaims, true)
		s.must(s.CreateClaims(t.Context(), s.pool, "c1"))
		s.touchUntilServed("c1")
		s.must(s.WaitClaims(t.Context(), within, "c1"))
		w.delay(upstream.Sandboxes, false)
		w.delay(upstream.SandboxClaims, false)
		return s
	}
	if sum, _ := play(false).judged(); sum.Classes[checker.Duplicate] == 0 {
		t.Errorf("without Freshbind the claim got %v: this test shows nothing", sum.Classes)
	}
	s := play(true)
	s.sound(1)
	s.oneEach("c1")
	if s.get("c1").GetName() == "c1" {
		t.Error("the claim started cold: this does not show that a bind is remembered")
	}
	if refused := w.refused(t); refused["bind ClaimHoldsAnother"] == 0 {
		t.Errorf("refused were %v, want a second member for a claim", refused)
	}
}

// touchUntilServed writes to a claim until a Sandbox belongs to it.
func (s *stage) touchUntilServed(claim string) {
	s.t.Helper()
	n := 0
	s.eventually("a sandbox of claim "+claim, func(ctx context.Context) (string, bool) {
		n++
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%d"}}}`, n)
		_, err := s.Resource(upstream.SandboxClaims).Patch(ctx, claim, types.MergePatchType, patch, metav1.PatchOptions{})
		s.must(err)
		owned := s.owned()
		return fmt.Sprint(owned), owned[claim] > 0
	})
}

// testTwoAtOnce has two controllers, as when one does not know yet that another
// leads, and both see sandboxes late. A member that one of them has given away is
// still on the other's queue.
func testTwoAtOnce(t *testing.T, w *world) {
	first, second := scenario.Names("a", 3), scenario.Names("b", 3)
	play := func(enforce bool) *stage {
		s := w.stage(t)
		s.serve()
		if enforce {
			s.enforce()
		}
		w.proxy.SetDelay(upstream.Sandboxes.Group, upstream.Sandboxes.Resource, 3*lag)
		for _, claims := range [][]string{first, second} {
			s.must(s.CreateClaims(t.Context(), s.pool, claims...))
			s.eventually("a sandbox for each claim", func(context.Context) (string, bool) {
				owned := s.owned()
				return fmt.Sprint(owned), len(owned) >= s.pool.Replicas
			})
		}
		return s
	}
	s := play(false)
	s.eventually("a claim that is given another's sandbox", func(context.Context) (string, bool) {
		sum, _ := s.judged()
		return fmt.Sprint(sum.Classes), sum.Classes[checker.Duplicate] > 0
	})
	w.delay(upstream.Sandboxes, false)
	s = play(true)
	s.must(s.WaitClaims(t.Context(), within, slices.Concat(first, second)...))
	s.sound(len(first) + len(second))
	s.oneEach(slices.Concat(first, second)...)
	if refused := w.refused(t); refused["bind MemberClaimed"] == 0 {
		t.Errorf("refused were %v, want another claim's sandbox", refused)
	}
}

// oneEach checks that every claim has one Sandbox.
func (s *stage) oneEach(claims ...string) {
	s.t.Helper()
	want := map[string]int{}
	for _, claim := range claims {
		want[claim] = 1
	}
	if diff := cmp.Diff(want, s.owned()); diff != "" {
		s.t.Errorf("sandboxes of each claim (-want,+got):\n%s", diff)
	}
}

// owned counts the Sandboxes of each claim.
func (s *stage) owned() map[string]int {
	s.t.Helper()
	list, err := s.Resource(upstream.Sandboxes).List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	count := map[string]int{}
	for i := range list.Items {
		if owner := ownerOf(&list.Items[i]); owner != "" {
			count[owner]++
		}
	}
	return count
}

func ownerOf(sandbox *unstructured.Unstructured) string {
	if owner := metav1.GetControllerOf(sandbox); owner != nil && owner.Kind == claimKind {
		return owner.Name
	}
	return ""
}
