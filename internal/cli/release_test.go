package cli_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/release"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/clitest"
)

// midway is a pool in the middle of a rollout: two members hidden, one new, one
// with a claim, and a pool that Freshbind never did anything to.
func midway() []client.Object {
	v1, v2 := version("v1"), version("v2")
	p := pool(3).Annotation(settings.StrategyKey, "RollingUpdate").
		Annotation(settings.AdmitKey, "fresh").Annotation(settings.RolloutStateKey, "Progressing")
	marked := func(s *builders.Sandbox) *builders.Sandbox {
		return s.Label(settings.StampKey, "v1-x").Label(settings.EnforcementKey, "enforce").
			Annotation(settings.CreatedByKey, settings.CreatedByPool).Set("node-1", "status", "nodeName").Ready(true)
	}
	older := marked(one(p, v1, "older")).NoLabel(agentsandbox.TemplateRefHashLabel)
	oldest := marked(one(p, v1, "oldest")).NoLabel(agentsandbox.TemplateRefHashLabel)
	fresh := marked(one(p, v2, "fresh"))
	claim := builders.MakeClaim(ns, "c1").Pool("python").Annotation("freshbind.dev/requeued-at", "2026-01-31T12:00:00Z")
	bound := builders.Bound(one(p, v1, "bound").Obj(), claim.Obj(), v1).Label(settings.StampKey, "v1-x").Annotation(settings.BoundToKey, "u")
	bound.NoLabel(agentsandbox.TemplateRefHashLabel)
	other := builders.MakePool(ns, "node").Template("python").Replicas(1)
	return []client.Object{
		namespace("enforce"), v2, p.Obj(), older.Obj(), oldest.Obj(), fresh.Obj(), claim.Obj(), bound.Obj(),
		builders.MakePod(fresh.Obj()).Label(settings.StampKey, "v1-x").Obj(),
		other.Obj(), one(other, v2, "untouched").Set("node-1", "status", "nodeName").Ready(true).Obj(),
	}
}

var (
	ignoreMarked = cmpopts.IgnoreUnexported(release.Pool{})
	sorted       = cmpopts.SortSlices(strings.Compare)

	platforms = []cli.Objects{agentsandbox.Objects{}, kruise.Commands{}}
)

// released is what the cluster shows of a release.
type released struct {
	Hidden, Marked []string
	Inputs         map[string]string
}

func stored(t *testing.T, c *cli.Cluster) released {
	t.Helper()
	var out released
	for _, of := range []struct {
		gr    schema.GroupResource
		names []string
	}{
		{agentsandbox.Sandboxes, []string{"bound", "fresh", "older", "oldest", "untouched"}},
		{agentsandbox.Pods, []string{"fresh"}},
		{agentsandbox.Claims, []string{"c1"}},
		{agentsandbox.Pools, []string{"python"}},
	} {
		for _, name := range of.names {
			o, err := c.Get(t.Context(), of.gr, ns, name)
			if err != nil {
				t.Fatal(err)
			}
			// A claim's sandbox is without that label for good.
			if of.gr == agentsandbox.Sandboxes && agentsandbox.Shown(o) == (name == "bound") {
				out.Hidden = append(out.Hidden, name)
			}
			for _, keys := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
				for key := range keys {
					if len(key) > len(settings.Prefix) && key[:len(settings.Prefix)] == settings.Prefix && key != settings.StrategyKey {
						out.Marked = append(out.Marked, of.gr.Resource+"/"+name+" "+key)
					}
				}
			}
			if of.gr == agentsandbox.Pools {
				out.Inputs = o.GetAnnotations()
			}
		}
	}
	return out
}

