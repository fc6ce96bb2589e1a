package platform

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/revision"
)

// A member is the same whether its content is kept or read again, and is not read where
// that is not needed.
func TestInspectionOfMembers(t *testing.T) {
	hash := func(image string) string { return content(t, image).Hash() }
	other := "sandbox:other"
	for name, tc := range map[string]struct {
		member *unstructured.Unstructured
		want   Judgement
		// reads is how often it is read where its content is not kept.
		reads int
	}{
		"current":             {makeBox("m", v2), Judgement{freshness.Current, hash(v2)}, 0},
		"older":               {makeBox("m", v1), Judgement{freshness.Stale, hash(v1)}, 0},
		"unknown":             {makeBox("m", other), Judgement{freshness.Unknown, hash(other)}, 1},
		"of another template": {makeBox("m", v2, annotated(templateKey, "u")), Judgement{Class: freshness.Former}, 0},
		"deleting":            {makeBox("m", v2, deleting), Judgement{Class: freshness.Unusable}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBoxes(tc.member)
			i := b.inspection(t, v2)
			for kept, r := range map[bool]*Reducer{true: NewReducer(b), false: full(b)} {
				b.read = 0
				want := tc.reads
				if kept {
					want = 0
				}
				m := r.Member(tc.member, nil)
				for range 2 {
					if got, err := i.Member(t.Context(), m); err != nil || got.Class != tc.want.Class || tc.want.Found != "" && got.Found != tc.want.Found {
						t.Errorf("kept %t: it is %+v, error %v, want %+v", kept, got, err, tc.want)
					}
				}
				if b.read != want {
					t.Errorf("kept %t: read %d times, want %d", kept, b.read, want)
				}
			}
		})
	}
}

// What was found by one inspection is not said by another, nor of another member.
func TestWhatAnInspectionFoundIsItsOwn(t *testing.T) {
	b := newBoxes()
	r := NewReducer(b)
	m := r.Member(makeBox("m", v2), nil)
	for image, want := range map[string]freshness.Class{v2: freshness.Current, v3: freshness.Unknown} {
		if got, err := b.inspection(t, image).Member(t.Context(), m); err != nil || got.Class != want {
			t.Errorf("beside %s: %s, error %v, want %s", image, got.Class, err, want)
		}
	}
	restarted := b.inspection(t, v2, func(s *freshness.Snapshot) { s.Pool.Restarted = born.Add(time.Minute) })
	if got := restarted.Restarted(); !got.Equal(born.Add(time.Minute)) {
		t.Errorf("restarted at %s", got)
	}
	for created, want := range map[string]freshness.Class{"2026-01-01T12:00:30Z": freshness.Stale, "2026-01-01T12:01:30Z": freshness.Current} {
		m := r.Member(makeBox("m", v2, set(created, "metadata", "creationTimestamp")), nil)
		if got, err := restarted.Member(t.Context(), m); err != nil || got.Class != want {
			t.Errorf("created at %s: %s, error %v, want %s", created, got.Class, err, want)
		}
	}
	i := b.inspection(t, v2)
	for pod, want := range map[string]freshness.Class{"m": freshness.Current, "elsewhere": freshness.Unusable} {
		m := r.Member(makeBox("m", v2, annotated(podNameKey, pod)), nil)
		if got, err := i.Member(t.Context(), m); err != nil || got.Class != want {
			t.Errorf("in pod %s: %s, error %v, want %s", pod, got.Class, err, want)
		}
	}
}

// Members that are alike are read once, whoever else is looked at in between.
func TestMembersThatAreAlikeAreReadOnce(t *testing.T) {
	var all []*unstructured.Unstructured
	for n, image := range []string{"a", "b", "a"} {
		all = append(all, makeBox(fmt.Sprint("m", n), image))
	}
	b := newBoxes(all...)
	r, i := full(b), b.inspection(t, v2)
	var members []*Member
	for _, box := range all {
		m := r.Member(box, nil)
		members = append(members, m)
		if got, err := i.Member(t.Context(), m); err != nil || got.Class != freshness.Unknown {
			t.Errorf("%s: %+v, error %v", box.GetName(), got, err)
		}
	}
	if b.read != 2 {
		t.Errorf("%d members are read, want 2", b.read)
	}
	b.read = 0
	for n, m := range members {
		pod := r.Pod(makePod(m.Name, v1), nil)
		if got, err := i.Pod(t.Context(), m, pod, Judgement{Class: freshness.Unknown}); err != nil || got.Class != freshness.Unknown {
			t.Errorf("%s with its Pod: %+v, error %v", all[n].GetName(), got, err)
		}
	}
	if b.read != 2 {
		t.Errorf("%d members are read for their Pods, want 2", b.read)
	}
}

