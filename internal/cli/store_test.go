package cli_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/clitest"
)

// until polls until the pool is so.
func until(t *testing.T, c *cli.Cluster, store *cli.Store, want func(cli.Pool) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	judge := c.Judge(store)
	for {
		found, err := judge.Pools(ctx, cli.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 1 && want(found[0]) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the store never showed it; pools: %+v", found)
		case <-store.Changed():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestFollow(t *testing.T) {
	v1, v2 := version("v1"), version("v2")
	p := pool(2)
	const collections = 5
	var lists, asked, watched atomic.Int64
	// The first watches fail, as when the connection is lost: what happened
	// meanwhile is read anew.
	c := clitest.New(t, interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			if asked.Add(1) <= collections {
				return nil, apierrors.NewResourceExpired("too old")
			}
			w, err := c.Watch(ctx, list, opts...)
			watched.Add(1)
			return w, err
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			lists.Add(1)
			return c.List(ctx, list, opts...)
		},
	}, append(idle(p, v1, "a", 2), v1, p.Obj(), namespace("enforce"))...)
	store, err := c.Load(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	before := lists.Load()
	var reported atomic.Int64
	store.Follow(t.Context(), func(err error) {
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("told of %v", err)
		}
		reported.Add(1)
	})
	if err := c.Client.Create(t.Context(), clitest.Revision(t, v1, 1, clitest.Now)); err != nil {
		t.Fatal(err)
	}
	changed, err := c.Get(t.Context(), templatesOf, ns, "python")
	if err != nil {
		t.Fatal(err)
	}
	changed.Object["spec"] = v2.Object["spec"]
	changed.SetGeneration(changed.GetGeneration() + 1)
	if err := c.Client.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	until(t, c, store, func(p cli.Pool) bool { return p.Stale == 2 })
	// From here on every collection is watched: a fake watch does not tell what
	// happened between the list and itself.
	until(t, c, store, func(cli.Pool) bool { return lists.Load() >= before+collections && watched.Load() >= collections })
	if reported.Load() != collections {
		t.Errorf("told of %d lost watches", reported.Load())
	}
	if err := c.Client.Delete(t.Context(), one(p, v1, "python-a0").Obj()); err != nil {
		t.Fatal(err)
	}
	until(t, c, store, func(p cli.Pool) bool { return p.Stale == 1 })
	if err := c.Client.Create(t.Context(), one(p, v2, "python-b").Ready(true).Obj()); err != nil {
		t.Fatal(err)
	}
	until(t, c, store, func(p cli.Pool) bool { return p.Updated == 1 })
}

var templatesOf = schema.GroupResource{Group: builders.GroupExtensions, Resource: "sandboxtemplates"}

func TestLoadTellsWhatCouldNotBeRead(t *testing.T) {
	gone := errors.New("connection refused")
	c := clitest.New(t, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return gone },
	}, namespace(""))
	if _, err := c.Load(t.Context(), ns); !errors.Is(err, gone) || !strings.HasPrefix(err.Error(), "listing ") {
		t.Errorf("error = %v", err)
	}
}