func TestRelease(t *testing.T) {
	c := newCluster(t, midway()...)
	was := stored(t, c)
	want := release.Report{
		Pools: []*release.Pool{{Kind: "SandboxWarmPool", Namespace: ns, Name: "python", Shown: 2, Offered: 1}},
		Unmarked: map[string]int{
			"Sandbox.agents.x-k8s.io": 4, "Pod": 1, "SandboxClaim.extensions.agents.x-k8s.io": 1, "SandboxWarmPool.extensions.agents.x-k8s.io": 1,
		},
		Left: []string{
			"1 pools with annotations of yours (freshbind.dev/…): nobody reads them now, and they count again after an install",
			"1 namespaces with your label freshbind.dev/enforcement",
		},
	}
	for _, dry := range []cli.DryRun{cli.ClientSide, cli.ServerSide, cli.Real} {
		got, err := c.Release(t.Context(), dry, platforms, "")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, ignoreMarked); diff != "" {
			t.Errorf("--dry-run=%s (-want,+got):\n%s", dry, diff)
		}
		if dry != cli.Real {
			if diff := cmp.Diff(was, stored(t, c), sorted); diff != "" {
				t.Errorf("--dry-run=%s changed something (-before,+after):\n%s", dry, diff)
			}
		}
	}
	now := stored(t, c)
	if diff := cmp.Diff(released{Inputs: map[string]string{settings.StrategyKey: "RollingUpdate"}}, now); diff != "" {
		t.Errorf("after the release (-want,+got):\n%s", diff)
	}
	older, err := c.Get(t.Context(), agentsandbox.Sandboxes, ns, "older")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := older.GetLabels()[agentsandbox.TemplateRefHashLabel], agentsandbox.NameHash("python"); got != want {
		t.Errorf("a member that was hidden is shown as %q, want %q", got, want)
	}
}

// halfwayTwice has what midway has, and a SandboxSet of OpenKruise Agents whose member is hidden.
func halfwayTwice(t *testing.T, funcs interceptor.Funcs) *cli.Cluster {
	t.Helper()
	set := clitest.Box("SandboxSet", "boxes", map[string]any{"replicas": int64(1), "template": clitest.BoxPod("v1")})
	set.SetAnnotations(map[string]string{settings.StrategyKey: "Recreate", settings.RolloutStateKey: "Progressing"})
	box := clitest.BoxMember(set, "box", "v1")
	box[1].SetLabels(map[string]string{settings.StampKey: "v1-x"})
	c := clitest.NewBoth(t, funcs, append(append(midway(), set), box...)...)
	member := box[0]
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(member), member); err != nil {
		t.Fatal(err)
	}
	if err := c.Client.Patch(t.Context(), member, client.RawPatch(types.MergePatchType, kruise.Objects{}.Hide(member))); err != nil {
		t.Fatal(err)
	}
	return c
}

// Where there are two platforms, the members of both come back, and what is wrong with one
// holds up no other.
func TestReleaseOfTwoPlatforms(t *testing.T) {
	sandboxes := &release.Pool{Kind: "SandboxWarmPool", Namespace: ns, Name: "python", Shown: 2, Offered: 1}
	boxes := &release.Pool{Kind: "SandboxSet", Namespace: ns, Name: "boxes", Shown: 1}
	refuses := func(group string) interceptor.Funcs {
		return interceptor.Funcs{List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if gvk, err := w.GroupVersionKindFor(list); err == nil && gvk.Group == group && gvk.Kind == "SandboxList" {
				return errors.New("conversion webhook: no endpoints available")
			}
			return w.List(ctx, list, opts...)
		}}
	}
	for name, tc := range map[string]struct {
		funcs   interceptor.Funcs
		want    []*release.Pool
		wantErr bool
	}{
		"both":                  {want: []*release.Pool{sandboxes, boxes}},
		"the first cannot list": {refuses(agentsandbox.CoreGroup), []*release.Pool{{Kind: sandboxes.Kind, Namespace: ns, Name: sandboxes.Name}, boxes}, true},
		"nor the second":        {refuses(kruise.Group), []*release.Pool{sandboxes, {Kind: boxes.Kind, Namespace: ns, Name: boxes.Name}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := halfwayTwice(t, tc.funcs)
			report, err := c.Release(t.Context(), cli.Real, platforms, ns)
			if (err != nil) != tc.wantErr {
				t.Errorf("error %v, want one: %t", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, report.Pools, ignoreMarked); diff != "" {
				t.Errorf("pools (-want,+got):\n%s", diff)
			}
			if err != nil {
				return
			}
			want := map[string]int{
				"Sandbox.agents.x-k8s.io": 4, "Pod": 2, "SandboxClaim.extensions.agents.x-k8s.io": 1, "SandboxWarmPool.extensions.agents.x-k8s.io": 1,
				"SandboxSet.agents.kruise.io": 1,
			}
			if diff := cmp.Diff(want, report.Unmarked); diff != "" {
				t.Errorf("unmarked (-want,+got):\n%s", diff)
			}
			if left := "2 pools with annotations of yours"; !strings.HasPrefix(report.Left[0], left) {
				t.Errorf("left is %q, want %q first", report.Left, left)
			}
		})
	}
}

