package release_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/freshbind/freshbind/internal/release"
)

// A Pod on a node that is lost never goes, and one that is not Freshbind's is
// not waited for.
func TestStopWaitsForPods(t *testing.T) {
	labels := map[string]string{"app": "freshbind"}
	pod := func(labels map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "pod", Labels: labels}}
	}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "freshbind"},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
	for name, tc := range map[string]struct {
		objs     []client.Object
		timeout  time.Duration
		wantGone bool
	}{
		"a Pod that stays":       {[]client.Object{d, pod(labels)}, 20 * time.Millisecond, false},
		"a Pod of somebody else": {[]client.Object{d, pod(nil)}, time.Hour, true},
		"no Deployment":          {[]client.Object{pod(labels)}, time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := release.Guard{
				Client: fake.NewClientBuilder().WithObjects(tc.objs...).Build(), Printf: t.Logf,
				Leases: []string{"freshbind"}, Poll: time.Millisecond, Timeout: tc.timeout,
			}
			gone, err := g.Stop(t.Context(), types.NamespacedName{Namespace: "own", Name: "freshbind"})
			if err != nil {
				t.Fatal(err)
			}
			if gone != tc.wantGone {
				t.Errorf("gone is %v, want %v", gone, tc.wantGone)
			}
		})
	}
}