func TestWhatIsFoundOfMembersIsBounded(t *testing.T) {
	b := newBoxes()
	r, i := NewReducer(b), b.inspection(t, v2)
	for n := range maxJudged + 10 {
		m := r.Member(makeBox("m", v2, set(fmt.Sprint(n), "metadata", "labels", boxDomain+"/n")), nil)
		j, err := i.Member(t.Context(), m)
		if err == nil {
			_, err = i.Pod(t.Context(), m, r.Pod(makePod("m", v2), nil), j)
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(i.judged) > maxJudged || len(i.runs) > maxJudged {
			t.Fatalf("after %d members %d and %d are remembered", n+1, len(i.judged), len(i.runs))
		}
	}
}

// What is not kept can be another one by now, or gone, and its read can fail.
func TestMembersThatAreReadAgain(t *testing.T) {
	member := makeBox("m", "sandbox:other")
	failed := newBoxes(member)
	failed.failed = errAway
	for name, tc := range map[string]struct {
		boxes  *boxes
		kept   bool
		member *unstructured.Unstructured
		want   freshness.Class
		// err is part of the error, "" for none.
		err string
	}{
		"as it was":            {newBoxes(member), false, member, freshness.Unknown, ""},
		"another one by now":   {newBoxes(makeBox("m", v2)), false, member, freshness.Unclassified, ""},
		"gone":                 {newBoxes(), false, member, freshness.Unclassified, ""},
		"cannot be read":       {failed, false, member, "", errAway.Error()},
		"no longer understood": {newBoxes(makeBox("m", v2, nonsense)), false, member, "", "spec"},
		"never understood":     {newBoxes(member), true, makeBox("m", v2, nonsense), "", "spec"},
	} {
		t.Run(name, func(t *testing.T) {
			r, i := full(tc.boxes), tc.boxes.inspection(t, v2)
			if tc.kept {
				r = NewReducer(tc.boxes)
			}
			m := r.Member(tc.member, nil)
			j, err := i.Member(t.Context(), m)
			checkFound(t, "Member()", j.Class, err, tc.want, tc.err)
			j, err = i.Pod(t.Context(), m, r.Pod(makePod("m", v2, debugged), nil), Judgement{Class: freshness.Current})
			want := tc.want
			if want == freshness.Unknown {
				want = freshness.Unusable
			}
			checkFound(t, "Pod()", j.Class, err, want, tc.err)
			differences, err := i.Differences(t.Context(), m)
			checkFound(t, "Differences()", "", err, "", tc.err)
			if found := len(differences) > 0; found != (tc.want == freshness.Unknown) {
				t.Errorf("it differs: %v", differences)
			}
		})
	}
}

func checkFound(t *testing.T, what string, got freshness.Class, err error, want freshness.Class, wantErr string) {
	t.Helper()
	switch {
	case wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)):
		t.Errorf("%s: error %v, want one that says %s", what, err, wantErr)
	case wantErr == "" && (err != nil || got != want):
		t.Errorf("%s = %s, error %v, want %s", what, got, err, want)
	}
}

func TestInspectionOfPods(t *testing.T) {
	long := "sandbox:" + strings.Repeat("x", maxImages)
	gone := func(s *freshness.Snapshot) { s.Template = nil }
	same := func(*freshness.Snapshot) {}
	for name, tc := range map[string]struct {
		facts       func(*freshness.Snapshot)
		pod         *unstructured.Unstructured
		alone, want freshness.Class
	}{
		"none":                           {same, nil, freshness.Current, freshness.Current},
		"as its member":                  {same, makePod("m", v2), freshness.Current, freshness.Current},
		"of an older image":              {same, makePod("m", v1), freshness.Current, freshness.Stale},
		"another member's":               {same, makePod("m", v1, func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) }), freshness.Current, freshness.Current},
		"debugged":                       {same, makePod("m", v2, debugged), freshness.Current, freshness.Unusable},
		"of too long images":             {same, makePod("m", long), freshness.Current, freshness.Current},
		"of too long images, debugged":   {same, makePod("m", long, debugged), freshness.Current, freshness.Unusable},
		"not understood":                 {same, makePod("m", v1, nonsense), freshness.Current, freshness.Current},
		"no template, debugged":          {gone, makePod("m", v2, debugged), freshness.Current, freshness.Current},
		"nobody knows its member's kind": {same, makePod("m", v2, debugged), freshness.Unclassified, freshness.Unclassified},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBoxes()
			r := NewReducer(b)
			m := r.Member(makeBox("m", v2), nil)
			var pod *MemberPod
			if tc.pod != nil {
				pod = r.Pod(tc.pod, nil)
			}
			got, err := b.inspection(t, v2, tc.facts).Pod(t.Context(), m, pod, Judgement{tc.alone, "v1-alone"})
			if err != nil || got != (Judgement{tc.want, "v1-alone"}) {
				t.Errorf("Pod() = %+v, error %v, want %s as it was found alone", got, err, tc.want)
			}
		})
	}
}

