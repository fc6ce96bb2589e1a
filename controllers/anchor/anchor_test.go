package anchor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/webhooks"
)

var (
	ours   = metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "home", UID: "new"}
	before = metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "gone", UID: "old"}
	home   = reconcile.Request{NamespacedName: types.NamespacedName{Name: ours.Name}}
)

func namespace(deleted bool) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ours.Name, UID: ours.UID}}
	if deleted {
		ns.DeletionTimestamp, ns.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"somebody's"}
	}
	return ns
}

func configuration(name string, owners ...metav1.OwnerReference) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), OwnerReferences: owners}}
}

// stored are the configurations that are there, with their owners.
func stored(t *testing.T, c client.Client) map[string][]metav1.OwnerReference {
	t.Helper()
	var list admissionregistrationv1.ValidatingWebhookConfigurationList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string][]metav1.OwnerReference{}
	for _, o := range list.Items {
		out[o.Name] = o.OwnerReferences
	}
	return out
}

func TestTheNamespaceOwnsWhatIsThere(t *testing.T) {
	cases := map[string]struct {
		owners, want []metav1.OwnerReference
	}{
		"nobody's":       {nil, []metav1.OwnerReference{ours}},
		"ours already":   {[]metav1.OwnerReference{ours}, []metav1.OwnerReference{ours}},
		"somebody's too": {[]metav1.OwnerReference{before}, []metav1.OwnerReference{before, ours}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(namespace(false), configuration(webhooks.ConfigurationName, tc.owners...), configuration("another")).Build()
			a := New(c, c, agentsandbox.Admission(), webhooks.Scope{})
			for range 2 {
				got, err := a.Reconcile(t.Context(), home)
				if err != nil || got.RequeueAfter != interval {
					t.Fatalf("Reconcile() = %v, %v, want that it looks again after %s", got, err, interval)
				}
			}
			want := map[string][]metav1.OwnerReference{webhooks.ConfigurationName: tc.want, "another": nil}
			if diff := cmp.Diff(want, stored(t, c)); diff != "" {
				t.Errorf("owners (-want,+got):\n%s", diff)
			}
		})
	}
}

// A namespace that is being deleted takes along what it owns while it is still there, but not
// what belongs to somebody else, or to an install in another namespace.
func TestTheConfigurationGoesBeforeItsNamespace(t *testing.T) {
	cases := map[string]struct {
		owners []metav1.OwnerReference
		want   []string
	}{
		"ours":           {[]metav1.OwnerReference{ours}, []string{"another"}},
		"nobody's":       {nil, []string{"another", webhooks.ConfigurationName}},
		"somebody's too": {[]metav1.OwnerReference{ours, before}, []string{"another", webhooks.ConfigurationName}},
		"somebody's":     {[]metav1.OwnerReference{before}, []string{"another", webhooks.ConfigurationName}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(namespace(true), configuration(webhooks.ConfigurationName, tc.owners...), configuration("another")).Build()
			a := New(c, c, agentsandbox.Admission(), webhooks.Scope{})
			for range 2 {
				if _, err := a.Reconcile(t.Context(), home); err != nil {
					t.Fatal(err)
				}
			}
			got := slices.Sorted(maps.Keys(stored(t, c)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("configurations (-want,+got):\n%s", diff)
			}
		})
	}
}

// Only the object that was looked at is deleted: it may be another one of its name by then.
func TestOnlyWhatWasLookedAtIsDeleted(t *testing.T) {
	var asked client.DeleteOptions
	c := fake.NewClientBuilder().WithObjects(namespace(true), configuration(webhooks.ConfigurationName, ours)).
		WithInterceptorFuncs(interceptor.Funcs{Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
			asked.ApplyOptions(opts)
			return nil
		}}).Build()
	if _, err := New(c, c, agentsandbox.Admission(), webhooks.Scope{}).Reconcile(t.Context(), home); err != nil {
		t.Fatal(err)
	}
	want := &metav1.Preconditions{UID: ptr.To[types.UID](webhooks.ConfigurationName)}
	if diff := cmp.Diff(want, asked.Preconditions); diff != "" {
		t.Errorf("preconditions (-want,+got):\n%s", diff)
	}
}

// While the configuration stands that nobody answers, it is tried again at once.
func TestADeletionThatFailsIsTriedAgain(t *testing.T) {
	away := errors.New("the API server is away")
	c := fake.NewClientBuilder().WithObjects(namespace(true), configuration(webhooks.ConfigurationName, ours)).
		WithInterceptorFuncs(interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return away }}).Build()
	if _, err := New(c, c, agentsandbox.Admission(), webhooks.Scope{}).Reconcile(t.Context(), home); !errors.Is(err, away) {
		t.Errorf("Reconcile() = %v, want %v", err, away)
	}
}

func TestWithoutItsNamespaceNothingChanges(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(configuration(webhooks.ConfigurationName)).Build()
	got, err := New(c, c, agentsandbox.Admission(), webhooks.Scope{}).Reconcile(t.Context(), home)
	if err != nil || got.RequeueAfter != interval {
		t.Errorf("Reconcile() = %v, %v, want that it looks again after %s", got, err, interval)
	}
	if diff := cmp.Diff(map[string][]metav1.OwnerReference{webhooks.ConfigurationName: nil}, stored(t, c)); diff != "" {
		t.Errorf("owners (-want,+got):\n%s", diff)
	}
}
