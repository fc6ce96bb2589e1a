package cli_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/clitest"
)

const boxBefore, boxAfter = "box:1", "box:2"

// boxes are a SandboxTemplate as it is and as it was, and a SandboxSet that refers to it.
type boxes struct{ before, template, set *unstructured.Unstructured }

func newBoxes() boxes {
	set := clitest.Box("SandboxSet", "pool", map[string]any{"replicas": int64(3), "templateRef": map[string]any{"name": "tpl"}})
	set.SetAnnotations(map[string]string{settings.StrategyKey: string(freshness.Recreate)})
	return boxes{
		clitest.Box("SandboxTemplate", "tpl", map[string]any{"template": clitest.BoxPod(boxBefore)}),
		clitest.Box("SandboxTemplate", "tpl", map[string]any{"template": clitest.BoxPod(boxAfter)}), set,
	}
}

// objects are those, with their history and three members: fresh, stale and without a Pod.
func (b boxes) objects(t *testing.T) []client.Object {
	out := []client.Object{
		namespace("enforce"), b.template, b.set,
		clitest.BoxRevision(t, b.before, 4, clitest.Now.Add(-time.Hour)), clitest.BoxRevision(t, b.template, 5, clitest.Now.Add(-time.Minute)),
	}
	out = append(out, clitest.BoxMember(b.set, "fresh", boxAfter)...)
	out = append(out, clitest.BoxMember(b.set, "stale", boxBefore)...)
	return append(out, clitest.BoxMember(b.set, "unseen", "")...)
}

// A pool that refers to a template is compared with that, by its members' Pods, whatever has
// the template's name besides.
func TestPoolsThatReferToATemplate(t *testing.T) {
	type counts struct {
		Updated, Ready, Claimable, Stale, Unknown, Unusable int
		Number                                              int64
		State                                               cli.State
	}
	type member struct {
		Class  freshness.Class
		Number int64
	}
	halfway, ready := counts{1, 3, 1, 1, 0, 0, 5, cli.Pending}, map[string]member{
		"fresh": {freshness.Current, 5}, "stale": {freshness.Stale, 4}, "unseen": {freshness.Unclassified, 0},
	}
	for name, tc := range map[string]struct {
		change  func(t *testing.T, b boxes, objs []client.Object) []client.Object
		without schema.GroupResource
		want    counts
		members map[string]member
	}{
		"halfway": {func(_ *testing.T, _ boxes, objs []client.Object) []client.Object { return objs }, schema.GroupResource{}, halfway, ready},
		"beside a namesake of the template": {func(t *testing.T, _ boxes, objs []client.Object) []client.Object {
			namesake := clitest.Box("SandboxSet", "tpl", map[string]any{"replicas": int64(0), "template": clitest.BoxPod("another")})
			return append(objs, namesake, clitest.BoxRevision(t, namesake, 9, clitest.Now))
		}, schema.GroupResource{}, halfway, ready},
		"that says more than the template": {func(t *testing.T, b boxes, _ []client.Object) []client.Object {
			b.set.Object["spec"].(map[string]any)["runtimes"] = []any{map[string]any{"name": "r"}}
			return b.objects(t)
		}, schema.GroupResource{}, halfway, ready},
		"of a template that is gone": {func(_ *testing.T, b boxes, objs []client.Object) []client.Object {
			var out []client.Object
			for _, obj := range objs {
				if obj != client.Object(b.template) {
					out = append(out, obj)
				}
			}
			return out
		}, schema.GroupResource{}, counts{Ready: 3, State: cli.TemplateGone}, nil},
		"where no templates are served": {
			func(_ *testing.T, _ boxes, objs []client.Object) []client.Object { return objs }, kruise.Templates, counts{Ready: 3, State: cli.TemplateGone}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBoxes()
			c := clitest.NewKruise(t, tc.without, interceptor.Funcs{}, tc.change(t, b, b.objects(t))...)
			for _, p := range judge(t, c) {
				if p.Name != "pool" {
					continue
				}
				got := counts{p.Updated, p.Ready, p.Claimable, p.Stale, p.Unknown, p.Unusable, p.Number, p.State}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("pool (-want,+got):\n%s", diff)
				}
				var members map[string]member
				for _, m := range p.Members {
					if members == nil && tc.members != nil {
						members = map[string]member{}
					}
					if tc.members != nil {
						members[m.Name] = member{m.Class, m.Number}
					}
				}
				if diff := cmp.Diff(tc.members, members); diff != "" {
					t.Errorf("members (-want,+got):\n%s", diff)
				}
				return
			}
			t.Error("there is no such pool")
		})
	}
}

