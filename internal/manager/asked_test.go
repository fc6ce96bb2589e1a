package manager

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// Claims are read only where a pool says something.
func TestAskedByPools(t *testing.T) {
	silent := builders.MakePool("silent", "python").Obj()
	loud := builders.MakePool("loud", "python").Annotation(settings.EnforcementKey, "enforce").Obj()
	read := 0
	asked := askedByPools(fake.NewClientBuilder().WithObjects(silent, loud).Build(), loud.GroupVersionKind(),
		func(_ context.Context, namespace, claim string) (string, error) {
			read++
			return namespace + " " + claim, nil
		})
	for namespace, want := range map[string]string{"silent": "", "loud": "loud c1", "empty": ""} {
		if got, err := asked(t.Context(), types.NamespacedName{Namespace: namespace, Name: "c1"}); got != want || err != nil {
			t.Errorf("in %s: %q, error %v, want %q", namespace, got, err, want)
		}
	}
	if read != 1 {
		t.Errorf("read %d claims, want 1", read)
	}
}
