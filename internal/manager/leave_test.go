package manager

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/webhooks"
)

// Only a process that nobody comes after shows hidden members: in a restart or a rollout of its
// own Deployment they stay hidden.
func TestWhoLeaves(t *testing.T) {
	at := &metav1.Time{Time: time.Unix(1, 0)}
	namespace := func(deleted *metav1.Time) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", DeletionTimestamp: deleted, Finalizers: []string{"f"}}}
	}
	deployment := func(deleted *metav1.Time, replicas *int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "freshbind", DeletionTimestamp: deleted, Finalizers: []string{"f"}},
			Spec:       appsv1.DeploymentSpec{Replicas: replicas},
		}
	}
	away := errors.New("the API server is away")
	cases := map[string]struct {
		name    string
		objects []client.Object
		fail    error
		want    string
	}{
		"restarted":                      {"freshbind", []client.Object{namespace(nil), deployment(nil, ptr.To[int32](2))}, nil, ""},
		"restarted, the replicas unsaid": {"freshbind", []client.Object{namespace(nil), deployment(nil, nil)}, nil, ""},
		"scaled to 0":                    {"freshbind", []client.Object{namespace(nil), deployment(nil, ptr.To[int32](0))}, nil, "its Deployment is scaled to 0"},
		"Deployment gone":                {"freshbind", []client.Object{namespace(nil)}, nil, "its Deployment is gone"},
		"Deployment going":               {"freshbind", []client.Object{namespace(nil), deployment(at, ptr.To[int32](2))}, nil, "its Deployment is being deleted"},
		"namespace going":                {"freshbind", []client.Object{namespace(at), deployment(nil, ptr.To[int32](2))}, nil, "its namespace is being deleted"},
		"namespace gone":                 {"freshbind", nil, nil, "its namespace is gone"},
		"no Deployment":                  {"", nil, nil, ""},
		"cannot be read":                 {"freshbind", []client.Object{namespace(nil)}, away, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithObjects(tc.objects...).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
					if _, is := obj.(*appsv1.Deployment); is && tc.fail != nil {
						return tc.fail
					}
					return c.Get(ctx, key, obj, o...)
				},
			}).Build()
			p := &process{Options: Options{Deployment: tc.name}}
			got, err := p.leavesFor(t.Context(), reader, "ns")
			if got != tc.want || !errors.Is(err, tc.fail) {
				t.Errorf("leavesFor() = %q, %v, want %q, %v", got, err, tc.want, tc.fail)
			}
		})
	}
}

// Nobody starts a process again that was told to stop, however it ended.
func TestWhenItLeaves(t *testing.T) {
	lost := errors.New("leader election lost")
	for name, tc := range map[string]struct {
		told bool
		ends error
		want bool
	}{
		"told to stop":                    {true, nil, true},
		"told to stop, and no leader now": {true, lost, true},
		"no leader any more":              {false, lost, false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked = true
				w.WriteHeader(http.StatusNotFound)
			}))
			defer api.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.told {
				cancel()
			}
			p := &process{Options: Options{Deployment: "freshbind", LeaderElectNamespace: "ns", ReleasePeriod: time.Minute}}
			ended := manager.RunnableFunc(func(context.Context) error { return tc.ends })
			err := p.serve(ctx, &rest.Config{Host: api.URL}, ended, nil)
			if asked != tc.want || !errors.Is(err, tc.ends) {
				t.Errorf("serve() = %v, and the API server was asked %t, want %v, %t", err, asked, tc.ends, tc.want)
			}
		})
	}
}

// Whoever stops while the namespace is being deleted takes the admission configuration along, and
// nobody does who is only restarted. A failure is told.
func TestTheConfigurationGoesWithTheLast(t *testing.T) {
	going, away := &metav1.Time{Time: time.Unix(1, 0)}, errors.New("the API server is away")
	cases := map[string]struct {
		deleted *metav1.Time
		fail    error
		want    []string
	}{
		"namespace going":   {going, nil, nil},
		"cannot be deleted": {going, away, []string{webhooks.ConfigurationName}},
		"restarted":         {nil, nil, []string{webhooks.ConfigurationName}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "ns", UID: "ns"}
			c := fake.NewClientBuilder().WithObjects(
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "ns", DeletionTimestamp: tc.deleted, Finalizers: []string{"f"}}},
				&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "freshbind"}},
				&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhooks.ConfigurationName, OwnerReferences: []metav1.OwnerReference{owner}}},
			).WithInterceptorFuncs(interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				if tc.fail != nil {
					return tc.fail
				}
				return c.Delete(ctx, o, opts...)
			}}).Build()
			p := &process{Options: Options{Deployment: "freshbind", LeaderElectNamespace: "ns"}}
			notServed := func(context.Context, string) (*metav1.APIResourceList, error) {
				return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
			}
			g := &Guarded{Objects: agentsandbox.Objects{}, Admission: agentsandbox.Admission()}
			if err := p.undo(t.Context(), c, notServed, []*Guarded{g}); !errors.Is(err, tc.fail) {
				t.Fatalf("undo() = %v, want %v", err, tc.fail)
			}
			var list admissionregistrationv1.ValidatingWebhookConfigurationList
			if err := c.List(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range list.Items {
				got = append(got, o.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("configurations (-want,+got):\n%s", diff)
			}
		})
	}
}
