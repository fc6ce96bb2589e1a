package kruise

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// Whoever is said to have a Sandbox that was not theirs has taken it, whatever else it says,
// before and after, of somebody having it.
func TestWhatIsNotOvertaken(t *testing.T) {
	c := newCluster()
	mine := c.written
	owner := func(id string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { set(u, id, "metadata", "annotations", ownerAnnotation) }
	}
	changed := func(of *unstructured.Unstructured, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		out := of.DeepCopy()
		for _, change := range changes {
			change(out)
		}
		return out
	}
	pooled := func(u *unstructured.Unstructured) { u.SetOwnerReferences(c.member.GetOwnerReferences()) }
	for name, tc := range map[string]struct {
		old, obj *unstructured.Unstructured
		want     bool
	}{
		"overtaken":                   {mine, changed(mine, owner("uid-d")), true},
		"back in its pool":            {mine, changed(mine, owner("uid-d"), pooled), true},
		"not claimed before":          {changed(mine, labelled(claimedLabel, "false")), changed(mine, owner("uid-d")), true},
		"not claimed any more":        {mine, changed(mine, owner("uid-d"), labelled(claimedLabel, "false")), true},
		"back in its pool, as it was": {mine, changed(mine, pooled), false},
		"its owner is gone":           {mine, changed(mine, owner("")), false},
		"it had no owner noted":       {changed(mine, owner("")), mine, true},
	} {
		if w, _ := (&Platform{}).Classify(admissionv1.Update, tc.old, tc.obj); (w.Operation == freshness.Bind) != tc.want {
			t.Errorf("%s: it is %q, want a bind: %t", name, w.Operation, tc.want)
		}
	}
}

func TestBesides(t *testing.T) {
	ref := func(kind, group string, controls *bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: group + "/v1", Kind: kind, Name: "x", UID: "uid-x", Controller: controls}
	}
	for name, tc := range map[string]struct {
		ref  metav1.OwnerReference
		want freshness.OwnerKind
	}{
		"a SandboxSet":           {ref(kindSet, Group, nil), freshness.OwnedByPool},
		"one that controls it":   {ref(kindSet, Group, ptr.To(true)), freshness.OwnedByPool},
		"another owner":          {ref("Job", "batch", nil), ""},
		"one that does not":      {ref("Job", "batch", ptr.To(false)), ""},
		"another controller":     {ref("Job", "batch", ptr.To(true)), freshness.OwnedByAnother},
		"a word of another kind": {ref(kindSet, "example.com", ptr.To(true)), freshness.OwnedByAnother},
	} {
		t.Run(name, func(t *testing.T) {
			m := newCluster().member
			m.SetOwnerReferences([]metav1.OwnerReference{tc.ref})
			var want []freshness.Owner
			if tc.want != "" {
				want = []freshness.Owner{{Kind: tc.want, Name: "x", UID: "uid-x"}}
			}
			if diff := cmp.Diff(want, besides(m)); diff != "" {
				t.Errorf("besides() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestWhoHasASandbox(t *testing.T) {
	c := newCluster()
	for name, tc := range map[string]struct {
		sandbox *unstructured.Unstructured
		want    freshness.Owner
	}{
		"a claim":              {c.written, freshness.Owner{Kind: freshness.OwnedByClaim, Name: "c", UID: "uid-c"}},
		"a user":               {takenFor(c.member, "user", ""), freshness.Owner{Kind: freshness.OwnedByClaim, Name: "user", UID: "user"}},
		"nobody":               {newCluster().member, freshness.Owner{}},
		"it is to be scaled":   {takenFor(c.member, scaleDown, "c"), freshness.Owner{}},
		"nobody, by its label": {takenFor(c.member, "", "c"), freshness.Owner{}},
	} {
		if got := claimOf(tc.sandbox); got != tc.want {
			t.Errorf("%s: claimOf() = %+v, want %+v", name, got, tc.want)
		}
	}
	if is := (Objects{}).DescribeMember(c.written); is.Controller.UID != "uid-c" {
		t.Errorf("what is taken is controlled by %+v", is.Controller)
	}
	if got := (Objects{}).MemberOf(&unstructured.Unstructured{Object: map[string]any{}}); got != "" {
		t.Errorf("a Pod of nobody is that of %q", got)
	}
}

func TestWasUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*unstructured.Unstructured)
		want   bool
	}{
		"never":        {func(*unstructured.Unstructured) {}, false},
		"by its owner": {func(u *unstructured.Unstructured) { set(u, "uid-c", "metadata", "annotations", ownerAnnotation) }, true},
		"by its label": {labelled(claimedLabel, yes), true},
		"by how often": {func(u *unstructured.Unstructured) { set(u, int64(1), "status", "recycledCount") }, true},
		"by what was left there": {func(u *unstructured.Unstructured) {
			set(u, "uid-c", "spec", "template", "metadata", "labels", ownerLabel)
		}, true},
	} {
		m := newCluster().member
		tc.change(m)
		if got := wasUsed(m); got != tc.want {
			t.Errorf("%s: wasUsed() = %t, want %t", name, got, tc.want)
		}
	}
}

// Without a hint there is no object of a claim, and none of anybody for what nobody takes.
func TestWhoWants(t *testing.T) {
	c := newCluster()
	hinted, silent := c.written, takenFor(newCluster().member, "user", "")
	somebody, nobody := freshness.Owner{Kind: freshness.OwnedByClaim, Name: "c", UID: "uid-c"}, freshness.Owner{}
	for name, tc := range map[string]struct {
		op     freshness.Operation
		new    *unstructured.Unstructured
		claim  freshness.Owner
		stored stored
		want   *freshness.Claim
	}{
		"a claim":                       {freshness.Bind, hinted, somebody, stored{claim: c.claim()}, &freshness.Claim{UID: "uid-c", Pool: "pool"}},
		"a claim that is gone":          {freshness.Bind, hinted, somebody, stored{}, nil},
		"a user":                        {freshness.Bind, silent, somebody, stored{}, &freshness.Claim{UID: "uid-c", AnyPool: true}},
		"nobody binds it":               {freshness.Bind, silent, nobody, stored{}, nil},
		"nobody binds it, with a hint":  {freshness.Bind, hinted, nobody, stored{}, nil},
		"nobody starts it":              {freshness.ColdStart, silent, nobody, stored{}, &freshness.Claim{AnyPool: true}},
		"nobody starts it, with a hint": {freshness.ColdStart, hinted, nobody, stored{}, &freshness.Claim{AnyPool: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.stored.wants(platform.Write{Operation: tc.op, New: tc.new, Claim: tc.claim})); diff != "" {
				t.Errorf("wants() (-want,+got):\n%s", diff)
			}
		})
	}
}

