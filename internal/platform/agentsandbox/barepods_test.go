package agentsandbox

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// barePod is a member as a pool of v0.2.1 makes it.
func barePod(template *unstructured.Unstructured) *unstructured.Unstructured {
	spec, _, _ := unstructured.NestedMap(template.Object, "spec", "podTemplate", "spec")
	return builders.PodFrom(builders.MakePod(testMember).Obj()).Name("python-abc").Set(spec, "spec").
		Set("python-", "metadata", "generateName").Owners(builders.ControllerRef(testPool)).
		Set(map[string]any{PodPoolLabel: NameHash("python"), TemplateRefHashLabel: NameHash("python")}, "metadata", "labels").
		Stored("node-1").Obj()
}

// released is the Pod after v0.1.0 took it; with a claim, after v0.2.1 did.
func released(pod, claim *unstructured.Unstructured) *unstructured.Unstructured {
	b := builders.PodFrom(pod).Owners().NoLabel(PodPoolLabel)
	if claim == nil {
		return b.NoLabel(TemplateRefHashLabel).Obj()
	}
	return b.Label(PodClaimLabel, string(claim.GetUID())).Label(sandboxNameHashLabel, NameHash(claim.GetName())).Obj()
}

func TestClassifyPods(t *testing.T) {
	pod := barePod(testTemplate)
	other := builders.MakeClaim("ns", "c2").Obj()
	given := released(pod, testClaim)
	running := builders.PodFrom(given).Owners(builders.ControllerRef(builders.MakeColdStart(testClaim, testTemplate).Obj())).Obj()
	cases := map[string]struct {
		op       admissionv1.Operation
		old, obj *unstructured.Unstructured
		want     freshness.Operation
	}{
		"taken by v0.1.0":             {admissionv1.Update, pod, released(pod, nil), freshness.Release},
		"taken by v0.2.1":             {admissionv1.Update, pod, given, freshness.Release},
		"an orphan, taken":            {admissionv1.Update, builders.PodFrom(pod).Owners().Obj(), given, freshness.Release},
		"taken again":                 {admissionv1.Update, given, released(pod, other), freshness.Release},
		"orphaned":                    {admissionv1.Update, pod, builders.PodFrom(pod).Owners().Obj(), ""},
		"label lost, in its pool":     {admissionv1.Update, pod, builders.PodFrom(pod).NoLabel(PodPoolLabel).Obj(), ""},
		"taken again by its claim":    {admissionv1.Update, given, builders.PodFrom(given).Label("x", "y").Obj(), ""},
		"given to its sandbox":        {admissionv1.Update, given, running, ""},
		"relabelled while it runs":    {admissionv1.Update, running, builders.PodFrom(running).Label(PodClaimLabel, "x").Obj(), ""},
		"label of a member":           {admissionv1.Update, pod, builders.PodFrom(pod).Label("x", "y").Obj(), ""},
		"labelled for the first time": {admissionv1.Update, released(pod, nil), builders.PodFrom(released(pod, nil)).Label(PodClaimLabel, "x").Obj(), ""},
		"label of its claim lost":     {admissionv1.Update, given, builders.PodFrom(given).NoLabel(PodClaimLabel).Obj(), ""},
		"deleted":                     {admissionv1.Delete, pod, released(pod, nil), ""},
		"nobody knows what it was":    {admissionv1.Update, nil, given, ""},
		"born":                        {admissionv1.Create, nil, pod, freshness.Birth},
		"made by hand":                {admissionv1.Create, nil, builders.PodFrom(pod).Owners().Obj(), ""},
		"by hand, it names a pod":     {admissionv1.Create, nil, builders.SandboxFrom(builders.MakeColdStart(testClaim, testTemplate).Obj()).Owners().PodName("python-abc").Obj(), ""},
		"a member that names a pod":   {admissionv1.Create, nil, builders.SandboxFrom(testMember).PodName("other").Obj(), freshness.Birth},
		"sandbox that names a pod":    {admissionv1.Create, nil, builders.MakeColdStart(testClaim, testTemplate).PodName("python-abc").Obj(), freshness.WarmStart},
		"sandbox that names its own":  {admissionv1.Create, nil, builders.MakeColdStart(testClaim, testTemplate).PodName(testClaim.GetName()).Obj(), freshness.ColdStart},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, ok := (&Platform{}).Classify(tc.op, tc.old, tc.obj)
			if got := w.Operation; ok && got != tc.want || ok != (tc.want != "") {
				t.Errorf("Classify() = %q, %t, want %q", got, ok, tc.want)
			}
		})
	}
}

