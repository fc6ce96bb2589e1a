package agentsandbox

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/platformtest"
)

// late is a cold start by a controller that still knows an older template.
type late struct {
	old, live, claim, pool *unstructured.Unstructured
	// created is what it creates, want what it would create without delay.
	created, want *unstructured.Unstructured
}

func lateStart(version string, change func(old, live *builders.Template), claim *unstructured.Unstructured) late {
	old := builders.MakeTemplate("ns", "python").APIVersion(version).Image("sandbox:v1")
	live := builders.TemplateFrom(old.Obj()).Image("sandbox:v2")
	change(old, live)
	l := late{old: old.Obj(), live: live.Obj(), claim: claim, pool: builders.MakePool("ns", "python").APIVersion(version).Strategy("Recreate").Obj()}
	l.created = builders.MakeColdStart(claim, l.old).Obj()
	l.want = builders.MakeColdStart(claim, l.live).Obj()
	return l
}

func (l late) platform(objs ...*unstructured.Unstructured) *Platform {
	return newPlatform(newStore(append([]*unstructured.Unstructured{l.claim, l.pool, l.live}, objs...)...), history{l.live, l.old})
}

func judgedCold(t *testing.T, p *Platform, sandbox *unstructured.Unstructured) freshness.Verdict {
	t.Helper()
	w, ok := p.Classify(admissionv1.Create, nil, sandbox)
	if !ok || w.Operation != freshness.ColdStart {
		t.Fatalf("classified as %q, want a cold start", w.Operation)
	}
	f, err := p.Snapshot(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return freshness.Judge(f.Snapshot)
}

// What is repaired is, but for the note, what a controller without any delay
// creates, whichever field of the template changed.
func TestRepairs(t *testing.T) {
	beta, alpha := builders.MakeClaim("ns", "c1").Obj(), builders.MakeClaimV1Alpha1("ns", "c1", "python", "none").Obj()
	cases := map[string]struct {
		version string
		change  func(old, live *builders.Template)
		claim   *unstructured.Unstructured
	}{
		"an image":              {"v1beta1", func(_, _ *builders.Template) {}, beta},
		"an image, v1alpha1":    {"v1alpha1", func(_, _ *builders.Template) {}, alpha},
		"a field removed":       {"v1beta1", func(old, _ *builders.Template) { old.RuntimeClass("kata") }, beta},
		"a volume added":        {"v1beta1", func(_, live *builders.Template) { live.VolumeClaim("data", "1Gi") }, beta},
		"a volume grown":        {"v1beta1", func(old, live *builders.Template) { old.VolumeClaim("data", "1Gi"); live.VolumeClaim("data", "2Gi") }, beta},
		"a volume removed":      {"v1beta1", func(old, _ *builders.Template) { old.VolumeClaim("data", "1Gi") }, beta},
		"a service added":       {"v1beta1", func(_, live *builders.Template) { live.Service(true) }, beta},
		"a service removed":     {"v1alpha1", func(old, _ *builders.Template) { old.Service(true) }, alpha},
		"a service not wanted":  {"v1beta1", func(old, live *builders.Template) { old.Service(true); live.Service(false) }, beta},
		"the network policy":    {"v1beta1", func(old, _ *builders.Template) { old.Unmanaged() }, beta},
		"a container added":     {"v1beta1", func(_, live *builders.Template) { live.Container("side", "side:v1", "A", "1") }, beta},
		"metadata of the pod's": {"v1beta1", func(_, live *builders.Template) { live.Set("b", "spec", "podTemplate", "metadata", "labels", "tier") }, beta},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := lateStart(tc.version, tc.change, tc.claim)
			p := l.platform()
			if v := judgedCold(t, p, l.created); v.Reason != freshness.StaleRevision {
				t.Fatalf("judged %s before, want a stale one", v.Reason)
			}
			got, stamp := platformtest.Rewrite(t, p, l.created)
			want := builders.SandboxFrom(l.want).Annotation(settings.RepairedKey, revisionOf(t, l.old)+" -> "+revisionOf(t, l.live)).Obj()
			// Upstream itself writes it again and again, from its cache.
			copyPodMetadata(want, l.created)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("repaired (-want,+got):\n%s", diff)
			}
			if v := judgedCold(t, p, got); v.Reason != freshness.Fresh || stamp.Hash != revisionOf(t, l.live) {
				t.Errorf("judged %s (%s), stamped %s; want a fresh one, stamped %s", v.Reason, v.Detail, stamp.Hash, revisionOf(t, l.live))
			}
			again, second := platformtest.Rewrite(t, p, got)
			if second.Repair != nil {
				t.Errorf("repaired again: %+v", second.Repair)
			}
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("the second time (-want,+got):\n%s", diff)
			}
		})
	}
}

