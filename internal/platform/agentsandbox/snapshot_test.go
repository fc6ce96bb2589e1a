package agentsandbox

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// store answers as an API server that has these objects, and notes what was read.
type store struct {
	objs map[string]*unstructured.Unstructured
	fail map[string]error
	// version is the one that is served; "" for v1beta1.
	version string

	mu   sync.Mutex
	read []string
}

func newStore(objs ...*unstructured.Unstructured) *store {
	s := &store{objs: map[string]*unstructured.Unstructured{}, fail: map[string]error{}}
	for _, o := range append([]*unstructured.Unstructured{makeNode(func(*unstructured.Unstructured) {})}, objs...) {
		s.objs[strings.ToLower(o.GetKind())+"/"+o.GetName()] = o
	}
	return s
}

func (s *store) Get(_ context.Context, ref liveread.Ref) (*unstructured.Unstructured, error) {
	key := singular(ref.GVR.Resource) + "/" + ref.Name
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = append(s.read, key)
	if err := s.fail[key]; err != nil {
		return nil, err
	}
	if o, ok := s.objs[key]; ok {
		return o, nil
	}
	return nil, apierrors.NewNotFound(ref.GVR.GroupResource(), ref.Name)
}

func singular(resource string) string {
	if resource == "sandboxes" {
		return "sandbox"
	}
	return strings.TrimSuffix(resource, "s")
}

func (s *store) Resource(_ context.Context, gr schema.GroupResource) (schema.GroupVersionResource, error) {
	if s.version != "" {
		return gr.WithVersion(s.version), nil
	}
	return gr.WithVersion("v1beta1"), nil
}

// history has recorded these templates.
type history []*unstructured.Unstructured

func (h history) Revisions(context.Context, *unstructured.Unstructured) ([]platform.Recorded, error) {
	var out []platform.Recorded
	for _, t := range h {
		b, err := RenderMember(t)
		if err != nil {
			return nil, err
		}
		out = append(out, platform.Recorded{Hash: b.Hash(), Template: t, Rendered: b})
	}
	return out, nil
}

func newPlatform(s *store, h history) *Platform {
	return &Platform{Reader: liveread.NewReader(s, nil), Resolver: s, History: h, Defaults: settings.Defaults{Strategy: freshness.OnReplenish}}
}

// running is the member with its pod, and the pod.
// What was asked for a sandbox is asked for it also when no pool has it any more.
func TestABindOfWhatIsNoPoolsIsEnforcedAllTheSame(t *testing.T) {
	silent := builders.MakePool("ns", "python").Obj()
	enforcing := builders.PoolFrom(silent).Annotation(settings.EnforcementKey, "enforce").Obj()
	fresh, pod := running(builders.MakeTemplate("ns", "python").Obj())
	used := func() *builders.Sandbox {
		return builders.SandboxFrom(fresh).Owners(builders.ControllerRef(builders.MakeClaim("ns", "c2").Obj()))
	}
	cases := map[string]struct {
		pool, member *unstructured.Unstructured
		want         string
	}{
		"the claim's pool says so":                   {enforcing, used().Obj(), "enforce"},
		"nobody's, the claim's pool says so":         {enforcing, builders.SandboxFrom(fresh).Owners().Obj(), "enforce"},
		"its own pool said so":                       {silent, used().Label(settings.EnforcementKey, "enforce").Obj(), "enforce"},
		"nobody says so":                             {silent, used().Obj(), ""},
		"a member is what its pool says, not itself": {silent, builders.SandboxFrom(fresh).Label(settings.EnforcementKey, "enforce").Obj(), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			claim := builders.MakeClaim("ns", "c1").Names(fresh.GetName()).Obj()
			template := builders.MakeTemplate("ns", "python").Obj()
			p := newPlatform(newStore(claim, tc.pool, template, tc.member, pod), nil)
			w, ok := p.Classify(admissionv1.Update, tc.member, builders.Bound(tc.member, claim, template).Obj())
			if !ok {
				t.Fatal("this is no bind")
			}
			f, err := p.Snapshot(t.Context(), w)
			if err != nil || f.Enforcement != tc.want {
				t.Errorf("enforcement %q, error %v, want %q", f.Enforcement, err, tc.want)
			}
		})
	}
}

func running(template *unstructured.Unstructured) (member, pod *unstructured.Unstructured) {
	member = builders.MakeMember(testPool, template).Name("python-abc").UID("uid-m").
		Set([]any{"10.0.0.1"}, "status", "podIPs").Obj()
	pod = builders.MakePod(member).Stored("node-1").Set([]any{map[string]any{"ip": "10.0.0.1"}}, "status", "podIPs").Obj()
	return member, pod
}

