package agentsandbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

var restarted = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// inspected is a pool with two revisions of its template, and what inspects it.
type inspected struct {
	pool, v1, v2, other *unstructured.Unstructured
	inspection          *platform.Inspection
	reducer             *platform.Reducer
}

func inspect(t testing.TB, restarts bool) *inspected {
	t.Helper()
	i := &inspected{
		reducer: platform.NewReducer(Objects{}),

		v1:    builders.MakeTemplate("ns", "python").Image("sandbox:v1").Obj(),
		v2:    builders.MakeTemplate("ns", "python").Image("sandbox:v2").Obj(),
		other: builders.MakeTemplate("ns", "other").Image("sandbox:v2").Obj(),
	}
	pool := builders.MakePool("ns", "python").Strategy("Recreate")
	if restarts {
		pool.Annotation("freshbind.dev/restarted-at", restarted.Format(time.RFC3339))
	}
	i.pool = pool.Obj()
	var err error
	if i.inspection, err = newPlatform(newStore(i.pool, i.v2), history{i.v2, i.v1}).Inspect(t.Context(), i.pool, i.v2); err != nil {
		t.Fatal(err)
	}
	return i
}

// asCached is what is found of a member, and of its Pod, as caches keep them.
func (i *inspected) asCached(t testing.TB, sandbox, pod *unstructured.Unstructured) (platform.Judgement, error) {
	t.Helper()
	m := i.reducer.Member(sandbox, nil)
	j, err := i.inspection.Member(t.Context(), m)
	if err != nil || pod == nil {
		return j, err
	}
	j, err = i.inspection.Pod(t.Context(), m, i.reducer.Pod(pod, nil), j)
	return j, err
}

// asStored is what is found of them when they are read in full.
func (i *inspected) asStored(sandbox, pod *unstructured.Unstructured) (platform.Judgement, error) {
	alone, err := i.inspection.Object(sandbox, nil)
	if err != nil {
		return platform.Judgement{}, err
	}
	v, err := i.inspection.Object(sandbox, pod)
	// What a member is built from is said of it, not of its Pod.
	return platform.Judgement{Class: freshness.ClassOf(v), Found: alone.Found}, err
}

func TestInspectWithoutATemplate(t *testing.T) {
	i := inspect(t, false)
	p := newPlatform(newStore(), history{i.v1})
	if inspection, err := p.Inspect(t.Context(), i.pool, nil); err != nil || inspection.Revision() != "" {
		t.Errorf("the revision in force is %v, error %v", inspection, err)
	}
	if inspection, err := p.Inspect(t.Context(), i.pool, builders.TemplateFrom(i.v2).Unset("spec", "podTemplate").Obj()); err == nil {
		t.Errorf("of what nobody understands: %v", inspection)
	}
}

// A member that caches keep some of is what it is when all of it is read.
func TestMembersAreTheSameHoweverTheyAreRead(t *testing.T) {
	i := inspect(t, false)
	claim := builders.MakeClaim("ns", "c").Obj()
	member := func() *builders.Sandbox { return builders.MakeMember(i.pool, i.v2).Name("m").UID("m").Generation(1) }
	pod := func() *builders.Pod { return builders.MakePod(member().Obj()).Stored("node-1") }
	cases := map[string]struct {
		sandbox, pod *unstructured.Unstructured
		want         freshness.Class
	}{
		"current":             {member().Obj(), pod().Obj(), freshness.Current},
		"no pod":              {member().Obj(), nil, freshness.Current},
		"older":               {builders.MakeMember(i.pool, i.v1).Name("m").Obj(), nil, freshness.Stale},
		"unknown":             {member().PodSpec("kata", "runtimeClassName").Obj(), nil, freshness.Unknown},
		"of another template": {builders.MakeMember(i.pool, i.other).Name("m").Obj(), nil, freshness.Former},
		"used":                {member().Annotation(settings.BoundToKey, "c").Obj(), nil, freshness.Unusable},
		"deleting":            {member().Deleting(restarted).Obj(), nil, freshness.Unusable},
		"pod, older image":    {member().Obj(), builders.MakePod(builders.MakeMember(i.pool, i.v1).Name("m").UID("m").Obj()).Stored("node-1").Obj(), freshness.Stale},
		"pod, debugged":       {member().Obj(), pod().Set([]any{map[string]any{"name": "d", "image": "b"}}, "spec", "ephemeralContainers").Obj(), freshness.Unusable},
		"older, and debugged": {builders.MakeMember(i.pool, i.v1).Name("m").UID("m").Obj(), pod().Set([]any{map[string]any{"name": "d", "image": "b"}}, "spec", "ephemeralContainers").Obj(), freshness.Unusable},
		"pod of another":      {member().Obj(), builders.MakePod(builders.MakeMember(i.pool, i.v1).Name("m").UID("x").Obj()).Obj(), freshness.Current},
		"in another pod":      {member().PodName("other").Obj(), nil, freshness.Unusable},
		"a claim's":           {builders.Bound(member().Obj(), claim, i.v2).Obj(), nil, freshness.Unusable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cached, err := i.asCached(t, tc.sandbox, tc.pod)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := i.asStored(tc.sandbox, tc.pod)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(stored, cached); diff != "" || stored.Class != tc.want {
				t.Errorf("it is %s, want %s; read in full, and as it is cached (-,+):\n%s", stored.Class, tc.want, diff)
			}
		})
	}
}