func copyPodMetadata(to, from *unstructured.Unstructured) {
	meta, _, _ := unstructured.NestedMap(from.Object, "spec", "podTemplate", "metadata")
	_ = unstructured.SetNestedMap(to.Object, meta, "spec", "podTemplate", "metadata")
}

func revisionOf(t *testing.T, template *unstructured.Unstructured) string {
	t.Helper()
	b, err := RenderMember(template)
	if err != nil {
		t.Fatal(err)
	}
	return b.Hash()
}

// A repair keeps what the claim asks for, by the policies of the template that is
// in force.
func TestRepairKeepsTheClaims(t *testing.T) {
	claim := builders.MakeClaim("ns", "c1").Env("", "MODE", "mine").VolumeClaim("data", "5Gi").Obj()
	l := lateStart("v1beta1", func(old, live *builders.Template) {
		old.EnvPolicy("Allowed").VolumeClaimPolicy("Allowed")
		live.Env("MODE", "theirs").VolumeClaim("data", "1Gi").EnvPolicy("Overrides").VolumeClaimPolicy("Overrides")
	}, claim)
	created := builders.SandboxFrom(l.created).PodSpec([]any{map[string]any{
		"name": "c", "image": "sandbox:v1", "env": []any{map[string]any{"name": "MODE", "value": "mine"}},
	}}, "containers").Set(l.claimed("5Gi"), "spec", "volumeClaimTemplates").Obj()
	got, _ := platformtest.Rewrite(t, l.platform(), created)
	want := builders.SandboxFrom(created).PodSpec([]any{map[string]any{
		"name": "c", "image": "sandbox:v2", "resources": map[string]any{}, "env": []any{map[string]any{"name": "MODE", "value": "mine"}},
	}}, "containers").Annotation(settings.RepairedKey, revisionOf(t, l.old)+" -> "+revisionOf(t, l.live)).Obj()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("repaired (-want,+got):\n%s", diff)
	}
}

func (l late) claimed(size string) []any {
	sized := builders.MakeTemplate("ns", "x").VolumeClaim("data", size).Obj()
	list, _, _ := unstructured.NestedSlice(sized.Object, "spec", "volumeClaimTemplates")
	return list
}

// v0.1.0 knows no secure defaults, and gets none.
func TestRepairWithoutSecureDefaults(t *testing.T) {
	l := lateStart("v1alpha1", func(_, _ *builders.Template) {}, builders.MakeClaimV1Alpha1("ns", "c1", "python", "none").Obj())
	plain := func(sandbox *unstructured.Unstructured) *builders.Sandbox {
		return builders.SandboxFrom(sandbox).Unset("metadata", "labels").Unset("spec", "podTemplate", "metadata").
			Unset("spec", "podTemplate", "spec", "automountServiceAccountToken").
			Unset("spec", "podTemplate", "spec", "dnsPolicy").Unset("spec", "podTemplate", "spec", "dnsConfig")
	}
	got, _ := platformtest.Rewrite(t, l.platform(), plain(l.created).Obj())
	want := plain(l.want).Annotation(settings.RepairedKey, revisionOf(t, l.old)+" -> "+revisionOf(t, l.live)).Obj()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("repaired (-want,+got):\n%s", diff)
	}
}

// What a pool gives birth to is repaired where its controller compares nothing: it
// is what a controller without delay makes, but for upstream's hashes. Those are
// nobody's, and those of all members of one revision are the same.
func TestBirthsAreRepaired(t *testing.T) {
	for _, version := range []string{builders.V1Beta1, builders.V1Alpha1} {
		t.Run(version, func(t *testing.T) {
			l := lateStart(version, func(old, live *builders.Template) { old.Service(true); live.VolumeClaim("data", "1Gi") }, builders.MakeClaim("ns", "c1").Obj())
			l.pool = builders.MakePool("ns", "python").APIVersion(version).Annotation(settings.StrategyKey, "RollingUpdate").Obj()
			born, want := builders.MakeMember(l.pool, l.old).Obj(), builders.MakeMember(l.pool, l.live).Obj()
			p := l.platform()
			got, stamp := platformtest.Rewrite(t, p, born)
			if stamp.Refused != nil {
				t.Errorf("predicted: %+v", stamp.Refused)
			}
			hash := NameHash("freshbind.dev/" + revisionOf(t, l.live))
			for _, at := range [][]string{{"metadata", "labels"}, {"spec", "podTemplate", "metadata", "labels"}} {
				for _, key := range []string{podTemplateHashLabel, templateHashLabel} {
					if str(born.Object, append(at, key)...) != "" {
						_ = unstructured.SetNestedField(want.Object, hash, append(at, key)...)
					}
				}
			}
			want = builders.SandboxFrom(want).Annotation(settings.RepairedKey, revisionOf(t, l.old)+" -> "+revisionOf(t, l.live)).Obj()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("repaired (-want,+got):\n%s", diff)
			}
			again, second := platformtest.Rewrite(t, p, got)
			if diff := cmp.Diff(got, again); diff != "" || second.Repair != nil {
				t.Errorf("the second time (-want,+got):\n%s", diff)
			}
			w, _ := p.Classify(admissionv1.Create, nil, got)
			f, err := p.Snapshot(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			if v := freshness.Judge(f.Snapshot); v.Reason != freshness.Fresh || w.Operation != freshness.Birth {
				t.Errorf("%s judged %s (%s), want a fresh birth", w.Operation, v.Reason, v.Detail)
			}
		})
	}
}

