package freshness

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/internal/revision"
)

// podSpec is the content of a Pod with these containers, image by name in turn.
func podSpec(t *testing.T, more map[string]any, containers ...string) revision.Blueprint {
	t.Helper()
	var list []any
	for i := 0; i < len(containers); i += 2 {
		list = append(list, map[string]any{"name": containers[i], "image": containers[i+1]})
	}
	spec := map[string]any{"containers": list}
	for key, value := range more {
		spec[key] = value
	}
	b, err := revision.FromPodSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What runs is the Pod, whoever made it.
func TestJudgeWhatRuns(t *testing.T) {
	v1, v2, odd := blueprint(t, "sandbox:v1"), blueprint(t, "sandbox:v2"), blueprint(t, "sandbox:odd")
	sidecar := func(image string) revision.Blueprint { return podSpec(t, nil, "mesh", "mesh:1", "c", image) }
	moved := podSpec(t, map[string]any{"nodeSelector": map[string]any{"zone": "a"}}, "c", "sandbox:v2")
	runs := func(b revision.Blueprint) func(*Snapshot) { return func(s *Snapshot) { s.Pod.Content = b } }
	edited := func(s *Snapshot) { s.Pod.Generation = 2 }
	born := func(s *Snapshot) { s.Pod.Generation = 1 }
	suspended := func(s *Snapshot) { s.Pool.Suspended = s.Template.Hash }
	onReplenish := func(s *Snapshot) { s.Pool.Strategy = OnReplenish }
	sandboxEdited := func(s *Snapshot) { s.Member.Generation = 2 }
	ephemeral := func(s *Snapshot) { s.Pod.Ephemeral = true }
	// sameImage: the older revision differs in something else than the image.
	sameImage := func(s *Snapshot) {
		s.Known[1].Content = blueprint(t, "sandbox:v2", "hostname", "old")
		s.Known[1].Hash = s.Known[1].Content.Hash()
	}
	oldHostname := podSpec(t, map[string]any{"hostname": "old"}, "c", "sandbox:v2")
	setup := func(image string) revision.Blueprint {
		return podSpec(t, map[string]any{"initContainers": []any{map[string]any{"name": "setup", "image": image}}}, "c", "sandbox:v2")
	}
	withSetup := func(s *Snapshot) {
		builtFrom(setup("setup:v2"))(s)
		s.Template.Content = setup("setup:v2")
	}
	type changes = []func(*Snapshot)
	type want struct {
		Allowed, Tolerated bool
		Reason             Reason
	}
	fresh, stale, unknown := want{true, false, Fresh}, want{Reason: StaleRevision}, want{Reason: UnknownRevision}
	let := want{Allowed: true, Reason: UnknownRevision}
	cases := map[string]struct {
		changes changes
		bind    want
		// stored is the same for what a cache shows; the bind's when it is empty.
		stored want
	}{
		"as the template":                       {changes{born}, fresh, want{}},
		"made again from an older revision":     {changes{born, runs(v1)}, stale, want{}},
		"the same, where none are counted":      {changes{runs(v1)}, stale, want{}},
		"the same image, but an older revision": {changes{born, sameImage, runs(oldHostname)}, stale, fresh},
		"an older one but for what may be injected": {changes{born, sameImage, runs(oldHostname), func(s *Snapshot) {
			s.PodInjected = paths(t, "podTemplate.spec.hostname")
		}}, fresh, want{}},
		"made again of something else":          {changes{born, runs(odd)}, unknown, want{}},
		"the same, under OnReplenish":           {changes{born, runs(odd), onReplenish}, want{true, true, UnknownRevision}, want{}},
		"images that nobody understands":        {changes{born, runs(odd), suspended}, let, want{}},
		"an image set by hand":                  {changes{edited, runs(odd)}, unknown, want{}},
		"set by hand, where nobody understands": {changes{edited, runs(odd), suspended}, unknown, want{}},
		"set by hand, under OnReplenish":        {changes{edited, runs(odd), onReplenish}, want{true, true, UnknownRevision}, want{}},
		"an older image set by hand":            {changes{edited, runs(v1)}, stale, want{}},
		"an older image beside a sidecar":       {changes{born, runs(sidecar("sandbox:v1"))}, stale, want{}},
		"a sidecar from its birth on":           {changes{born, runs(sidecar("sandbox:v2"))}, fresh, want{}},
		"a sidecar, and edited":                 {changes{edited, runs(sidecar("sandbox:v2"))}, fresh, want{}},
		"a sidecar, edited, nobody understands": {changes{edited, runs(sidecar("sandbox:v2")), suspended}, fresh, want{}},
		"a container is missing":                {changes{born, runs(podSpec(t, nil, "x", "sandbox:v2"))}, unknown, want{}},
		"placed elsewhere at its birth":         {changes{born, runs(moved)}, fresh, want{}},
		"placed elsewhere, then edited":         {changes{edited, runs(moved)}, unknown, fresh},
		"placed elsewhere, Sandbox edited":      {changes{born, sandboxEdited, runs(moved)}, unknown, fresh},
		"edited where it may be":                {changes{edited, runs(moved), func(s *Snapshot) { s.PodInjected = paths(t, "podTemplate.spec.nodeSelector") }}, fresh, want{}},
		"edited beside what admission added": {changes{edited, runs(podSpec(t, map[string]any{"nodeSelector": map[string]any{"zone": "a"}, "hostname": "h"}, "c", "sandbox:v2")),
			func(s *Snapshot) {
				s.PodInjected = paths(t, "podTemplate.spec.nodeSelector", "podTemplate.spec.hostname=x")
				s.Pool.Suspended = s.Template.Hash
				s.Known = nil
			}}, let, fresh},
		"rendered otherwise before": {changes{born, runs(podSpec(t, map[string]any{"hostname": "h"}, "c", "sandbox:v2")), func(s *Snapshot) {
			s.Known = []Known{{Hash: s.Template.Hash, Content: blueprint(t, "sandbox:v2", "hostname", "h")}}
		}}, fresh, want{}},
		"edited back":                        {changes{edited}, fresh, want{}},
		"an init container of another image": {changes{born, withSetup, runs(setup("setup:v1"))}, unknown, want{}},
		"somebody attached a container":      {changes{ephemeral}, want{Reason: PodModified}, want{}},
		"attached, under OnReplenish":        {changes{ephemeral, onReplenish}, want{Reason: PodModified}, want{}},
		"attached, where nobody understands": {changes{ephemeral, suspended}, want{Reason: PodModified}, want{}},
		"stale itself, and its Pod":          {changes{builtFrom(v1), runs(v1)}, stale, want{}},
		"stale itself, but its Pod is not":   {changes{builtFrom(v1), runs(v2)}, stale, want{}},
		"of a Sandbox that only looks so":    {changes{runs(v2), func(s *Snapshot) { s.Known = nil }}, fresh, want{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.stored == (want{}) {
				tc.stored = tc.bind
			}
			judge := func(op Operation, whole bool, wanted want) {
				t.Helper()
				s := world(t, tc.changes...)
				s.Operation, s.Pod.Whole = op, whole
				got := Judge(s)
				if diff := cmp.Diff(wanted, want{got.Allowed, got.Tolerated, got.Reason}); diff != "" {
					t.Errorf("%s, the whole Pod %t (-want,+got):\n%s\ndetail: %s", op, whole, diff, got.Detail)
				}
			}
			judge(Bind, false, tc.bind)
			judge(Idle, false, tc.bind)
			judge(Stored, false, tc.stored)
			judge(Stored, true, tc.bind)
		})
	}
}

// What a cache shows of a Pod that is not the member's, or of none, says nothing.
func TestAForeignPodSaysNothingOfAStoredMember(t *testing.T) {
	for name, change := range map[string]func(*Snapshot){
		"none": func(s *Snapshot) { s.Pod = nil },
		"another's": func(s *Snapshot) {
			s.Pod.ControllerUID, s.Pod.Ephemeral, s.Pod.Content = "uid-x", true, blueprint(t, "sandbox:v1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := world(t, change)
			s.Operation = Stored
			if v := Judge(s); v.Reason != Fresh {
				t.Errorf("judged %s (%s), want Fresh", v.Reason, v.Detail)
			}
		})
	}
}

// A verdict on a Pod names what that Pod is.
func TestPodVerdictsNameRevisions(t *testing.T) {
	v1, v2, odd := blueprint(t, "sandbox:v1"), blueprint(t, "sandbox:v2"), blueprint(t, "sandbox:odd", "hostname", "h")
	cases := map[string]struct {
		pod  revision.Blueprint
		want string
	}{
		"an older one":           {v1, v1.Hash()},
		"an older image":         {blueprint(t, "sandbox:v1", "hostname", "h"), v1.Hash()},
		"equal to nothing known": {odd, odd.Hash()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := Judge(world(t, func(s *Snapshot) { s.Pod.Content = tc.pod }))
			if v.Found != tc.want || v.Expected != v2.Hash() {
				t.Errorf("found %s, expected %s, want %s and %s", v.Found, v.Expected, tc.want, v2.Hash())
			}
		})
	}
}

// What admission may add does not hide which revision a Pod is of.
func TestPodRevisionBesideWhatIsInjected(t *testing.T) {
	v1 := blueprint(t, "sandbox:v1")
	got := PodRevisionOf(world(t, func(s *Snapshot) {
		s.Pod.Content, s.PodInjected = blueprint(t, "sandbox:v1", "hostname", "h"), paths(t, "podTemplate.spec.hostname")
	}))
	if got != v1.Hash() {
		t.Errorf("PodRevisionOf() = %s, want %s", got, v1.Hash())
	}
}