func TestSnapshotJudged(t *testing.T) {
	v1 := builders.MakeTemplate("ns", "python").Image("sandbox:v1").Obj()
	v2 := builders.MakeTemplate("ns", "python").Image("sandbox:v2").Obj()
	other := builders.MakeTemplate("ns", "other").Image("sandbox:v2").Obj()
	recreate := builders.MakePool("ns", "python").Strategy("Recreate").Obj()
	claim := builders.MakeClaim("ns", "c1").Names("python-abc").Obj()
	stale, stalePod := running(v1)
	fresh, freshPod := running(v2)
	plain := builders.SandboxFrom(fresh).Unset("spec", "podTemplate", "spec", "automountServiceAccountToken").
		Unset("spec", "podTemplate", "spec", "dnsPolicy").Unset("spec", "podTemplate", "spec", "dnsConfig").Obj()
	held := builders.MakeColdStart(claim, v2).Obj()
	heldElsewhere := builders.SandboxFrom(held).Name("elsewhere").Obj()
	bind := func(m *unstructured.Unstructured) platform.Write {
		w, _ := (&Platform{}).Classify(admissionv1.Update, m, builders.Bound(m, claim, v2).Obj())
		return w
	}
	create := func(m *unstructured.Unstructured) platform.Write {
		w, _ := (&Platform{}).Classify(admissionv1.Create, nil, m)
		return w
	}
	remembered := func(w platform.Write, names ...string) platform.Write {
		w.MayHold = names
		return w
	}
	alpha := builders.MakeClaimV1Alpha1("ns", "c1", "python", "none").Obj()
	withEnv := builders.MakeClaim("ns", "c1").Env("", "TOKEN", "1").Obj()
	open := builders.TemplateFrom(v2).EnvPolicy("Allowed").Obj()
	openV1 := builders.TemplateFrom(v1).EnvPolicy("Allowed").Obj()
	lateEnv := builders.MakeColdStart(withEnv, builders.TemplateFrom(openV1).Env("TOKEN", "1").Obj()).Obj()
	cases := map[string]struct {
		write  platform.Write
		stored []*unstructured.Unstructured
		want   freshness.Reason
	}{
		"fresh":                          {bind(fresh), []*unstructured.Unstructured{claim, recreate, v2, freshPod}, freshness.Fresh},
		"stale":                          {bind(stale), []*unstructured.Unstructured{claim, recreate, v2, stalePod}, freshness.StaleRevision},
		"pod gone":                       {bind(fresh), []*unstructured.Unstructured{claim, recreate, v2}, freshness.PodFinished},
		"claim gone":                     {bind(fresh), []*unstructured.Unstructured{recreate, v2, freshPod}, freshness.ClaimGone},
		"pool gone":                      {bind(fresh), []*unstructured.Unstructured{claim, v2, freshPod}, freshness.PoolGone},
		"template gone":                  {bind(fresh), []*unstructured.Unstructured{claim, recreate, freshPod}, freshness.TemplateGone},
		"pool switched":                  {bind(fresh), []*unstructured.Unstructured{claim, builders.PoolFrom(recreate).Template("other").Obj(), v2, other, freshPod}, freshness.TemplateMismatch},
		"cold sandbox held":              {bind(fresh), []*unstructured.Unstructured{claim, recreate, v2, freshPod, held}, freshness.ClaimHoldsAnother},
		"held by status":                 {bind(fresh), []*unstructured.Unstructured{builders.ClaimFrom(claim).Set("elsewhere", "status", "sandbox", "name").Obj(), recreate, v2, freshPod, heldElsewhere}, freshness.ClaimHoldsAnother},
		"held, as was remembered":        {remembered(bind(fresh), "elsewhere"), []*unstructured.Unstructured{claim, recreate, v2, freshPod, heldElsewhere}, freshness.ClaimHoldsAnother},
		"cold start, held as remembered": {remembered(create(builders.MakeColdStart(claim, v2).Obj()), "elsewhere"), []*unstructured.Unstructured{claim, recreate, v2, heldElsewhere}, freshness.ClaimHoldsAnother},
		"remembered, but never stored":   {remembered(bind(fresh), "elsewhere", "gone"), []*unstructured.Unstructured{claim, recreate, v2, freshPod, builders.SandboxFrom(heldElsewhere).Owners(builders.ControllerRef(recreate)).Obj()}, freshness.Fresh},
		"the held one is going":          {bind(fresh), []*unstructured.Unstructured{claim, recreate, v2, freshPod, builders.SandboxFrom(held).Deleting(time.Unix(1, 0)).Obj()}, freshness.Fresh},
		"of that name, not the claim's":  {bind(fresh), []*unstructured.Unstructured{claim, recreate, v2, freshPod, builders.SandboxFrom(held).Owners().Obj()}, freshness.Fresh},
		"cold start, current":            {create(builders.MakeColdStart(claim, v2).Obj()), []*unstructured.Unstructured{claim, recreate, v2}, freshness.Fresh},
		"cold start, late cache":         {create(builders.MakeColdStart(claim, v1).Obj()), []*unstructured.Unstructured{claim, recreate, v2}, freshness.StaleRevision},
		"cold start with env, late":      {create(lateEnv), []*unstructured.Unstructured{withEnv, recreate, open}, freshness.StaleRevision},
		"cold start, pool switched":      {create(builders.MakeColdStart(claim, v2).Obj()), []*unstructured.Unstructured{claim, builders.PoolFrom(recreate).Template("other").Obj(), v2, other}, freshness.TemplateMismatch},
		"cold start, claim gone":         {create(builders.MakeColdStart(claim, v2).Obj()), []*unstructured.Unstructured{recreate, v2}, freshness.ClaimGone},
		"stale, for a claim with env":    {bind(stale), []*unstructured.Unstructured{builders.ClaimFrom(claim).Env("", "TOKEN", "1").Obj(), recreate, v2, stalePod}, freshness.StaleRevision},
		"without secure defaults":        {bind(plain), []*unstructured.Unstructured{claim, recreate, v2, freshPod}, freshness.UnknownRevision},
		"cold start beside a warm one":   {create(builders.MakeColdStart(claim, v2).Obj()), []*unstructured.Unstructured{claim, recreate, v2, builders.Bound(fresh, claim, v2).Obj()}, freshness.ClaimHoldsAnother},
		"cold start without a pool":      {create(builders.MakeColdStart(alpha, v1).Obj()), []*unstructured.Unstructured{alpha, v2}, freshness.StaleRevision},
		"birth":                          {create(builders.MakeMember(recreate, v2).Obj()), []*unstructured.Unstructured{recreate, v2}, freshness.Fresh},
		"birth, late cache":              {create(builders.MakeMember(recreate, v1).Obj()), []*unstructured.Unstructured{recreate, v2}, freshness.StaleRevision},
		"node set aside, tolerated":      {bind(fresh), []*unstructured.Unstructured{claim, recreate, v2, tolerating(freshPod, dedicatedFor), dedicatedNode}, freshness.Fresh},
		"node set aside, not tolerated":  {bind(fresh), []*unstructured.Unstructured{claim, recreate, v2, freshPod, dedicatedNode}, freshness.NodeLeaving},
		"idle":                           {platform.Write{Operation: freshness.Idle, New: fresh}, []*unstructured.Unstructured{recreate, v2, freshPod}, freshness.Fresh},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := newPlatform(newStore(tc.stored...), history{v2, openV1, v1}).Snapshot(t.Context(), tc.write)
			if err != nil {
				t.Fatal(err)
			}
			if v := freshness.Judge(f.Snapshot); v.Reason != tc.want {
				t.Errorf("judged %s (%s), want %s", v.Reason, v.Detail, tc.want)
			}
			if f.Taken != nil {
				t.Errorf("it takes pod %s", f.Taken.GetName())
			}
		})
	}
}