func TestWhatIsNotRepaired(t *testing.T) {
	claim := builders.MakeClaim("ns", "c1").Obj()
	l := lateStart("v1beta1", func(_, _ *builders.Template) {}, claim)
	other := builders.MakeClaim("ns", "c1").Env("", "TOKEN", "another's").Obj()
	cases := map[string]struct {
		change  func(*late)
		off     bool
		created *unstructured.Unstructured
	}{
		"switched off":              {created: l.created, off: true},
		"switched off for the pool": {created: l.created, change: func(l *late) { l.pool = builders.PoolFrom(l.pool).Annotation(settings.RepairKey, "false").Obj() }},
		"somebody's edit":           {created: builders.SandboxFrom(l.created).PodSpec("gvisor", "runtimeClassName").Obj()},
		"another claim's env":       {created: builders.SandboxFrom(l.created).PodSpec([]any{map[string]any{"name": "c", "image": "sandbox:v1", "env": []any{map[string]any{"name": "TOKEN", "value": "another's"}}}}, "containers").Obj()},
		"without the claim's own env": {created: l.created, change: func(l *late) {
			l.claim, l.old, l.live = other, builders.TemplateFrom(l.old).EnvPolicy("Allowed").Obj(), builders.TemplateFrom(l.live).EnvPolicy("Allowed").Obj()
		}},
		"env that is allowed no more":  {created: l.created, change: func(l *late) { l.claim = other }},
		"a pool that serves the stale": {created: l.created, change: func(l *late) { l.pool = builders.PoolFrom(l.pool).Strategy("OnReplenish").Obj() }},
		"one that names a bare pod":    {created: builders.SandboxFrom(l.created).PodName("python-abc").Obj()},
		"a member that goes for it":    {created: builders.MakeMember(l.pool, l.old).Name("python-abc").Obj()},
		"what is current":              {created: l.want},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			world := l
			if tc.change != nil {
				tc.change(&world)
			}
			p := world.platform()
			p.RepairOff = tc.off
			got, _ := platformtest.Rewrite(t, p, tc.created)
			if diff := cmp.Diff(tc.created, got); diff != "" {
				t.Errorf("rewritten (-want,+got):\n%s", diff)
			}
		})
	}
}

// A note stays only on what it can be true of.
func TestForgedNotesOfRepairs(t *testing.T) {
	l := lateStart("v1beta1", func(_, _ *builders.Template) {}, builders.MakeClaim("ns", "c1").Obj())
	old, live := revisionOf(t, l.old), revisionOf(t, l.live)
	cases := map[string]struct {
		sandbox *unstructured.Unstructured
		note    string
		want    string
	}{
		"repaired before":              {l.want, old + " -> " + live, old + " -> " + live},
		"to what it is not":            {l.want, live + " -> " + old, ""},
		"from what never was":          {l.want, "v1-x -> " + live, ""},
		"anything":                     {l.want, "by hand", ""},
		"on a member":                  {builders.MakeMember(l.pool, l.live).Name("python-abc").Obj(), old + " -> " + live, ""},
		"on a member that no pool has": {builders.SandboxFrom(builders.MakeMember(builders.MakePool("ns", "gone").Obj(), l.live).Obj()).Name("python-abc").Obj(), old + " -> " + live, ""},
		"on what is to be repaired":    {l.created, "by hand", old + " -> " + live},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := l.platform().NewSandbox(t.Context(), builders.SandboxFrom(tc.sandbox).Annotation(settings.RepairedKey, tc.note).Obj())
			if err != nil || got.Repaired != tc.want {
				t.Errorf("noted %q, error %v, want %q", got.Repaired, err, tc.want)
			}
		})
	}
}

