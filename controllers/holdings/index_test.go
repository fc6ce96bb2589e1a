package holdings

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/freshbind/freshbind/test/builders"
)

func TestIndex(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kind := cold.GroupVersionKind()
	watched := &metav1.PartialObjectMetadata{}
	watched.SetGroupVersionKind(kind)
	all := metadata(
		cold,
		builders.SandboxFrom(cold).Name("b").Owners(builders.ControllerRef(other)).Obj(),
		builders.SandboxFrom(cold).Name("c").Deleting(time.Unix(1, 0)).Obj(),
	)
	b := fake.NewClientBuilder().WithScheme(scheme).WithIndex(watched, byClaim, claimUIDs)
	for i := range all {
		all[i].SetGroupVersionKind(kind)
		if all[i].DeletionTimestamp != nil {
			all[i].Finalizers = []string{"example.com/f"}
		}
		b = b.WithObjects(&all[i])
	}
	got := Index(b.Build(), kind)(t.Context(), "ns", string(claim.GetUID()))
	if diff := cmp.Diff([]string{"c1"}, got); diff != "" {
		t.Errorf("Index() (-want,+got):\n%s", diff)
	}
}