// What is read is part of the price of a bind, and none of it may be missing.
func TestSnapshotReads(t *testing.T) {
	v2 := builders.MakeTemplate("ns", "python").Obj()
	claim := builders.MakeClaim("ns", "c1").Names("python-abc").Obj()
	member, pod := running(v2)
	s := newStore(claim, testPool, v2, pod)
	w, _ := (&Platform{}).Classify(admissionv1.Update, member, builders.Bound(member, claim, v2).Obj())
	facts, err := newPlatform(s, nil).Snapshot(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := facts.Namespace.Labels(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(s.read)
	want := []string{"namespace/ns", "node/node-1", "pod/python-abc", "sandbox/c1", "sandboxclaim/c1", "sandboxtemplate/python", "sandboxwarmpool/python"}
	if diff := cmp.Diff(want, s.read); diff != "" {
		t.Errorf("reads (-want,+got):\n%s", diff)
	}
}

func TestWhatCannotBeReadIsNotDecided(t *testing.T) {
	v2 := builders.MakeTemplate("ns", "python").Obj()
	claim := builders.MakeClaim("ns", "c1").Names("python-abc").Obj()
	member, pod := running(v2)
	away := errors.New("etcd is away")
	for _, key := range []string{"node/node-1", "pod/python-abc", "sandbox/c1", "sandboxclaim/c1", "sandboxtemplate/python", "sandboxwarmpool/python"} {
		t.Run(key, func(t *testing.T) {
			labels := map[string]string{settings.EnforcementKey: "enforce"}
			s := newStore(claim, testPool, v2, pod, makeNamespace("ns", labels))
			s.fail[key] = away
			w, _ := (&Platform{}).Classify(admissionv1.Update, member, builders.Bound(member, claim, v2).Obj())
			facts, err := newPlatform(s, nil).Snapshot(t.Context(), w)
			if !errors.Is(err, away) {
				t.Errorf("Snapshot() error = %v, want one that wraps the read's", err)
			}
			// How to fail depends on the namespace.
			got, err := facts.Namespace.Labels()
			if diff := cmp.Diff(labels, got); diff != "" || err != nil {
				t.Errorf("labels of the namespace: error %v (-want,+got):\n%s", err, diff)
			}
		})
	}
}

// A bind in a pool that enforces depends on no namespace.
func TestANamespaceThatCannotBeReadIsForTheModeToTell(t *testing.T) {
	template := builders.MakeTemplate("ns", "python").Obj()
	claim := builders.MakeClaim("ns", "c1").Names("python-abc").Obj()
	member, pod := running(template)
	s := newStore(claim, testPool, template, pod)
	away := errors.New("etcd is away")
	s.fail["namespace/ns"] = away
	w, _ := (&Platform{}).Classify(admissionv1.Update, member, builders.Bound(member, claim, template).Obj())
	facts, err := newPlatform(s, nil).Snapshot(t.Context(), w)
	if err != nil {
		t.Errorf("Snapshot(): %v", err)
	}
	if _, err := facts.Namespace.Labels(); !errors.Is(err, away) {
		t.Errorf("Labels() error = %v, want one that wraps the read's", err)
	}
}

func makeNode(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	n := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "node-1"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}}
	change(n)
	return n
}