// What is refused is known before it is judged, and the same question is asked by
// whoever judges it; none is where nothing is refused, or where it is repaired.
func TestRefusalsArePredicted(t *testing.T) {
	claim := builders.MakeClaim("ns", "c1").Obj()
	l := lateStart("v1beta1", func(_, _ *builders.Template) {}, claim)
	odd := builders.SandboxFrom(l.want).PodSpec("gvisor", "runtimeClassName").Obj()
	cases := map[string]struct {
		created *unstructured.Unstructured
		off     bool
		want    freshness.Reason
	}{
		"current":                   {l.want, false, ""},
		"repaired":                  {l.created, false, ""},
		"stale, and not repaired":   {l.created, true, freshness.StaleRevision},
		"unknown":                   {odd, false, freshness.UnknownRevision},
		"unknown, for a bare pod":   {builders.SandboxFrom(odd).PodName("python-abc").Obj(), false, ""},
		"a stale member":            {builders.MakeMember(l.pool, l.old).Name("python-abc").Obj(), false, ""},
		"of a claim that is not it": {builders.SandboxFrom(l.want).Owners(builders.ControllerRef(builders.ClaimFrom(claim).UID("uid-x").Obj())).Obj(), false, freshness.ClaimReplaced},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := l.platform()
			p.RepairOff = tc.off
			stamp, err := p.NewSandbox(t.Context(), tc.created)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == "" {
				if stamp.Refused != nil || stamp.Question != (platform.Question{}) {
					t.Errorf("predicted: %+v", stamp.Refused)
				}
				return
			}
			stored := builders.SandboxFrom(tc.created).Label(settings.StampKey, stamp.Hash).UID("uid-new").Generation(1).Created(time.Unix(1, 0)).Obj()
			w, _ := p.Classify(admissionv1.Create, nil, stored)
			if stamp.Refused == nil || stamp.Refused.Reason != tc.want || stamp.Question != p.Question(w) {
				t.Errorf("predicted: %+v as answer to %x, want %s as answer to %x", stamp.Refused, stamp.Question, tc.want, p.Question(w))
			}
		})
	}
}

// Whatever a verdict depends on makes another question.
func TestQuestions(t *testing.T) {
	claim := builders.MakeClaim("ns", "c1").Obj()
	l := lateStart("v1beta1", func(_, _ *builders.Template) {}, claim)
	cold := func() *builders.Sandbox { return builders.SandboxFrom(l.created) }
	second := builders.ControllerRef(builders.MakeClaim("ns", "c2").Obj())
	seen := map[platform.Question]string{}
	for name, sandbox := range map[string]*unstructured.Unstructured{
		"itself":             cold().Obj(),
		"another content":    cold().Image("sandbox:v3").Obj(),
		"another template":   cold().Annotation(builders.AnnotationTemplate, "other").Obj(),
		"another name":       cold().Name("c2").Obj(),
		"another namespace":  cold().Set("ns2", "metadata", "namespace").Obj(),
		"another claim":      cold().Owners(second).Obj(),
		"two claims":         cold().Owners(builders.ControllerRef(claim), second).Obj(),
		"another pod":        cold().PodName("python-abc").Obj(),
		"no mark of a claim": cold().Unset("metadata", "labels").Unset("spec", "podTemplate", "metadata").Obj(),
	} {
		w, _ := (&Platform{}).Classify(admissionv1.Create, nil, sandbox)
		question := (&Platform{}).Question(w)
		if other, known := seen[question]; known {
			t.Errorf("%s and %s make one question", name, other)
		}
		seen[question] = name
	}
}

// What cannot be read, or not be compared to its end, is left as it is.
func TestNothingIsRepairedUnread(t *testing.T) {
	l := lateStart("v1beta1", func(_, _ *builders.Template) {}, builders.MakeClaim("ns", "c1").Obj())
	away := errors.New("etcd is away")
	for _, key := range []string{"sandboxclaim/c1", "sandboxtemplate/python", "sandboxwarmpool/python"} {
		t.Run(key, func(t *testing.T) {
			s := newStore(l.claim, l.pool, l.live)
			s.fail[key] = away
			stamp, err := newPlatform(s, history{l.live, l.old}).NewSandbox(t.Context(), l.created)
			// How to fail depends on the namespace.
			stamp.Namespace = platform.Namespace{}
			if !errors.Is(err, away) || !reflect.DeepEqual(stamp, platform.Stamp{}) {
				t.Errorf("NewSandbox() = %+v, %v; want nothing, and the read's error", stamp, err)
			}
		})
	}
}
