package standin

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// guarded is a store of objects whose writes are judged and answered by what
// Freshbind judges and answers with, without an API server in between.
type guarded struct {
	client  *fake.FakeDynamicClient
	version string
	judge   *agentsandbox.Platform
	refused []string
}

func newGuarded(t *testing.T, version string, objs ...*unstructured.Unstructured) *guarded {
	t.Helper()
	kinds := map[schema.GroupVersionResource]string{{Version: "v1", Resource: "pods"}: "PodList"}
	for r, kind := range map[schema.GroupResource]string{
		upstream.Sandboxes: "SandboxList", upstream.SandboxClaims: "SandboxClaimList",
		upstream.SandboxTemplates: "SandboxTemplateList", upstream.SandboxWarmPools: "SandboxWarmPoolList",
	} {
		kinds[r.WithVersion(version)] = kind
	}
	g := &guarded{client: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds), version: version}
	for _, o := range objs {
		if err := g.client.Tracker().Create(resourceOf(o), o, o.GetNamespace()); err != nil {
			t.Fatal(err)
		}
	}
	g.judge = &agentsandbox.Platform{Reader: liveread.NewReader(g, nil), Resolver: g, History: g, DefaultStrategy: freshness.Recreate}
	g.client.PrependReactor("*", "sandboxes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		err := g.admit(t.Context(), a)
		return err != nil, nil, err
	})
	return g
}

func resourceOf(o *unstructured.Unstructured) schema.GroupVersionResource {
	resource := strings.ToLower(o.GetKind()) + "s"
	if o.GetKind() == "Sandbox" {
		resource = upstream.Sandboxes.Resource
	}
	return o.GroupVersionKind().GroupVersion().WithResource(resource)
}

// admit asks for a verdict on a write, and returns a denial as its writer sees it.
func (g *guarded) admit(ctx context.Context, a clienttesting.Action) error {
	op, old, obj, err := g.written(a)
	if err != nil || obj == nil {
		return err
	}
	w, ours := g.judge.Classify(op, old, obj)
	if !ours {
		return nil
	}
	facts, err := g.judge.Snapshot(ctx, w)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	v := freshness.Judge(facts.Snapshot)
	if v.Allowed {
		return nil
	}
	g.refused = append(g.refused, w.Judged().GetName()+" "+string(v.Reason))
	code, reason := g.judge.Answer(w.Operation, v.Reason)
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: v.Detail}}
}

func (g *guarded) written(a clienttesting.Action) (op admissionv1.Operation, old, obj *unstructured.Unstructured, err error) {
	switch w := a.(type) {
	case clienttesting.PatchAction:
		old, err = g.stored(w, w.GetName())
		if err != nil {
			return "", nil, nil, err
		}
		var patch map[string]any
		if err := json.Unmarshal(w.GetPatch(), &patch); err != nil {
			return "", nil, nil, err
		}
		obj = &unstructured.Unstructured{Object: merged(old.DeepCopy().Object, patch)}
		return admissionv1.Update, old, obj, nil
	case clienttesting.CreateAction:
		obj, _ = w.GetObject().(*unstructured.Unstructured)
		if a.GetVerb() == "create" {
			return admissionv1.Create, nil, obj, nil
		}
		old, err = g.stored(a, obj.GetName())
		return admissionv1.Update, old, obj, err
	}
	return "", nil, nil, nil
}

func (g *guarded) stored(a clienttesting.Action, name string) (*unstructured.Unstructured, error) {
	obj, err := g.client.Tracker().Get(a.GetResource(), a.GetNamespace(), name)
	if err != nil {
		return nil, err
	}
	return obj.(*unstructured.Unstructured), nil
}

// merged applies a JSON merge patch (RFC 7386).
func merged(into, patch map[string]any) map[string]any {
	if into == nil {
		into = map[string]any{}
	}
	for key, value := range patch {
		switch v := value.(type) {
		case nil:
			delete(into, key)
		case map[string]any:
			below, _ := into[key].(map[string]any)
			into[key] = merged(below, v)
		default:
			into[key] = v
		}
	}
	return into
}