func TestSnapshotOfBarePods(t *testing.T) {
	v1 := builders.MakeTemplate("ns", "python").APIVersion(builders.V1Alpha1).Image("sandbox:v1").Obj()
	v2 := builders.MakeTemplate("ns", "python").APIVersion(builders.V1Alpha1).Image("sandbox:v2").Obj()
	strict := builders.MakePool("ns", "python").Annotation(settings.StrategyKey, "Recreate").Obj()
	claim := builders.MakeClaimV1Alpha1("ns", "c1", "python", "").Obj()
	fresh, stale := barePod(v2), barePod(v1)
	release := func(pod, claim *unstructured.Unstructured) platform.Write {
		w, _ := (&Platform{}).Classify(admissionv1.Update, pod, released(pod, claim))
		return w
	}
	start := func(template *unstructured.Unstructured) platform.Write {
		w, _ := (&Platform{}).Classify(admissionv1.Create, nil, builders.MakeColdStart(claim, template).PodName("python-abc").Obj())
		return w
	}
	plainStart := func(template *unstructured.Unstructured, pod string) platform.Write {
		spec, _, _ := unstructured.NestedMap(template.Object, "spec", "podTemplate")
		b := builders.SandboxFrom(builders.MakeColdStart(claim, template).Obj()).NoLabel(builders.LabelClaimUID).Set(spec, "spec", "podTemplate")
		w, _ := (&Platform{}).Classify(admissionv1.Create, nil, b.PodName(pod).Obj())
		return w
	}
	marked := func(w platform.Write) platform.Write {
		w.New = builders.SandboxFrom(w.New).Label(claimUIDLabel, "u").Obj()
		return w
	}
	ours := func(w platform.Write) platform.Write {
		w.New = builders.SandboxFrom(w.New).Annotation(settings.BoundToKey, "u").Obj()
		return w
	}
	editing := func(w platform.Write) platform.Write {
		w.New = builders.PodFrom(w.New).Set([]any{map[string]any{"name": "c", "image": "odd"}}, "spec", "containers").Obj()
		return w
	}
	birth := func(pod *unstructured.Unstructured) platform.Write {
		w, _ := (&Platform{}).Classify(admissionv1.Create, nil, builders.PodFrom(pod).Name("").Obj())
		return w
	}
	idle := func(op freshness.Operation, pod *unstructured.Unstructured) platform.Write {
		return platform.Write{Operation: op, New: pod}
	}
	withEnv := builders.ClaimFrom(claim).Env("", "TOKEN", "1").Obj()
	open := builders.TemplateFrom(v2).EnvPolicy("Allowed").Obj()
	startWithEnv := start(v2)
	startWithEnv.New = builders.MakeColdStart(withEnv, builders.TemplateFrom(open).Env("TOKEN", "1").Obj()).PodName("python-abc").Obj()
	type objs = []*unstructured.Unstructured
	cases := map[string]struct {
		write  platform.Write
		stored objs
		want   freshness.Reason
	}{
		"release, v0.2.1":                       {release(fresh, claim), objs{strict, v2}, freshness.Fresh},
		"release, v0.1.0":                       {release(fresh, nil), objs{strict, v2}, freshness.Fresh},
		"release that edits the pod":            {editing(release(fresh, claim)), objs{strict, v2}, freshness.BlueprintChanged},
		"release of a stale pod":                {release(stale, claim), objs{strict, v2}, freshness.StaleRevision},
		"release, pool switched":                {release(fresh, claim), objs{builders.PoolFrom(strict).Template("other").Obj(), builders.MakeTemplate("ns", "other").Image("sandbox:v2").Obj()}, freshness.TemplateMismatch},
		"release, pool gone":                    {release(fresh, claim), objs{v2}, freshness.PoolGone},
		"release of a pod being deleted":        {release(builders.PodFrom(fresh).Deleting(time.Unix(1, 0)).Obj(), claim), objs{strict, v2}, freshness.MemberTerminating},
		"release of a pod that ended":           {release(builders.PodFrom(fresh).Phase("Failed").Obj(), claim), objs{strict, v2}, freshness.PodFinished},
		"release from another claim":            {release(released(fresh, testClaim), builders.MakeClaim("ns", "c2").Obj()), objs{strict, v2}, freshness.MemberUsed},
		"start, secure defaults":                {start(v2), objs{claim, strict, v2, released(fresh, claim)}, freshness.Fresh},
		"start, no secure defaults":             {plainStart(v2, "python-abc"), objs{claim, strict, v2, released(fresh, nil)}, freshness.Fresh},
		"start, as the claim adds to it":        {startWithEnv, objs{withEnv, strict, open, released(fresh, claim)}, freshness.Fresh},
		"start from a late cache":               {start(v1), objs{claim, strict, v2, released(fresh, claim)}, freshness.StaleRevision},
		"start in a stale pod":                  {start(v2), objs{claim, strict, v2, released(stale, claim)}, freshness.StaleRevision},
		"start in a pod of another claim":       {start(v2), objs{claim, strict, v2, released(fresh, testPool)}, freshness.MemberClaimed},
		"start in a pod that the pool has":      {start(v2), objs{claim, strict, v2, fresh}, freshness.PodForeign},
		"start in a pod that is gone":           {start(v2), objs{claim, strict, v2}, freshness.PodFinished},
		"cold start, v0.1.0":                    {plainStart(v2, ""), objs{claim, v2}, freshness.Fresh},
		"cold start, v0.1.0, with our mark":     {ours(plainStart(v2, "")), objs{claim, v2}, freshness.Fresh},
		"cold start, no secure defaults":        {marked(plainStart(v2, "")), objs{claim, v2}, freshness.UnknownRevision},
		"cold start, v0.1.0, late cache":        {plainStart(v1, ""), objs{claim, v2}, freshness.StaleRevision},
		"birth":                                 {birth(fresh), objs{strict, v2}, freshness.Fresh},
		"birth from a late cache":               {birth(stale), objs{strict, v2}, freshness.StaleRevision},
		"birth, content that nobody knows":      {birth(builders.PodFrom(fresh).Set("other", "spec", "schedulerName").Obj()), objs{strict, v2}, freshness.UnknownRevision},
		"birth, pool switched":                  {birth(fresh), objs{builders.PoolFrom(strict).Template("other").Obj(), builders.MakeTemplate("ns", "other").Image("sandbox:v2").Obj()}, freshness.TemplateMismatch},
		"birth, pool gone":                      {birth(stale), objs{v2}, freshness.Fresh},
		"idle":                                  {idle(freshness.Idle, fresh), objs{strict, v2}, freshness.Fresh},
		"idle, stale":                           {idle(freshness.Idle, stale), objs{strict, v2}, freshness.StaleRevision},
		"idle, named by somebody":               {idle(freshness.Idle, builders.PodFrom(fresh).Unset("metadata", "generateName").Obj()), objs{strict, v2}, freshness.Fresh},
		"idle, it had a claim":                  {idle(freshness.Idle, builders.PodFrom(fresh).Label(PodClaimLabel, "u").Obj()), objs{strict, v2}, freshness.MemberUsed},
		"idle, it had a sandbox":                {idle(freshness.Idle, builders.PodFrom(fresh).Label(sandboxNameHashLabel, "u").Obj()), objs{strict, v2}, freshness.MemberUsed},
		"idle, its node is set aside":           {idle(freshness.Idle, fresh), objs{strict, v2, dedicatedNode}, freshness.NodeLeaving},
		"idle, on no node":                      {idle(freshness.Idle, builders.PodFrom(fresh).Unset("spec", "nodeName").Obj()), objs{strict, v2}, freshness.Fresh},
		"released, fresh":                       {idle(freshness.Released, released(fresh, claim)), objs{strict, v2}, freshness.Fresh},
		"released, stale":                       {idle(freshness.Released, released(stale, claim)), objs{strict, v2}, freshness.StaleRevision},
		"cold start of a claim that names none": {plainStart(v2, ""), objs{builders.MakeClaimV1Alpha1("ns", "c1", "python", "gone").Obj(), v2}, freshness.Fresh},
		"cold start, its pool has another one":  {plainStart(v2, ""), objs{builders.MakeClaimV1Alpha1("ns", "c1", "python", "python").Obj(), builders.PoolFrom(strict).Template("other").Obj(), v2}, freshness.Fresh},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			store := newStore(tc.stored...)
			store.version = BarePodVersion
			f, err := newPlatform(store, history{v2, v1}).Snapshot(t.Context(), tc.write)
			if err != nil {
				t.Fatal(err)
			}
			if v := freshness.Judge(f.Snapshot); v.Reason != tc.want {
				t.Errorf("judged %s (%s), want %s", v.Reason, v.Detail, tc.want)
			}
			if taken := f.Taken != nil; taken != (f.Pod != nil && tc.write.Operation == freshness.WarmStart) {
				t.Errorf("Taken = %v", f.Taken)
			}
		})
	}
}

