package manager

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
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
			p := &process{Options: Options{Deployment: tc.name, LeaderElectNamespace: "ns"}}
			got, err := p.leavesFor(t.Context(), reader)
			if got != tc.want || !errors.Is(err, tc.fail) {
				t.Errorf("leavesFor() = %q, %v, want %q, %v", got, err, tc.want, tc.fail)
			}
		})
	}
}