// choice takes one of n from what a fuzzer made up.
func choice(data *[]byte, n int) int {
	if len(*data) == 0 {
		return 0
	}
	c := int((*data)[0]) % n
	*data = (*data)[1:]
	return c
}

// madeUp are a member and its Pod, nil for none.
func (i *inspected) madeUp(data *[]byte) (sandbox, pod *unstructured.Unstructured) {
	template := []*unstructured.Unstructured{i.v2, i.v2, i.v1, i.other}[choice(data, 4)]
	b := builders.MakeMember(i.pool, template).Name(fmt.Sprintf("m%d", choice(data, 2))).UID(fmt.Sprintf("uid-%d", choice(data, 3))).
		Generation(int64(choice(data, 3))).Created(restarted.Add(time.Duration(choice(data, 3)-1) * time.Second))
	for range choice(data, 4) {
		switch choice(data, 8) {
		case 0:
			b.PodSpec([]string{"kata", "gvisor"}[choice(data, 2)], "runtimeClassName")
		case 1:
			b.Image([]string{"sandbox:v1", "sandbox:v2", "other"}[choice(data, 3)])
		case 2:
			b.Annotation(settings.BoundToKey, "c")
		case 3:
			b.Deleting(restarted)
		case 4:
			b.NoLabel(TemplateRefHashLabel)
		case 5:
			b.PodName("elsewhere")
		case 6:
			b.Label(podTemplateHashLabel, []string{"", "x"}[choice(data, 2)])
		case 7:
			b.Annotation(templateRefAnnotation, []string{"", "other", "python"}[choice(data, 3)])
		}
	}
	sandbox = b.Obj()
	if choice(data, 3) == 0 {
		return sandbox, nil
	}
	of := sandbox
	if choice(data, 3) == 0 {
		of = builders.SandboxFrom(sandbox).Image([]string{"sandbox:v1", "other"}[choice(data, 2)]).Obj()
	}
	p := builders.MakePod(of).Generation(int64(choice(data, 3))).Stored("node-1")
	switch choice(data, 4) {
	case 0:
		p.Set([]any{map[string]any{"name": "d", "image": "b"}}, "spec", "ephemeralContainers")
	case 1:
		p.Owners(builders.ControllerRef(builders.SandboxFrom(sandbox).UID("another").Obj()))
	}
	return sandbox, p.Obj()
}

func FuzzMembersAreTheSameHoweverTheyAreRead(f *testing.F) {
	f.Add([]byte{0})
	// Older and debugged; unlike all that is known, and in a Pod of an older image;
	// from before the restart, and in a Pod of an image that nobody knows.
	f.Add([]byte("000000010"))
	f.Add([]byte("0000000101020"))
	f.Add([]byte("020000010102"))
	f.Add([]byte{1, 0, 0, 1, 1, 3, 1, 2, 0, 1, 0, 1, 1, 0})
	f.Add([]byte{2, 1, 1, 2, 0, 2, 7, 1, 4, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 2, 0, 1, 0, 1, 2, 2, 2, 3, 0, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		i := inspect(t, choice(&data, 2) == 0)
		// Several in a row: what was found of one must not be said of another.
		for n := 0; n < 12 && len(data) > 0; n++ {
			sandbox, pod := i.madeUp(&data)
			cached, err := i.asCached(t, sandbox, pod)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := i.asStored(sandbox, pod)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(stored, cached); diff != "" {
				t.Errorf("member %d, read in full, and as it is cached (-,+):\n%s", n, diff)
			}
		}
	})
}

