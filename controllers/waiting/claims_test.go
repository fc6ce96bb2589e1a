package waiting

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

var claimKind = schema.GroupVersionKind{Group: builders.GroupExtensions, Version: builders.V1Beta1, Kind: "SandboxClaim"}

func newClaims(t *testing.T, enforced Enforced, objs ...client.Object) *Claims {
	t.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(claimKind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(claimKind.GroupVersion().WithKind("SandboxClaimList"), &unstructured.UnstructuredList{})
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).Build()
	return &Claims{
		client: c, live: c, kind: claimKind, namespaces: []string{""}, waits: agentsandbox.Objects{}.IsWaiting, enforced: enforced,
		serving: func(context.Context) error { return nil },
		now:     func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	}
}

func in(mode bool, err error) Enforced {
	return func(context.Context, string) (bool, error) { return mode, err }
}

func TestReconcile(t *testing.T) {
	waiting := builders.MakeClaim("ns", "c1").Obj()
	served := builders.MakeClaim("ns", "c1").Set("python-abc", "status", "sandbox", "name").Obj()
	cases := map[string]struct {
		claim    *unstructured.Unstructured
		enforced Enforced
		want     string
		wantErr  bool
	}{
		"waits":               {waiting, in(true, nil), "2026-01-02T03:04:05Z", false},
		"has its sandbox":     {served, in(true, nil), "", false},
		"nothing is enforced": {waiting, in(false, nil), "", false},
		"mode unreadable":     {waiting, in(false, errors.New("etcd is away")), "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newClaims(t, tc.enforced, tc.claim)
			_, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(tc.claim)})
			if (err != nil) != tc.wantErr {
				t.Fatalf("Reconcile() error = %v, want error %t", err, tc.wantErr)
			}
			got := tc.claim.DeepCopy()
			if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
				t.Fatal(err)
			}
			if at := got.GetAnnotations()[settings.RequeuedAtKey]; at != tc.want {
				t.Errorf("requeued at %q, want %q", at, tc.want)
			}
		})
	}
	t.Run("gone", func(t *testing.T) {
		c := newClaims(t, in(true, nil))
		if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(waiting)}); err != nil {
			t.Error(err)
		}
	})
}

func TestSweepQueuesThoseThatWait(t *testing.T) {
	c := newClaims(t, in(true, nil),
		builders.MakeClaim("a", "waits").Obj(),
		builders.MakeClaim("b", "served").Set("x", "status", "sandbox", "name").Obj(),
		builders.MakeClaim("b", "waits-too").Obj(),
	)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	if err := c.sweep(t.Context(), q, 0); err != nil {
		t.Fatal(err)
	}
	if q.Len() != 2 {
		t.Errorf("%d claims queued, want 2", q.Len())
	}
}

// paged is an API server that lists claims two at a time, and fails at a page.
type paged struct {
	client.Reader
	fails int
	limit int64
}

func (p *paged) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	p.limit = max(p.limit, o.Limit)
	if err := p.Reader.List(ctx, list, client.InNamespace(o.Namespace)); err != nil {
		return err
	}
	u := list.(*unstructured.UnstructuredList)
	from := 0
	if o.Continue != "" {
		from, _ = strconv.Atoi(o.Continue)
	}
	if p.fails > 0 && from >= p.fails {
		return errors.New("no answer")
	}
	to := min(from+2, len(u.Items))
	u.SetContinue("")
	if to < len(u.Items) {
		u.SetContinue(strconv.Itoa(to))
	}
	u.Items = u.Items[from:to]
	return nil
}

func TestSweepListsPagesAndTakesNamespacesInTurns(t *testing.T) {
	for name, tc := range map[string]struct {
		fails      int
		namespaces []string
		want       []string
		wantErr    bool
	}{
		"all":                  {namespaces: []string{""}, want: []string{"many/0", "modest/0", "many/1", "many/2", "many/3", "many/4"}},
		"some namespaces":      {namespaces: []string{"modest"}, want: []string{"modest/0"}},
		"the third page fails": {namespaces: []string{"many", "modest"}, fails: 4, want: []string{"many/0", "many/1", "many/2", "many/3"}, wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			objs := []client.Object{builders.MakeClaim("modest", "0").Obj()}
			for i := range 5 {
				objs = append(objs, builders.MakeClaim("many", strconv.Itoa(i)).Obj())
			}
			c := newClaims(t, in(true, nil), objs...)
			lists := &paged{Reader: c.live, fails: tc.fails}
			c.live, c.namespaces = lists, tc.namespaces
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			if err := c.sweep(t.Context(), q, 0); (err != nil) != tc.wantErr {
				t.Fatalf("sweep: %v, want error %t", err, tc.wantErr)
			}
			var got []string
			for q.Len() > 0 {
				req, _ := q.Get()
				got = append(got, req.String())
			}
			// Who is first in a turn is chance.
			slices.Sort(got[:min(2, len(got))])
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("claims in the queue (-want,+got):\n%s", diff)
			}
			if lists.limit != pageSize {
				t.Errorf("lists %d claims at once, want %d", lists.limit, pageSize)
			}
		})
	}
}

func TestRequeueChangesOneAnnotationOnly(t *testing.T) {
	before := builders.MakeClaim("ns", "c1").Annotation("a", "b").Obj()
	c := newClaims(t, in(true, nil), before)
	if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(before)}); err != nil {
		t.Fatal(err)
	}
	got := before.DeepCopy()
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(got.Object, "metadata", "annotations", settings.RequeuedAtKey)
	got.SetResourceVersion("")
	before.SetResourceVersion("")
	want, _ := json.Marshal(before)
	have, _ := json.Marshal(got)
	if string(want) != string(have) {
		t.Errorf("claim is\n%s, want\n%s", have, want)
	}
}