// Get reads what is stored beside the client, which is held while it admits.
func (g *guarded) Get(_ context.Context, ref liveread.Ref) (*unstructured.Unstructured, error) {
	obj, err := g.client.Tracker().Get(ref.GVR, ref.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	return obj.(*unstructured.Unstructured), nil
}

func (g *guarded) Resource(_ context.Context, gr schema.GroupResource) (schema.GroupVersionResource, error) {
	if gr.Group == "" {
		return gr.WithVersion("v1"), nil
	}
	return gr.WithVersion(g.version), nil
}

func (*guarded) Revisions(context.Context, *unstructured.Unstructured) ([]agentsandbox.Recorded, error) {
	return nil, nil
}

// play has a pool with members of these images, a template that is at v2, and a
// controller that sees templates as they were before.
func play(t *testing.T, style Style, lateReads int, images ...string) (sandbox *unstructured.Unstructured, refused []string) {
	t.Helper()
	version := builders.V1Beta1
	claim := builders.MakeClaim("ns", "c1").Pool("python").Obj()
	if style == OneWrite {
		version = builders.V1Alpha1
		claim = builders.MakeClaimV1Alpha1("ns", "c1", "python", "default").Obj()
	}
	template := func(image string) *unstructured.Unstructured {
		return builders.MakeTemplate("ns", "python").APIVersion(version).Image(image).Obj()
	}
	pool := builders.MakePool("ns", "python").APIVersion(version).Obj()
	objs := []*unstructured.Unstructured{claim, pool, template("sandbox:v2")}
	var members []*unstructured.Unstructured
	for i, image := range images {
		name := scenario.Names("m", len(images))[i]
		b := builders.MakeMember(pool, template(image)).Name(name)
		if style == OneWrite {
			b = b.NoLabel(builders.LabelPodTemplateHash)
		}
		members = append(members, b.Obj())
		objs = append(objs, b.Obj(), builders.MakePod(b.Obj()).Obj())
	}
	g := newGuarded(t, version, objs...)
	c := &Controller{
		Client: dynamic.Interface(g.client), Namespace: "ns", Version: version, Style: style,
		Template: func() *unstructured.Unstructured {
			if lateReads--; lateReads >= 0 {
				return template("sandbox:v1")
			}
			return template("sandbox:v2")
		},
	}
	c.Offer(members...)
	name, err := c.Serve(t.Context(), "c1")
	if err != nil {
		t.Fatalf("%v; refused: %v", err, g.refused)
	}
	sandbox, err = c.sandboxes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return sandbox, g.refused
}

func TestClaimsEndOnAFreshSandbox(t *testing.T) {
	old, fresh := "sandbox:v1", "sandbox:v2"
	cases := map[string]struct {
		members   []string
		lateReads int
		want      string
		refused   int
	}{
		"fresh member":             {[]string{fresh}, 0, "m1", 0},
		"stale members, one fresh": {[]string{old, old, fresh}, 0, "m3", 2},
		"stale members only":       {[]string{old, old}, 0, "c1", 2},
		"no members, late cache":   {nil, 2, "c1", 2},
	}
	for name, tc := range cases {
		for _, style := range []Style{OneWrite, LockFree} {
			t.Run(name+", "+string(style), func(t *testing.T) {
				sandbox, refused := play(t, style, tc.lateReads, tc.members...)
				if sandbox.GetName() != tc.want || scenario.ImageOf(sandbox) != fresh {
					t.Errorf("claim got %s of %s, want %s of %s", sandbox.GetName(), scenario.ImageOf(sandbox), tc.want, fresh)
				}
				if owner := metav1.GetControllerOf(sandbox); owner == nil || owner.Name != "c1" {
					t.Errorf("its controller is %v, want the claim", owner)
				}
				stale := func(s string) bool { return strings.HasSuffix(s, string(freshness.UnknownRevision)) }
				if len(refused) != tc.refused || slices.ContainsFunc(refused, func(s string) bool { return !stale(s) }) {
					t.Errorf("refused %v, want %d for their content", refused, tc.refused)
				}
			})
		}
	}
}