// However many members differ from each other, what is kept of them is bounded, and
// those that are read again are what they are.
func TestWhatIsKeptOfMembersIsBounded(t *testing.T) {
	const size, count = 1 << 20, 12
	pool := builders.MakePool("ns", "python").Strategy("Recreate").Obj()
	template := builders.MakeTemplate("ns", "python").Obj()
	objs := []*unstructured.Unstructured{pool, template}
	for i := range count {
		objs = append(objs, builders.MakeMember(pool, template).Name(fmt.Sprintf("m%d", i)).PodSpec(fmt.Sprint(i)+strings.Repeat("x", size), "hostname").Obj())
	}
	stored := newStore(objs...)
	inspection, err := newPlatform(stored, history{template}).Inspect(t.Context(), pool, template)
	if err != nil {
		t.Fatal(err)
	}
	stored.read = nil
	reducer := platform.NewReducer(Objects{})
	var all []*platform.Member
	kept, want := 0, []string(nil)
	for _, sandbox := range objs[2:] {
		m := reducer.Member(sandbox, nil)
		all = append(all, m)
		content, isKept := m.Content.Blueprint()
		if !isKept {
			want = append(want, "sandbox/"+m.Name)
			continue
		}
		kept += len(content.JSON())
	}
	if kept > platform.MaxContents || kept < platform.MaxContents-2*size || len(want) == 0 {
		t.Errorf("%d bytes are kept and %d members are not, want up to %d bytes", kept, len(want), platform.MaxContents)
	}
	for _, m := range all {
		j, err := inspection.Member(t.Context(), m)
		if err != nil || j.Class != freshness.Unknown {
			t.Errorf("member %s is %s, error %v, want %s", m.Name, j.Class, err, freshness.Unknown)
		}
	}
	if diff := cmp.Diff(want, stored.read); diff != "" {
		t.Errorf("read again (-want,+got):\n%s", diff)
	}
}

// Members are compared again when anything that they are compared with has changed,
// and only then.
func TestInspectionsThatSayTheSame(t *testing.T) {
	v1 := builders.MakeTemplate("ns", "python").Image("sandbox:v1").Obj()
	v2 := builders.MakeTemplate("ns", "python").Image("sandbox:v2").Obj()
	renamed := builders.TemplateFrom(v2).Name("other").Obj()
	pool := func() *builders.Pool { return builders.MakePool("ns", "python").Strategy("RollingUpdate") }
	cases := map[string]struct {
		pool, template *unstructured.Unstructured
		known          history
		want           bool
	}{
		"nothing changed":            {pool().Obj(), v2, history{v2, v1}, true},
		"labels of the pool":         {pool().Label("team", "a").Obj(), v2, history{v2, v1}, true},
		"what is admitted":           {pool().Annotation(settings.AdmitKey, "any").Obj(), v2, history{v2, v1}, true},
		"a restart":                  {pool().Annotation("freshbind.dev/restarted-at", "2026-01-01T12:00:00Z").Obj(), v2, history{v2, v1}, false},
		"other paths are injected":   {pool().Annotation(settings.InjectedPathsKey, "podTemplate.spec.hostname").Obj(), v2, history{v2, v1}, false},
		"an edit":                    {pool().Obj(), v1, history{v2, v1}, false},
		"a template of another name": {pool().Obj(), renamed, history{v2, v1}, false},
		"another history":            {pool().Obj(), v2, history{v2, builders.TemplateFrom(v1).Image("sandbox:v0").Obj()}, false},
		"less history":               {pool().Obj(), v2, history{v2}, false},
	}
	inspect := func(t *testing.T, pool, template *unstructured.Unstructured, known history) *platform.Inspection {
		t.Helper()
		i, err := newPlatform(newStore(pool, template), known).Inspect(t.Context(), pool, template)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, is := inspect(t, pool().Obj(), v2, history{v2, v1}), inspect(t, tc.pool, tc.template, tc.known)
			if got := is.Same(before); got != tc.want {
				t.Errorf("the same: %t, want %t", got, tc.want)
			}
		})
	}
}

// Most events of Pods are about nothing that is looked at, and cost no look at a pool.
func TestPodsThatAreTheSameButForTheirVersions(t *testing.T) {
	pool, template := builders.MakePool("ns", "python").Obj(), builders.MakeTemplate("ns", "python").Obj()
	pod := func() *builders.Pod {
		return builders.MakePod(builders.MakeMember(pool, template).Name("m").UID("m").Obj()).UID("p").Stored("node-1")
	}
	other := builders.MakePod(builders.MakeMember(pool, builders.TemplateFrom(template).Image("other").Obj()).Name("m").UID("m").Obj()).UID("p").Stored("node-1")
	cases := map[string]struct {
		pod  *unstructured.Unstructured
		want bool
	}{
		"another version":          {pod().RV(77).Obj(), true},
		"another phase":            {pod().Phase("Pending").Obj(), true},
		"another one of that name": {pod().UID("q").Obj(), false},
		"another image":            {other.Obj(), false},
		"another node":             {pod().Set("node-2", "spec", "nodeName").Obj(), false},
		"another stamp":            {pod().Label(settings.StampKey, "v1-x").Obj(), false},
		"deleting":                 {pod().Deleting(restarted).Obj(), false},
		"nobody's":                 {pod().Owners().Obj(), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := platform.NewReducer(Objects{})
			before := r.Pod(pod().Obj(), nil)
			if got := r.Pod(tc.pod, before).SameButVersion(before); got != tc.want {
				t.Errorf("the same: %t, want %t", got, tc.want)
			}
		})
	}
}