// forbidding lets nobody list objects of a kind.
func forbidding(kind string) interceptor.Funcs {
	return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if list.GetObjectKind().GroupVersionKind().Kind == kind+"List" {
			return apierrors.NewForbidden(kruise.Templates, "", nil)
		}
		return c.List(ctx, list, opts...)
	}}
}

// Who may not read templates is told so of pools that refer to one, and of others all there is.
func TestTemplatesThatMayNotBeRead(t *testing.T) {
	b := newBoxes()
	inline := clitest.Box("SandboxSet", "inline", map[string]any{"replicas": int64(1), "template": clitest.BoxPod(boxAfter)})
	objs := append(b.objects(t), inline)
	objs = append(objs, clitest.BoxMember(inline, "m", boxAfter)...)
	pools := judge(t, clitest.NewKruise(t, schema.GroupResource{}, forbidding("SandboxTemplate"), objs...))
	got := map[string]cli.State{}
	for _, p := range pools {
		got[p.Name] = p.State
		if p.Name == "pool" && !strings.Contains(p.Message, "sandboxtemplates") {
			t.Errorf("the pool says %q", p.Message)
		}
	}
	if diff := cmp.Diff(map[string]cli.State{"inline": cli.Complete, "pool": cli.Unreadable}, got); diff != "" {
		t.Errorf("states (-want,+got):\n%s", diff)
	}
}

// Where the kind of a template is named, pools do not count that are of another one.
func TestPoolsByTheKindOfTheirTemplate(t *testing.T) {
	b := newBoxes()
	namesake := clitest.Box("SandboxSet", "tpl", map[string]any{"replicas": int64(0), "template": clitest.BoxPod(boxAfter)})
	c := clitest.NewKruise(t, schema.GroupResource{}, interceptor.Funcs{}, append(b.objects(t), namesake)...)
	store, err := c.Load(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string][]string{"": {"pool", "tpl"}, "SandboxTemplate": {"pool"}} {
		found, err := c.Judge(store).Pools(t.Context(), cli.Selection{Template: "tpl", TemplateKind: kind})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range found {
			got = append(got, p.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pools of kind %q (-want,+got):\n%s", kind, diff)
		}
	}
}

// A member that refers to a template is explained by that, and not by its namesake.
func TestExplainMembersThatRefer(t *testing.T) {
	b := newBoxes()
	b.set.Object["spec"].(map[string]any)["runtimes"] = []any{map[string]any{"name": "r"}}
	namesake := clitest.Box("SandboxSet", "tpl", map[string]any{"replicas": int64(0), "template": clitest.BoxPod(boxBefore)})
	objs := append(b.objects(t), namesake, clitest.BoxRevision(t, namesake, 9, clitest.Now))
	c := clitest.NewKruise(t, schema.GroupResource{}, interceptor.Funcs{}, objs...)
	for name, want := range map[string][]string{
		"fresh": {"runs      template tpl revision 5 (", "in force  revision 5 ("},
		"stale": {"StaleRevision", "runs      template tpl revision 4 (", "in force  revision 5 ("},
	} {
		story, err := c.ExplainMember(t.Context(), ns, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if got := story.Text(false); !strings.Contains(got, text) {
				t.Errorf("member %s: it does not say %q:\n%s", name, text, got)
			}
		}
	}
}

// What a claim got that refers to a template shows by its Pod alone.
func TestExplainClaimsOfSandboxesThatRefer(t *testing.T) {
	b := newBoxes()
	claim := clitest.Box("SandboxClaim", "c", map[string]any{"templateName": "pool"})
	claim.SetCreationTimestamp(metav1.NewTime(clitest.Now))
	for image, want := range map[string][]string{
		boxAfter:  {": FRESH,", "template tpl revision 5 ("},
		boxBefore: {": STALE,", "template tpl revision 4 ("},
	} {
		taken := clitest.BoxMember(b.set, "taken", image)
		labels := taken[0].GetLabels()
		labels[kruise.Group+"/sandbox-claimed"], labels[kruise.Group+"/claim-name"] = "true", "c"
		taken[0].SetLabels(labels)
		taken[0].SetOwnerReferences(nil)
		taken[0].SetAnnotations(map[string]string{kruise.Group + "/owner": string(claim.GetUID())})
		c := clitest.NewKruise(t, schema.GroupResource{}, interceptor.Funcs{}, append(append(newBoxes().objects(t), claim.DeepCopy()), taken...)...)
		story, err := c.ExplainClaim(t.Context(), ns, "c")
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if got := story.Text(false); !strings.Contains(got, text) {
				t.Errorf("of %s: it does not say %q:\n%s", image, text, got)
			}
		}
	}
}