// Where members are no Pods, nobody is given a Sandbox in a Pod that was there before, under
// whatever name: where the Pod that it names is not there, it runs in the one of its own.
func TestLaterReleasesStartInNoPodThatIsThere(t *testing.T) {
	v2 := builders.MakeTemplate("ns", "python").Image("sandbox:v2").Obj()
	claim := builders.MakeClaim("ns", "c1").Obj()
	w, _ := (&Platform{}).Classify(admissionv1.Create, nil, builders.MakeColdStart(claim, v2).PodName("python-abc").Obj())
	stored := []*unstructured.Unstructured{claim, testPool, v2}
	for name, tc := range map[string]struct {
		stored []*unstructured.Unstructured
		want   freshness.Reason
	}{
		"there":     {append(stored, released(barePod(v2), claim)), freshness.PodForeign},
		"not there": {stored, freshness.PodForeign},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := newPlatform(newStore(tc.stored...), history{v2}).Snapshot(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			if v := freshness.Judge(f.Snapshot); v.Reason != tc.want || f.Taken != nil {
				t.Errorf("judged %s (%s), taken %v, want %s", v.Reason, v.Detail, f.Taken, tc.want)
			}
		})
	}
}

func TestReadsOfBarePods(t *testing.T) {
	claim := builders.MakeClaimV1Alpha1("ns", "c1", "python", "").Obj()
	template := builders.MakeTemplate("ns", "python").Obj()
	pod := barePod(template)
	release, _ := (&Platform{}).Classify(admissionv1.Update, pod, released(pod, claim))
	start, _ := (&Platform{}).Classify(admissionv1.Create, nil, builders.MakeColdStart(claim, template).PodName("python-abc").Obj())
	born, _ := (&Platform{}).Classify(admissionv1.Create, nil, builders.PodFrom(pod).Unset("spec", "nodeName").Obj())
	away := errors.New("etcd is away")
	for name, tc := range map[string]struct {
		write platform.Write
		want  []string
	}{
		"birth":   {born, []string{"sandboxtemplate/python", "sandboxwarmpool/python"}},
		"release": {release, []string{"node/node-1", "sandboxtemplate/python", "sandboxwarmpool/python"}},
		"start":   {start, []string{"node/node-1", "pod/python-abc", "sandboxclaim/c1", "sandboxtemplate/python", "sandboxwarmpool/python"}},
	} {
		t.Run(name, func(t *testing.T) {
			objs := []*unstructured.Unstructured{claim, testPool, template, released(pod, claim)}
			s := newStore(objs...)
			s.version = BarePodVersion
			facts, err := newPlatform(s, nil).Snapshot(t.Context(), tc.write)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := facts.Namespace.Labels(); err != nil {
				t.Fatal(err)
			}
			slices.Sort(s.read)
			if diff := cmp.Diff(append([]string{"namespace/ns"}, tc.want...), s.read); diff != "" {
				t.Errorf("reads (-want,+got):\n%s", diff)
			}
			for _, key := range tc.want {
				s := newStore(objs...)
				s.version = BarePodVersion
				s.fail[key] = away
				if _, err := newPlatform(s, nil).Snapshot(t.Context(), tc.write); !errors.Is(err, away) {
					t.Errorf("Snapshot() without %s: error = %v, want one that wraps the read's", key, err)
				}
			}
		})
	}
}

