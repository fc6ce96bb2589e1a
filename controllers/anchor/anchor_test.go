package anchor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/webhooks"
)

var (
	ours   = metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "home", UID: "new"}
	before = metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "gone", UID: "old"}
	home   = reconcile.Request{NamespacedName: types.NamespacedName{Name: ours.Name}}
	// scope has objects of every kind installed.
	scope = webhooks.Scope{Self: "me", Enforced: []metav1.LabelSelector{{MatchLabels: map[string]string{"tier": "prod"}}}}
)

func namespace(deleted bool) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ours.Name, UID: ours.UID}}
	if deleted {
		ns.DeletionTimestamp, ns.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"somebody's"}
	}
	return ns
}

// installed are the objects of an install whose webhooks are called by this endpoint.
func installed(at webhooks.Endpoint, owners ...metav1.OwnerReference) []client.Object {
	a := agentsandbox.Admission()
	mutating, validating := webhooks.Configurations(a, at, scope)
	out := []client.Object{mutating, validating}
	for _, c := range webhooks.FloorConfigurations(a, at, scope) {
		out = append(out, c)
	}
	out = append(out, webhooks.NewPolicies(a, scope).Objects()...)
	for _, o := range out {
		o.SetOwnerReferences(owners)
		o.SetUID(types.UID(kindAndName(o)))
	}
	return out
}

func in(namespace string) webhooks.Endpoint {
	return webhooks.Endpoint{ServiceNamespace: namespace, ServiceName: "freshbind"}
}

// others are somebody else's, without any owner.
func others() []client.Object {
	return []client.Object{&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "another"}}}
}

func kindAndName(o client.Object) string {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1.")
	return kind + "/" + o.GetName()
}

// stored are the owners of each object that is there, by kind and name.
func stored(t *testing.T, c client.Client) map[string][]metav1.OwnerReference {
	t.Helper()
	out := map[string][]metav1.OwnerReference{}
	for _, o := range append(installed(webhooks.Endpoint{}), others()...) {
		switch err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); {
		case err == nil:
			out[kindAndName(o)] = o.GetOwnerReferences()
		case client.IgnoreNotFound(err) != nil:
			t.Fatal(err)
		}
	}
	return out
}

// all gives each object of an install, and somebody else's none, these owners.
func all(owners ...metav1.OwnerReference) map[string][]metav1.OwnerReference {
	out := map[string][]metav1.OwnerReference{"ValidatingWebhookConfiguration/another": nil}
	for _, o := range installed(webhooks.Endpoint{}) {
		out[kindAndName(o)] = owners
	}
	return out
}

func TestTheNamespaceOwnsWhatIsThere(t *testing.T) {
	byURL := webhooks.Endpoint{URL: "https://192.0.2.1"}
	cases := map[string]struct {
		at           webhooks.Endpoint
		owners, want []metav1.OwnerReference
	}{
		"nobody's":         {in("home"), nil, []metav1.OwnerReference{ours}},
		"called by URL":    {byURL, nil, []metav1.OwnerReference{ours}},
		"ours already":     {in("home"), []metav1.OwnerReference{ours}, []metav1.OwnerReference{ours}},
		"somebody's too":   {in("home"), []metav1.OwnerReference{before}, []metav1.OwnerReference{before, ours}},
		"served elsewhere": {in("gone"), nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(append(installed(tc.at, tc.owners...), others()...)...).WithObjects(namespace(false)).Build()
			a := New(c, c, agentsandbox.Admission(), scope)
			for range 2 {
				got, err := a.Reconcile(t.Context(), home)
				if err != nil || got.RequeueAfter != interval {
					t.Fatalf("Reconcile() = %v, %v, want that it looks again after %s", got, err, interval)
				}
			}
			if diff := cmp.Diff(all(tc.want...), stored(t, c)); diff != "" {
				t.Errorf("owners (-want,+got):\n%s", diff)
			}
		})
	}
}

