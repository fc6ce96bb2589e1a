package platform

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
)

// A member says what its object says.
func TestReducedMembers(t *testing.T) {
	type says struct {
		Pod, Stamp       string
		Created          time.Time
		Deleting, ByPool bool
		Metadata         metav1.ObjectMeta
	}
	meta := func(change func(*metav1.ObjectMeta)) metav1.ObjectMeta {
		out := metav1.ObjectMeta{
			Namespace: "ns", Name: "m", UID: "uid-m", ResourceVersion: "7", Generation: 1, CreationTimestamp: metav1.NewTime(born),
		}
		change(&out)
		return out
	}
	plain := says{Pod: "m", Created: born, Metadata: meta(func(*metav1.ObjectMeta) {})}
	with := func(change func(*says)) says {
		out := plain
		change(&out)
		return out
	}
	at := born.Add(time.Hour)
	for name, tc := range map[string]struct {
		change changed
		want   says
	}{
		"plain": {func(*unstructured.Unstructured) {}, plain},
		"not created yet": {func(u *unstructured.Unstructured) { u.SetCreationTimestamp(metav1.Time{}) }, with(func(s *says) {
			s.Created, s.Metadata.CreationTimestamp = time.Time{}, metav1.Time{}
		})},
		"in a Pod of another name": {annotated(podNameKey, "elsewhere"), with(func(s *says) {
			s.Pod, s.Metadata.Annotations = "elsewhere", map[string]string{podNameKey: "elsewhere"}
		})},
		"in a Pod of another name, and annotated": {func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{podNameKey: "elsewhere", boxDomain + "/a": "1"})
		}, with(func(s *says) {
			s.Pod, s.Metadata.Annotations = "elsewhere", map[string]string{podNameKey: "elsewhere", boxDomain + "/a": "1"}
		})},
		"it names its own": {annotated(podNameKey, "m"), with(func(s *says) { s.Metadata.Annotations = map[string]string{} })},
		"deleting": {deleting, with(func(s *says) {
			s.Deleting, s.Metadata.DeletionTimestamp = true, ptr.To(metav1.NewTime(at))
		})},
		"stamped": {set("v1-a", "metadata", "labels", settings.StampKey), with(func(s *says) {
			s.Stamp, s.Metadata.Labels = "v1-a", map[string]string{settings.StampKey: "v1-a"}
		})},
		"born for its pool": {annotated(settings.CreatedByKey, settings.CreatedByPool), with(func(s *says) {
			s.ByPool, s.Metadata.Annotations = true, map[string]string{settings.CreatedByKey: settings.CreatedByPool}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewReducer(newBoxes()).Member(makeBox("m", v2, tc.change), nil)
			got := says{
				Pod: m.PodName(), Stamp: m.Stamp(), Created: m.Created(), Deleting: m.Deleting(),
				ByPool: m.CreatedByPool(), Metadata: m.Metadata(),
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// Whatever else a platform says of a member is said by it, too.
func TestWhatAPlatformSaysOfMembers(t *testing.T) {
	for name, tc := range map[string]struct {
		is         Description
		pool       string
		ready      time.Time
		named      bool
		annotation bool
	}{
		"a pool's":             {is: Description{MemberTraits: MemberTraits{Controller: freshness.Owner{Kind: freshness.OwnedByPool, Name: "p", UID: "u"}}}, pool: "p/u"},
		"a claim's":            {is: Description{MemberTraits: MemberTraits{Controller: freshness.Owner{Kind: freshness.OwnedByClaim, Name: "c", UID: "u"}}}, pool: "/"},
		"ready":                {is: Description{ReadySince: born}, pool: "/", ready: born},
		"names its scheduler":  {is: Description{MemberTraits: MemberTraits{Scheduler: "mine"}}, pool: "/", named: true},
		"its Pod by no key":    {is: Description{PodName: "elsewhere"}, pool: "/"},
		"its Pod by that key":  {is: Description{PodName: "elsewhere", PodNameKey: podNameKey}, pool: "/", annotation: true},
		"its Pod by no name":   {is: Description{PodNameKey: podNameKey}, pool: "/"},
		"its Pod by its own":   {is: Description{PodName: "m", PodNameKey: podNameKey}, pool: "/"},
		"nothing of all these": {pool: "/"},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewReducer(described{newBoxes(), tc.is}).Member(makeBox("m", v2), nil)
			pool, uid := m.Pool()
			if got := pool + "/" + string(uid); got != tc.pool {
				t.Errorf("Pool() = %s, want %s", got, tc.pool)
			}
			if got := m.ReadySince(); !got.Equal(tc.ready) {
				t.Errorf("ReadySince() = %s, want %s", got, tc.ready)
			}
			if got := m.NamesScheduler(); got != tc.named {
				t.Errorf("NamesScheduler() = %t, want %t", got, tc.named)
			}
			want := tc.is.PodName
			if want == "" {
				want = "m"
			}
			if got := m.PodName(); got != want {
				t.Errorf("PodName() = %q, want %q", got, want)
			}
			annotations := map[string]string(nil)
			if tc.annotation {
				annotations = map[string]string{podNameKey: tc.is.PodName}
			}
			if diff := cmp.Diff(annotations, m.Metadata().Annotations, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("annotations (-want,+got):\n%s", diff)
			}
		})
	}
}

// described says the same of every member.
type described struct {
	*boxes
	is Description
}

func (d described) DescribeMember(*unstructured.Unstructured) Description { return d.is }

// The content of a spec that nobody has written to is made once.
func TestContentsAreMadeOncePerGeneration(t *testing.T) {
	generation := func(g int64) changed { return func(u *unstructured.Unstructured) { u.SetGeneration(g) } }
	for name, tc := range map[string]struct {
		before, now *unstructured.Unstructured
		want        int
	}{
		"the first":      {nil, makeBox("m", v2), 1},
		"not written to": {makeBox("m", v2), makeBox("m", v2, set("8", "metadata", "resourceVersion")), 0},
		"written to":     {makeBox("m", v2), makeBox("m", v3, generation(2)), 1},
		"another one":    {makeBox("m", v2), makeBox("m", v3, set("uid-x", "metadata", "uid")), 1},
		"not counted":    {makeBox("m", v2, generation(0)), makeBox("m", v3, generation(0)), 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBoxes()
			r := NewReducer(b)
			var before *Member
			if tc.before != nil {
				before = r.Member(tc.before, nil)
			}
			b.computed = 0
			m := r.Member(tc.now, before)
			want, err := contentOfBox(tc.now)
			if err != nil {
				t.Fatal(err)
			}
			if got, kept := m.Content.Blueprint(); !kept || !got.Equal(want) || m.UID != tc.now.GetUID() || m.Name != tc.now.GetName() {
				t.Errorf("%s %s is built from %s (kept: %t), want %s", m.Name, m.UID, got.JSON(), kept, want.JSON())
			}
			if b.computed != tc.want {
				t.Errorf("made %d times, want %d", b.computed, tc.want)
			}
		})
	}
}

// What members have in common is kept once, and up to a bound.
func TestWhatMembersShare(t *testing.T) {
	r := NewReducer(newBoxes())
	one, two := r.Member(makeBox("a", v2), nil), r.Member(makeBox("b", v2), nil)
	other := r.Member(makeBox("a", v3), nil)
	if one.Traits != two.Traits || one.Traits == other.Traits {
		t.Errorf("a and b share: %t, and with another content: %t", one.Traits == two.Traits, one.Traits == other.Traits)
	}
	if _, kept := full(newBoxes()).Member(makeBox("a", v2), nil).Content.Blueprint(); kept {
		t.Error("a content is kept beyond the bound")
	}
	// What cannot be understood is nobody else's.
	for _, wrong := range []string{"first", "second"} {
		m := r.Member(makeBox(wrong, v2, set(wrong, "spec")), nil)
		if err := m.Content.unreadable; err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("the %s is not understood: %v", wrong, err)
		}
	}
}