// Of a member that refers to a template its Pod alone tells what it is built from, all of
// it where that is kept, and its images elsewhere.
func TestInspectionOfReferences(t *testing.T) {
	hash := func(pod *unstructured.Unstructured) string {
		own, err := ReadPod(pod)
		if err != nil {
			t.Fatal(err)
		}
		return own.Content.Hash()
	}
	refers := makeBox("m", v2, annotated(refersKey, "t"), set(map[string]any{}, "spec"))
	hostname := set("odd", "spec", "hostname")
	gone := func(s *freshness.Snapshot) { s.Template = nil }
	same := func(*freshness.Snapshot) {}
	inForce, older, unseen := Judgement{freshness.Current, content(t, v2).Hash()}, Judgement{freshness.Stale, content(t, v1).Hash()}, Judgement{Class: freshness.Unclassified}
	for name, tc := range map[string]struct {
		facts func(*freshness.Snapshot)
		// full: there is no room for contents.
		full        bool
		member, pod *unstructured.Unstructured
		want        Judgement
	}{
		"no Pod":                        {same, false, refers, nil, unseen},
		"another's":                     {same, false, refers, makePod("m", v2, nobodys), unseen},
		"not understood":                {same, false, refers, makePod("m", v2, nonsense), unseen},
		"as in force":                   {same, false, refers, makePod("m", v2), inForce},
		"older":                         {same, false, refers, makePod("m", v1), older},
		"edited":                        {same, false, refers, makePod("m", v2, hostname), Judgement{freshness.Unknown, hash(makePod("m", v2, hostname))}},
		"placed by whoever held it":     {same, false, refers, makePod("m", v2, edited, set("a", "spec", "nodeSelector", "zone")), inForce},
		"debugged":                      {same, false, refers, makePod("m", v2, debugged), Judgement{Class: freshness.Unusable}},
		"as in force, by its images":    {same, true, refers, makePod("m", v2), Judgement{Class: freshness.Current}},
		"older, by its images":          {same, true, refers, makePod("m", v1), older},
		"no template":                   {gone, false, refers, makePod("m", v2), unseen},
		"of another template, no Pod":   {same, false, makeBox("m", v2, annotated(refersKey, "t"), annotated(templateKey, "u")), nil, Judgement{Class: freshness.Former}},
		"it says all itself":            {same, false, makeBox("m", v2), makePod("m", v2, edited, hostname), inForce},
		"it says all itself, and older": {same, false, makeBox("m", v1), makePod("m", v2), older},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBoxes(tc.member)
			r := NewReducer(referring{b})
			if tc.full {
				r.kept.Store(MaxContents)
			}
			i := b.inspection(t, v2, tc.facts)
			m := r.Member(tc.member, nil)
			alone, err := i.Member(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			var pod *MemberPod
			if tc.pod != nil {
				pod = r.Pod(tc.pod, nil)
			}
			for range 2 {
				if got, err := i.Pod(t.Context(), m, pod, alone); err != nil || got != tc.want {
					t.Errorf("Pod() = %+v, error %v, want %+v", got, err, tc.want)
				}
			}
		})
	}
}

// How often a Pod was written to matters where all of it is compared.
func TestWhatAPodShows(t *testing.T) {
	r := NewReducer(referring{newBoxes()})
	m := r.Member(makeBox("m", v2, annotated(refersKey, "t")), nil)
	for want, pod := range map[int64]*unstructured.Unstructured{1: makePod("m", v2), 2: makePod("m", v2, edited)} {
		if got := r.Pod(pod, nil).shows(m); got == nil || !got.Whole || got.Generation != want {
			t.Errorf("it shows %+v, want all of generation %d", got, want)
		}
	}
	if a, b := r.Pod(makePod("m", v2), nil), r.Pod(makePod("m", v2, set("odd", "spec", "hostname")), nil); a.SameButVersion(b) {
		t.Error("Pods that run different things are the same")
	}
}

func TestInspectionOfObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		member, pod *unstructured.Unstructured
		want        freshness.Reason
		wantErr     bool
	}{
		"alone":                     {makeBox("m", v2), nil, freshness.Fresh, false},
		"with its Pod":              {makeBox("m", v2), makePod("m", v2), freshness.Fresh, false},
		"in a Pod that is debugged": {makeBox("m", v2), makePod("m", v2, debugged), freshness.PodModified, false},
		"not understood":            {makeBox("m", v2, nonsense), nil, "", true},
		"in a Pod that is not":      {makeBox("m", v2), makePod("m", v2, nonsense), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := newBoxes().inspection(t, v2).Object(tc.member, tc.pod)
			if v.Reason != tc.want || (err != nil) != tc.wantErr {
				t.Errorf("Object() = %s, error %v, want %s, error %t", v.Reason, err, tc.want, tc.wantErr)
			}
		})
	}
}

// What takes too long to compare is not decided.
func TestInspectionsAreBounded(t *testing.T) {
	heavy := func(value string) revision.Blueprint {
		env := make([]any, freshness.MaxWork/2+1)
		for i := range env {
			env[i] = map[string]any{"name": fmt.Sprintf("V%05d", i), "value": value}
		}
		b, err := revision.FromPodSpec(map[string]any{"containers": []any{map[string]any{"name": "c", "image": v2, "env": env}}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := newBoxes()
	r := NewReducer(b)
	m := r.Member(makeBox("m", v2), nil)
	mine := heavy("mine")
	m.Content.blueprint = &mine
	i := b.inspection(t, v2, func(s *freshness.Snapshot) { s.Template.Content = heavy("live") })
	if j, err := i.Member(t.Context(), m); !errors.Is(err, revision.ErrBudget) {
		t.Errorf("Member() = %+v, error %v", j, err)
	}
	if j, err := i.Pod(t.Context(), m, r.Pod(makePod("m", v2), nil), Judgement{Class: freshness.Current}); !errors.Is(err, revision.ErrBudget) {
		t.Errorf("Pod() = %+v, error %v", j, err)
	}
}

func TestInspectionOfWhatHasNoTemplate(t *testing.T) {
	b := newBoxes()
	m := NewReducer(b).Member(makeBox("m", v2), nil)
	i := b.inspection(t, v2)
	if got := i.Revision(); got != content(t, v2).Hash() || i.Strategy() != freshness.Recreate {
		t.Errorf("revision %q, strategy %s", got, i.Strategy())
	}
	if diff, err := b.inspection(t, v3).Differences(t.Context(), m); err != nil || len(diff) != 1 || diff[0].Root != "podTemplate.spec.containers[name=c].image" {
		t.Errorf("it differs: %v, error %v", diff, err)
	}
	without := b.inspection(t, v2, func(s *freshness.Snapshot) { s.Template = nil })
	if diff, err := without.Differences(t.Context(), m); err != nil || len(diff) > 0 || without.Revision() != "" {
		t.Errorf("it differs from nothing, whose revision is %q: %v, error %v", without.Revision(), diff, err)
	}
	b.stored["m"] = makeBox("m", v2)
	for _, member := range []*Member{m, full(b).Member(makeBox("m", v2), nil)} {
		if j, err := without.Member(t.Context(), member); err != nil || j.Class != freshness.Unclassified {
			t.Errorf("it is %+v, error %v", j, err)
		}
	}
}

func TestSameInspections(t *testing.T) {
	b := newBoxes()
	of := func(changes ...func(*freshness.Snapshot)) *Inspection { return b.inspection(t, v2, changes...) }
	noTemplate := func(s *freshness.Snapshot) { s.Template = nil }
	injected := NewInspection(b, inForce(t, v2), "podTemplate.spec.hostname")
	for name, tc := range map[string]struct {
		a, b *Inspection
		want bool
	}{
		"alike":                      {of(), of(), true},
		"none":                       {nil, nil, false},
		"none before":                {of(), nil, false},
		"none now":                   {nil, of(), false},
		"other paths":                {of(), injected, false},
		"no template":                {of(noTemplate), of(noTemplate), true},
		"the template is gone":       {of(noTemplate), of(), false},
		"the template is back":       {of(), of(noTemplate), false},
		"an edit":                    {of(), b.inspection(t, v3), false},
		"a template of another name": {of(), of(func(s *freshness.Snapshot) { s.Template.Name = "u" }), false},
		"another strategy":           {of(), of(func(s *freshness.Snapshot) { s.Pool.Strategy = freshness.OnReplenish }), false},
		"what is admitted":           {of(), of(func(s *freshness.Snapshot) { s.Pool.AdmitAny, s.Pool.Suspended = true, "v1-x" }), true},
		"another history":            {of(), of(func(s *freshness.Snapshot) { s.Known[0].Hash = "v1-x" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.Same(tc.b); got != tc.want {
				t.Errorf("Same() = %t, want %t", got, tc.want)
			}
		})
	}
}