// tolerating gives a Pod tolerations, and dedicatedNode has the taint
// dedicated=sandbox:NoExecute.
func tolerating(pod *unstructured.Unstructured, tolerations ...any) *unstructured.Unstructured {
	return builders.PodFrom(pod).Set(tolerations, "spec", "tolerations").Obj()
}

var (
	dedicatedNode = makeNode(func(n *unstructured.Unstructured) {
		n.Object["spec"] = map[string]any{"taints": []any{map[string]any{"key": "dedicated", "value": "sandbox", "effect": "NoExecute"}}}
	})
	dedicatedFor = map[string]any{"key": "dedicated", "operator": "Equal", "value": "sandbox", "effect": "NoExecute"}
)

// Whoever gives up a member for its node has to know which version of it was read.
func TestSnapshotNamesTheNodeThatWasRead(t *testing.T) {
	v2 := builders.MakeTemplate("ns", "python").Image("sandbox:v2").Obj()
	recreate := builders.MakePool("ns", "python").Strategy("Recreate").Obj()
	fresh, freshPod := running(v2)
	on := func(node string) *unstructured.Unstructured {
		return builders.PodFrom(freshPod).Set(node, "spec", "nodeName").Obj()
	}
	node := dedicatedNode.DeepCopy()
	bare := builders.PodFrom(barePod(v2)).Set(node.GetName(), "spec", "nodeName").Obj()
	node.SetResourceVersion("7")
	idle := func(o *unstructured.Unstructured) platform.Write {
		return platform.Write{Operation: freshness.Idle, New: o}
	}
	create := func(o *unstructured.Unstructured) platform.Write {
		w, _ := (&Platform{}).Classify(admissionv1.Create, nil, o)
		return w
	}
	cases := map[string]struct {
		write platform.Write
		pod   *unstructured.Unstructured
		want  *platform.Node
	}{
		"a node":             {write: idle(fresh), pod: on(node.GetName()), want: &platform.Node{Name: node.GetName(), ResourceVersion: "7"}},
		"one that is gone":   {write: idle(fresh), pod: on("gone"), want: &platform.Node{Name: "gone"}},
		"none yet":           {write: idle(fresh), pod: builders.PodFrom(freshPod).Unset("spec", "nodeName").Obj()},
		"a birth's":          {write: create(fresh), pod: on(node.GetName())},
		"a cold start's":     {write: create(builders.MakeColdStart(builders.MakeClaim("ns", "python-abc").Obj(), v2).Obj()), pod: on(node.GetName())},
		"none of a bare Pod": {write: idle(builders.PodFrom(bare).Unset("spec", "nodeName").Obj())},
		"that of a bare Pod": {write: idle(bare), want: &platform.Node{Name: node.GetName(), ResourceVersion: "7"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stored := []*unstructured.Unstructured{recreate, v2, node}
			if tc.pod != nil {
				stored = append(stored, tc.pod)
			}
			f, err := newPlatform(newStore(stored...), history{v2}).Snapshot(t.Context(), tc.write)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, f.Node); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}