func TestFooter(t *testing.T) {
	claim := builders.MakeClaim(ns, "c1").Pool("python").Obj()
	installed := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "freshbind"}}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "freshbind-system", Name: "freshbind"},
		Spec:       coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(clitest.Now.Add(-4 * time.Second)))},
	}
	tested := func(result string) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "freshbind-system", Name: "freshbind-self-test", Annotations: map[string]string{"freshbind.dev/self-test": result}},
			Spec:       coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(clitest.Now.Add(-11 * time.Second)))},
		}
	}
	behind := installed.DeepCopy()
	behind.Webhooks = []admissionregistrationv1.ValidatingWebhook{{ClientConfig: admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "freshbind-system", Name: "freshbind"},
	}}}
	endpoints := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "freshbind-system", Name: "freshbind-x", Labels: map[string]string{discoveryv1.LabelServiceName: "freshbind"}},
		Endpoints: []discoveryv1.Endpoint{
			{Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}, {Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}},
		},
	}
	const absent = "Guard: not installed (there is no ValidatingWebhookConfiguration freshbind), so nothing is refused."
	cases := map[string]struct {
		objs []client.Object
		want string
	}{
		"not installed":  {want: absent},
		"nobody leads":   {objs: []client.Object{installed}, want: "Guard: webhooks are installed; no leader is elected."},
		"one leads":      {objs: []client.Object{installed, lease}, want: "Guard: webhooks are installed; the leader was alive 4s ago."},
		"a test passed":  {objs: []client.Object{installed, lease, tested("passed")}, want: "Guard: webhooks are installed; the leader was alive 4s ago. The last self-test passed 11s ago."},
		"a test failed":  {objs: []client.Object{installed, lease, tested("x509")}, want: "Guard: webhooks are installed; the leader was alive 4s ago. The last self-test, 11s ago, FAILED: run freshbind doctor."},
		"replicas known": {objs: []client.Object{behind, endpoints}, want: "Guard: 1/2 replicas are ready; no leader is elected."},
		"let through": {
			objs: []client.Object{
				event(claim, "e1", "StaleRevision", "m", "would be refused: x", -time.Minute, 3),
				event(claim, "e2", "StaleRevision", "m", "would be refused: y", -time.Minute, 1),
				event(claim, "e3", "StaleRevision", "m", "x", -time.Minute, 1),
				event(claim, "e4", "StaleRevision", "m", "would be refused: y", -2*time.Hour, 1),
			},
			want: absent + " Mode audit let through 4 binds in the last hour that enforce would have refused.",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := newCluster(t, tc.objs...).Footer(t.Context(), ns)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Footer() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestPrinterOfObjects(t *testing.T) {
	type item struct {
		Name string `json:"name"`
	}
	columns := []cli.Column[item]{
		cli.Text("NAME", func(i item) string { return i.Name }),
		cli.OnlyWide(cli.Number("LENGTH", func(i item) int { return len(i.Name) })),
	}
	cases := map[string]struct {
		output     cli.Output
		list, each string
	}{
		"json": {
			cli.Output{Format: cli.JSON},
			`{
  "apiVersion": "v1",
  "items": [
    {
      "apiVersion": "cli.freshbind.dev/v1alpha1",
      "kind": "Item",
      "name": "a"
    },
    {
      "apiVersion": "cli.freshbind.dev/v1alpha1",
      "kind": "Item",
      "name": "bcd"
    }
  ],
  "kind": "List",
  "metadata": {}
}
`, `{
  "apiVersion": "cli.freshbind.dev/v1alpha1",
  "kind": "Item",
  "name": "a"
}
{
  "apiVersion": "cli.freshbind.dev/v1alpha1",
  "kind": "Item",
  "name": "bcd"
}
`,
		},
		"yaml": {
			cli.Output{Format: cli.YAML},
			"apiVersion: v1\nitems:\n- apiVersion: cli.freshbind.dev/v1alpha1\n  kind: Item\n  name: a\n" +
				"- apiVersion: cli.freshbind.dev/v1alpha1\n  kind: Item\n  name: bcd\nkind: List\nmetadata: {}\n",
			"apiVersion: cli.freshbind.dev/v1alpha1\nkind: Item\nname: a\n---\napiVersion: cli.freshbind.dev/v1alpha1\nkind: Item\nname: bcd\n",
		},
		"jsonpath":       {cli.Output{Format: "jsonpath={..name}"}, "a bcd", "abcd"},
		"go-template":    {cli.Output{Format: "go-template={{.kind}};"}, "List;", "Item;Item;"},
		"custom columns": {cli.Output{Format: "custom-columns=N:.name,K:{.kind},X:.x.y"}, "N     K      X\na     Item   <none>\nbcd   Item   <none>\n", "N     K      X\na     Item   <none>\nbcd   Item   <none>\n"},
		"table":          {cli.Output{}, "NAME\na\nbcd\n", "NAME\na\nbcd\n"},
		"wide":           {cli.Output{Format: cli.Wide}, "NAME   LENGTH\na      1\nbcd    3\n", "NAME   LENGTH\na      1\nbcd    3\n"},
		"name":           {cli.Output{Format: cli.Name}, "item/a\nitem/bcd\n", "item/a\nitem/bcd\n"},
	}
	items := []item{{"a"}, {"bcd"}}
	name := func(i item) string { return "item/" + i.Name }
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			var list, each strings.Builder
			if err := cli.NewPrinter(tc.output, "Item", name, columns).Print(&list, items); err != nil {
				t.Fatal(err)
			}
			if err := cli.NewPrinter(tc.output, "Item", name, columns).PrintEach(&each, items); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.list, list.String()); diff != "" {
				t.Errorf("Print() (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.each, each.String()); diff != "" {
				t.Errorf("PrintEach() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestFormatsThatAreRefused(t *testing.T) {
	for format, want := range map[string]string{
		"xml":                    `-o "xml": accepted are json, yaml, jsonpath=, go-template=, custom-columns=`,
		"wide":                   `-o "wide": accepted are`,
		"jsonpath={.a":           "unclosed action",
		"jsonpath=":              "no template given",
		"go-template={{":         "unclosed action",
		"custom-columns=":        "a column is HEADER:.path",
		"custom-columns=A":       "a column is HEADER:.path",
		"custom-columns=A:.b[":   "custom-columns=A:.b[",
		"jsonpath-file=/no/file": "/no/file",
	} {
		err := (&cli.Output{Format: format}).Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-o %s: error %v, want %q", format, err, want)
		}
	}
}

// Later lines of a watch stand below the first ones, without a second header.
func TestATableOfAWatch(t *testing.T) {
	table := cli.Table[string]{Columns: []cli.Column[string]{
		cli.Text("NAME", func(s string) string { return s }), cli.Text("SAME", func(s string) string { return s }),
	}}
	var b strings.Builder
	for _, rows := range [][]string{{"longer"}, {"a"}} {
		if err := table.Write(&b, rows); err != nil {
			t.Fatal(err)
		}
	}
	want := "NAME     SAME\nlonger   longer\na        a\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("Write() (-want,+got):\n%s", diff)
	}
}