// Who takes a Pod is told by its UID only, and by v0.1.0 not at all.
func TestWhoseReleaseItIs(t *testing.T) {
	pod := barePod(testTemplate)
	for name, tc := range map[string]struct {
		claim *unstructured.Unstructured
		want  freshness.Owner
	}{
		"v0.1.0": {nil, freshness.Owner{}},
		"v0.2.1": {testClaim, freshness.Owner{Kind: freshness.OwnedByClaim, UID: string(testClaim.GetUID())}},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := (&Platform{}).Classify(admissionv1.Update, pod, released(pod, tc.claim))
			if diff := cmp.Diff(tc.want, w.Claim); diff != "" {
				t.Errorf("Claim (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestStampsOfBarePods(t *testing.T) {
	v1 := builders.MakeTemplate("ns", "python").Image("sandbox:v1").Obj()
	v2 := builders.MakeTemplate("ns", "python").Image("sandbox:v2").Obj()
	hash := func(template *unstructured.Unstructured) string {
		b, err := RenderMember(template)
		if err != nil {
			t.Fatal(err)
		}
		return b.Hash()
	}
	pool := builders.MakePool("ns", "python").Annotation(settings.EnforcementKey, "enforce").Obj()
	p := newPlatform(newStore(pool, v2), history{v2, v1})
	for name, tc := range map[string]struct {
		pod  *unstructured.Unstructured
		want platform.Stamp
	}{
		"of the template in force": {barePod(v2), platform.Stamp{Hash: hash(v2), Enforcement: "enforce"}},
		"of a late cache":          {barePod(v1), platform.Stamp{Hash: hash(v1), Enforcement: "enforce"}},
		"released":                 {released(barePod(v2), testClaim), platform.Stamp{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := p.PodRevision(t.Context(), tc.pod)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(platform.Stamp{}, "Namespace")); diff != "" {
				t.Errorf("PodRevision() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestWasMember(t *testing.T) {
	pod := barePod(testTemplate)
	pool := &freshness.Pool{Name: "python"}
	for name, tc := range map[string]struct {
		pod  *unstructured.Unstructured
		pool *freshness.Pool
		want bool
	}{
		"released":              {released(pod, nil), pool, true},
		"released, pool gone":   {released(pod, nil), nil, false},
		"orphan of a pool":      {builders.PodFrom(pod).Owners().Obj(), nil, true},
		"named by somebody":     {builders.PodFrom(released(pod, nil)).Unset("metadata", "generateName").Obj(), pool, false},
		"label of another pool": {builders.PodFrom(pod).Owners().Label(PodPoolLabel, NameHash("other")).Obj(), nil, false},
		"of another pool":       {released(pod, nil), &freshness.Pool{Name: "other"}, false},
		"not as pools name it":  {builders.PodFrom(released(pod, nil)).Set("python", "metadata", "generateName").Obj(), pool, false},
		"label of no pool":      {builders.PodFrom(pod).Owners().Unset("metadata", "generateName").Label(PodPoolLabel, NameHash("")).Obj(), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WasMember(tc.pod, tc.pool); got != tc.want {
				t.Errorf("WasMember() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestIsPod(t *testing.T) {
	object := func(apiVersion, kind string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		return u
	}
	for name, tc := range map[string]struct {
		obj  *unstructured.Unstructured
		want bool
	}{
		"a Pod":              {object("v1", "Pod"), true},
		"a Pod of a group's": {object("example.com/v1", "Pod"), false},
		"another kind":       {object("v1", "Node"), false},
	} {
		if got := IsPod(tc.obj); got != tc.want {
			t.Errorf("%s: IsPod() = %t, want %t", name, got, tc.want)
		}
	}
}

func TestPoolsThatAreTakenByName(t *testing.T) {
	for value, want := range map[string]bool{"": false, "by-name": true, "by name": true} {
		pool := (&Platform{}).poolOf(builders.MakePool("ns", "p").Annotation(settings.ClaimsKey, value).Obj(), "")
		if pool.ByName != want {
			t.Errorf("%s=%q: ByName = %t, want %t", settings.ClaimsKey, value, pool.ByName, want)
		}
	}
}