// A namespace that is being deleted takes along what was installed with it while it is still
// there, but not what belongs to somebody else, or to an install in another namespace.
func TestTheConfigurationGoesBeforeItsNamespace(t *testing.T) {
	byURL := webhooks.Endpoint{URL: "https://192.0.2.1"}
	cases := map[string]struct {
		at     webhooks.Endpoint
		owners []metav1.OwnerReference
		stays  bool
	}{
		"ours":                       {in("home"), []metav1.OwnerReference{ours}, false},
		"ours, called by URL":        {byURL, []metav1.OwnerReference{ours}, false},
		"not owned yet":              {in("home"), nil, false},
		"not owned, called by URL":   {byURL, nil, true},
		"somebody's too":             {in("home"), []metav1.OwnerReference{ours, before}, true},
		"somebody's":                 {in("home"), []metav1.OwnerReference{before}, true},
		"taken over by another":      {in("gone"), []metav1.OwnerReference{ours}, true},
		"another's, not owned by it": {in("gone"), nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(append(installed(tc.at, tc.owners...), others()...)...).WithObjects(namespace(true)).Build()
			a := New(c, c, agentsandbox.Admission(), scope)
			for range 2 {
				got, err := a.Reconcile(t.Context(), home)
				if err != nil || got.RequeueAfter == 0 {
					t.Fatalf("Reconcile() = %v, %v, want that it looks again", got, err)
				}
			}
			want := []string{"ValidatingWebhookConfiguration/another"}
			if tc.stays {
				want = slices.Sorted(maps.Keys(all()))
			}
			got := slices.Sorted(maps.Keys(stored(t, c)))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects (-want,+got):\n%s", diff)
			}
		})
	}
}

// Webhooks that were deleted in an emergency do not say any more where they were served.
func TestWithoutWebhooksTheOwnerDecides(t *testing.T) {
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		want   int
	}{
		"owned":     {[]metav1.OwnerReference{ours}, 0},
		"not owned": {nil, len(webhooks.NewPolicies(agentsandbox.Admission(), scope).Objects())},
	} {
		t.Run(name, func(t *testing.T) {
			policies := slices.DeleteFunc(installed(in("home"), tc.owners...), func(o client.Object) bool { return strings.Contains(kindAndName(o), "Webhook") })
			c := fake.NewClientBuilder().WithObjects(policies...).WithObjects(namespace(true)).Build()
			if _, err := New(c, c, agentsandbox.Admission(), scope).Reconcile(t.Context(), home); err != nil {
				t.Fatal(err)
			}
			if got := len(stored(t, c)); got != tc.want {
				t.Errorf("%d policies are left, want %d", got, tc.want)
			}
		})
	}
}

// Only the version that was looked at is deleted: by then it may be another object of its name,
// or have another owner.
func TestOnlyWhatWasLookedAtIsDeleted(t *testing.T) {
	moved := map[string]bool{}
	c := fake.NewClientBuilder().WithObjects(installed(in("home"), ours)...).WithObjects(namespace(true)).
		WithInterceptorFuncs(interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			var asked client.DeleteOptions
			asked.ApplyOptions(opts)
			if p := asked.Preconditions; p == nil || p.UID == nil || *p.UID != o.GetUID() || p.ResourceVersion == nil || *p.ResourceVersion != o.GetResourceVersion() {
				moved[o.GetName()] = true
			}
			return c.Delete(ctx, o)
		}}).Build()
	if _, err := New(c, c, agentsandbox.Admission(), scope).Reconcile(t.Context(), home); err != nil {
		t.Fatal(err)
	}
	if len(moved) > 0 {
		t.Errorf("deleted in any version: %v", slices.Sorted(maps.Keys(moved)))
	}
}