func TestReleaseTwiceWritesOnce(t *testing.T) {
	var writes atomic.Int32
	c := clitest.New(t, interceptor.Funcs{
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			writes.Add(1)
			return w.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, w client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			writes.Add(1)
			return w.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}, midway()...)
	var counts []int32
	for range 2 {
		if _, err := c.Release(t.Context(), cli.Real, platforms, ns); err != nil {
			t.Fatal(err)
		}
		counts = append(counts, writes.Swap(0))
	}
	if counts[0] == 0 || counts[1] != 0 {
		t.Errorf("%v writes, want some and then none", counts)
	}
}

// What others do between the list and the patch.
func TestReleaseBesideOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile  func(*unstructured.Unstructured)
		wantHidden []string
		wantShown  int
	}{
		"another writer":               {func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) }, nil, 2},
		"a claim that takes it":        {func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) }, []string{"older"}, 1},
		"a controller that deletes it": {func(u *unstructured.Unstructured) { u.SetUID("another") }, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var once atomic.Bool
			c := clitest.New(t, interceptor.Funcs{
				Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					if o.GetName() == "older" && !once.Swap(true) {
						other := o.DeepCopyObject().(*unstructured.Unstructured)
						tc.meanwhile(other)
						if err := w.Update(ctx, other); err != nil {
							return err
						}
					}
					return w.Patch(ctx, o, p, opts...)
				},
			}, midway()...)
			report, err := c.Release(t.Context(), cli.Real, platforms, ns)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.wantHidden, stored(t, c).Hidden); diff != "" || report.Shown() != tc.wantShown || report.Failed > 0 {
				t.Errorf("%d shown, want %d; failures %v; hidden (-want,+got):\n%s", report.Shown(), tc.wantShown, report.Failures, diff)
			}
		})
	}
}

// A member that somebody else guards holds up no other; an API server that is
// away ends it.
func TestReleaseRefused(t *testing.T) {
	refused := apierrors.NewForbidden(agentsandbox.Sandboxes, "older", errors.New("not yours"))
	for name, tc := range map[string]struct {
		err        error
		wantFailed int
		wantErr    bool
	}{
		"by a policy":  {refused, 3, false},
		"by a network": {errors.New("connection refused"), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := clitest.New(t, interceptor.Funcs{
				Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					if o.GetName() == "older" || o.GetName() == "c1" {
						return tc.err
					}
					return w.Patch(ctx, o, p, opts...)
				},
			}, midway()...)
			report, err := c.Release(t.Context(), cli.Real, platforms, ns)
			if (err != nil) != tc.wantErr || report.Failed != tc.wantFailed {
				t.Fatalf("error %v, failures %v, want %d", err, report.Failures, tc.wantFailed)
			}
			if hidden := fmt.Sprint(stored(t, c).Hidden); !tc.wantErr && hidden != "[older]" {
				t.Errorf("hidden are %s", hidden)
			}
		})
	}
}

// Whoever removed agent-sandbox first can still remove Freshbind.
func TestReleaseWithoutAgentSandbox(t *testing.T) {
	c := newCluster(t, namespace("enforce"))
	c.Resolver = nothingServed{}
	report, err := c.Release(t.Context(), cli.Real, platforms, "")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"1 namespaces with your label freshbind.dev/enforcement"}; !cmp.Equal(want, report.Left) {
		t.Errorf("left is %v, want %v", report.Left, want)
	}
}

type nothingServed struct{}

// Resource says that discovery knows nothing.
func (nothingServed) Resource(context.Context, schema.GroupResource) (schema.GroupVersionResource, error) {
	return schema.GroupVersionResource{}, fmt.Errorf("asking: %w", liveread.ErrNotServed)
}