// A null takes a label away, and none leaves it alone.
func TestPatchesSayNoMoreThanTheyChange(t *testing.T) {
	hidden, bare := newCluster().member, newCluster().member
	labelled(templateLabel, hiddenTemplate)(hidden)
	labelled(templateLabel, "")(bare)
	labelled(poolLabel, "")(hidden)
	o := Objects{}
	const version = `"resourceVersion":"","uid":"uid-m"`
	for name, tc := range map[string]struct {
		got  []byte
		want string
	}{
		"hidden already": {o.Hide(hidden), `{"metadata":{` + version + `}}`},
		"no label yet":   {o.Hide(bare), `{"metadata":{"annotations":{"` + settings.ShownAsKey + `":null},"labels":{"` + templateLabel + `":"` + hiddenTemplate + `"},` + version + `}}`},
		"nothing known":  {o.Show(hidden), `{"metadata":{"annotations":{"` + settings.ShownAsKey + `":null},"labels":{"` + templateLabel + `":null},` + version + `}}`},
	} {
		if diff := cmp.Diff(tc.want, string(tc.got)); diff != "" {
			t.Errorf("%s (-want,+got):\n%s", name, diff)
		}
	}
}

func TestLaunchType(t *testing.T) {
	c := newCluster()
	for want, sandbox := range map[string]*unstructured.Unstructured{"warm": c.written, "cold": func() *unstructured.Unstructured {
		out := c.written.DeepCopy()
		labelled(hashLabel, "")(out)
		return out
	}()} {
		if got := (Commands{}).LaunchType(sandbox, c.claim()); got != want {
			t.Errorf("LaunchType() = %s, want %s", got, want)
		}
	}
}

func TestVolumesOf(t *testing.T) {
	m := newCluster().member
	set(m, []any{map[string]any{"metadata": map[string]any{"name": "data"}}}, "spec", "volumeClaimTemplates")
	if got := volumesOf(m); len(got) != 1 || got[0] != "data" || volumesOf(nil) != nil {
		t.Errorf("volumesOf() = %v, and of nothing %v", got, volumesOf(nil))
	}
}