// What cannot be deleted is tried again at once, and holds up nothing else.
func TestADeletionThatFailsHoldsUpNoOther(t *testing.T) {
	away := errors.New("the API server is away")
	c := fake.NewClientBuilder().WithObjects(installed(in("home"), ours)...).WithObjects(namespace(true)).
		WithInterceptorFuncs(interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if o.GetObjectKind().GroupVersionKind().Kind == "MutatingWebhookConfiguration" {
				return away
			}
			return c.Delete(ctx, o, opts...)
		}}).Build()
	if _, err := New(c, c, agentsandbox.Admission(), scope).Reconcile(t.Context(), home); !errors.Is(err, away) {
		t.Errorf("Reconcile() = %v, want %v", err, away)
	}
	got := slices.Sorted(maps.Keys(stored(t, c)))
	if diff := cmp.Diff([]string{"MutatingWebhookConfiguration/" + webhooks.ConfigurationName}, got); diff != "" {
		t.Errorf("objects (-want,+got):\n%s", diff)
	}
}

// What cannot be read decides nothing, and is tried again at once.
func TestWhatCannotBeReadIsTriedAgain(t *testing.T) {
	away := errors.New("the API server is away")
	for name, unread := range map[string]client.Object{
		"the namespace": &corev1.Namespace{}, "the webhooks": &admissionregistrationv1.ValidatingWebhookConfiguration{},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(installed(in("home"), ours)...).WithObjects(namespace(true)).Build()
			reader := interceptor.NewClient(c, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if fmt.Sprintf("%T", o) == fmt.Sprintf("%T", unread) {
					return away
				}
				return c.Get(ctx, key, o, opts...)
			}})
			if _, err := New(reader, c, agentsandbox.Admission(), scope).Reconcile(t.Context(), home); !errors.Is(err, away) {
				t.Errorf("Reconcile() = %v, want %v", err, away)
			}
			if got := stored(t, c); len(got) != len(installed(in("home"))) {
				t.Errorf("left are %v, want all", slices.Sorted(maps.Keys(got)))
			}
		})
	}
}

// Somebody who may not write the objects is told once, and again when it fails another time.
func TestAnAnchorThatFailsIsToldOnce(t *testing.T) {
	refused := true
	c := fake.NewClientBuilder().WithObjects(installed(in("home"))...).WithObjects(namespace(false)).
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if refused {
				return errors.New("forbidden")
			}
			return c.Patch(ctx, o, p, opts...)
		}}).Build()
	told := 0
	ctx := logf.IntoContext(t.Context(), funcr.New(func(_, text string) {
		if strings.Contains(text, "may stay behind") {
			told++
		}
	}, funcr.Options{}))
	a := New(c, c, agentsandbox.Admission(), scope)
	look := func(want int) {
		t.Helper()
		if _, err := a.Reconcile(ctx, home); err != nil {
			t.Fatal(err)
		}
		if told != want {
			t.Errorf("told %d times, want %d", told, want)
		}
	}
	look(1)
	look(1)
	refused = false
	look(1)
	for _, o := range installed(in("home")) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		o.SetOwnerReferences(nil)
		if err := c.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	refused = true
	look(2)
}

func TestWithoutItsNamespaceNothingChanges(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(append(installed(in("home")), others()...)...).Build()
	if _, err := New(c, c, agentsandbox.Admission(), scope).Reconcile(t.Context(), home); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all(), stored(t, c)); diff != "" {
		t.Errorf("owners (-want,+got):\n%s", diff)
	}
}

// It looks when its namespace comes or begins to go, and at no other: that one would become an
// owner.
func TestWhichNamespacesAreLookedAt(t *testing.T) {
	other := namespace(true)
	other.Name = "other"
	p := comesOrGoes(ours.Name)
	for name, tc := range map[string]struct{ got, want bool }{
		"comes":            {p.Create(event.CreateEvent{Object: namespace(false)}), true},
		"goes":             {p.Update(event.UpdateEvent{ObjectOld: namespace(false), ObjectNew: namespace(true)}), true},
		"goes still":       {p.Update(event.UpdateEvent{ObjectOld: namespace(true), ObjectNew: namespace(true)}), false},
		"is labelled":      {p.Update(event.UpdateEvent{ObjectOld: namespace(false), ObjectNew: namespace(false)}), false},
		"another one":      {p.Create(event.CreateEvent{Object: other}), false},
		"another one goes": {p.Update(event.UpdateEvent{ObjectOld: namespace(false), ObjectNew: other}), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: looked at %t, want %t", name, tc.got, tc.want)
		}
	}
}
