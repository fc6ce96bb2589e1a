package history

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

func updated(old, obj client.Object) event.UpdateEvent {
	return event.UpdateEvent{ObjectOld: old, ObjectNew: obj}
}

const canary = "hunter2"

func secret(image string, rv int64) *unstructured.Unstructured {
	return builders.TemplateFrom(version(image, rv)).Env("TOKEN", canary).Obj()
}

// haveValues reports which stored revisions have values, the oldest first.
func haveValues(t *testing.T, c client.Client) []bool {
	t.Helper()
	list := storedRevisions(t, c)
	slices.SortFunc(list, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	var out []bool
	for _, cr := range list {
		out = append(out, strings.Contains(string(cr.Data.Raw), canary))
	}
	return out
}

func pool(name string) *builders.Pool { return builders.MakePool("ns", name).Template("python") }

func TestValuesAreKeptWhereBindsAreEnforced(t *testing.T) {
	enforcing := func(b *builders.Pool) *unstructured.Unstructured {
		return b.Annotation(settings.EnforcementKey, "enforce").Obj()
	}
	cases := map[string]struct {
		namespace    bool
		never        bool
		cached, live []client.Object
		want         bool
	}{
		"the namespace enforces":             {namespace: true, want: true},
		"digests are asked for all the same": {namespace: true, never: true},
		"audited":                            {},
		"audited, with a pool":               {cached: []client.Object{pool("p").Obj()}, live: []client.Object{pool("p").Obj()}},
		"a pool enforces":                    {cached: []client.Object{pool("o").Obj(), enforcing(pool("p"))}, live: []client.Object{enforcing(pool("p"))}, want: true},
		"a pool that cannot say so":          {cached: []client.Object{pool("p").Annotation(settings.EnforcementKey, "audit").Obj()}, live: []client.Object{pool("p").Annotation(settings.EnforcementKey, "audit").Obj()}},
		"a pool of another template":         {cached: []client.Object{enforcing(pool("p").Template("other"))}, live: []client.Object{enforcing(pool("p").Template("other"))}},
		"a pool that enforced until now":     {cached: []client.Object{enforcing(pool("p"))}, live: []client.Object{pool("p").Obj()}},
		"a pool that is gone by now":         {cached: []client.Object{enforcing(pool("p"))}},
		"a pool of another template by now":  {cached: []client.Object{enforcing(pool("p"))}, live: []client.Object{enforcing(pool("p").Template("other"))}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newClient(t)
			r := newRecorder(c, limit)
			r.values = &values{never: tc.never, enforced: says(tc.namespace), cached: newClient(t, tc.cached...), live: newClient(t, tc.live...), pools: poolKind, reads: agentsandbox.Objects{}}
			see(t, r, secret("a", 1))
			if diff := cmp.Diff([]bool{tc.want}, haveValues(t, c)); diff != "" {
				t.Errorf("values are stored (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestNothingIsCopiedWhileTheModeIsUnknown(t *testing.T) {
	c := newClient(t)
	r := newRecorder(c, limit)
	away := errors.New("etcd is away")
	r.values.enforced = func(context.Context, string, string) (bool, error) { return true, away }
	if err := r.record(t.Context(), secret("a", 1)); !errors.Is(err, away) {
		t.Errorf("error is %v", err)
	}
	if got := haveValues(t, c); len(got) > 0 {
		t.Errorf("stored: %v", got)
	}
}

func TestHistoryFollowsTheMode(t *testing.T) {
	c := newClient(t)
	r := newRecorder(c, limit)
	a, b := secret("a", 1), secret("b", 2)
	in := func(enforced bool) {
		t.Helper()
		r.values.enforced = says(enforced)
		see(t, r, b)
	}
	check := func(when string, want ...bool) {
		t.Helper()
		if diff := cmp.Diff(want, haveValues(t, c)); diff != "" {
			t.Errorf("%s, values are stored (-want,+got):\n%s", when, diff)
		}
		if diff := cmp.Diff([]string{hashOf(t, b), hashOf(t, a)}, recorded(t, c)); diff != "" {
			t.Errorf("%s, recorded (-want,+got):\n%s", when, diff)
		}
	}
	see(t, r, a)
	in(true)
	check("enforced", true, true)
	in(false)
	check("audited", false, false)
	in(false)
	check("audited still", false, false)
	in(true)
	check("enforced again: the one in force can be told", false, true)
}

func TestWhatCannotBeReadIsNotKeptInAudit(t *testing.T) {
	c := newClient(t)
	r := newRecorder(c, limit)
	a := secret("a", 1)
	see(t, r, a)
	cr := storedRevisions(t, c)[0]
	cr.Data.Raw = []byte(`{"spec":{"env":"` + canary + `"}}`)
	if err := c.Update(t.Context(), &cr); err != nil {
		t.Fatal(err)
	}
	r.values.enforced = says(false)
	see(t, r, a)
	if diff := cmp.Diff([]bool{false}, haveValues(t, c)); diff != "" {
		t.Errorf("values are stored (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{hashOf(t, a)}, recorded(t, c)); diff != "" {
		t.Errorf("recorded (-want,+got):\n%s", diff)
	}
}

func TestWhatAsksForTemplatesAgain(t *testing.T) {
	c := newClient(t, version("a", 1), builders.MakeTemplate("ns", "node").Obj(), builders.MakeTemplate("elsewhere", "python").Obj())
	namespace := func(labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: labels}}
	}
	plain := pool("p").Obj()
	enforcing := pool("p").Annotation(settings.EnforcementKey, "enforce").Obj()
	switched := builders.PoolFrom(enforcing).Template("node").Obj()
	pools, namespaces := poolEvents(agentsandbox.Objects{}, ""), namespaceEvents(c, templateKind)
	cases := map[string]struct {
		to       handler.EventHandler
		old, obj client.Object
		want     []string
	}{
		"a namespace's mode":                    {namespaces, namespace(nil), namespace(map[string]string{"a": "b"}), []string{"node", "python"}},
		"a namespace's annotation":              {namespaces, namespace(nil), namespace(nil), nil},
		"a pool begins to enforce":              {pools, plain, enforcing, []string{"python"}},
		"a pool enforces no more":               {pools, enforcing, plain, []string{"python"}},
		"a pool that enforces is switched":      {pools, enforcing, switched, []string{"node", "python"}},
		"a pool is switched":                    {pools, plain, builders.PoolFrom(plain).Template("node").Obj(), nil},
		"another write to a pool that enforces": {pools, enforcing, builders.PoolFrom(enforcing).Label("a", "b").Obj(), nil},
		"a pool that enforces comes":            {pools, nil, enforcing, []string{"python"}},
		"a pool that says nothing comes":        {pools, nil, plain, nil},
		"a pool that enforces goes":             {pools, enforcing, nil, []string{"python"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t)
			switch {
			case tc.old == nil:
				tc.to.Create(t.Context(), event.CreateEvent{Object: tc.obj}, q)
			case tc.obj == nil:
				tc.to.Delete(t.Context(), event.DeleteEvent{Object: tc.old}, q)
			default:
				tc.to.Update(t.Context(), updated(tc.old, tc.obj), q)
			}
			var got []string
			for q.Len() > 0 {
				req, _ := q.Get()
				got = append(got, req.Name)
				if req.Namespace != "ns" {
					t.Errorf("asked for %s", req)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("asked for (-want,+got):\n%s", diff)
			}
		})
	}
}