func TestOwnKeys(t *testing.T) {
	long := strings.Repeat("x", maxValue)
	got := OwnKeys(map[string]string{
		"example.com/a": "1", "other.example.com/a": "2", settings.StampKey: "3", "plain": "4", "example.com/long": long, "example.com/longer": long + "x",
	}, "example.com")
	want := map[string]string{"example.com/a": "1", settings.StampKey: "3", "example.com/long": long}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("OwnKeys() (-want,+got):\n%s", diff)
	}
}

// However many owners a member has, its controller is one of those that are kept.
func TestFewOwners(t *testing.T) {
	owners := func(n int, last *bool) []metav1.OwnerReference {
		var out []metav1.OwnerReference
		for i := range n {
			out = append(out, metav1.OwnerReference{Name: fmt.Sprint(i)})
		}
		out[n-1].Controller = last
		return out
	}
	type refs = []metav1.OwnerReference
	tooMany := owners(maxOwners+5, ptr.To(true))
	for name, tc := range map[string]struct{ all, want refs }{
		"few":                       {owners(2, nil), owners(2, nil)},
		"as many as may be":         {owners(maxOwners, nil), owners(maxOwners, nil)},
		"one too many":              {owners(maxOwners+1, nil), owners(maxOwners, nil)},
		"the last is no controller": {owners(maxOwners+5, ptr.To(false)), owners(maxOwners, nil)},
		"the last controls it":      {tooMany, append(owners(maxOwners, nil), tooMany[maxOwners+4])},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, fewOwners(tc.all)); diff != "" {
				t.Errorf("fewOwners() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestADigestOfWhatIsNoJSON(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it has one")
		}
	}()
	Digest(func() {})
}
