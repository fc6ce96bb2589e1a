package scenario

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/upstream"
)

// A late claim controller may withdraw what the status has said. Somebody else's sandbox
// is not waited for.
func TestWaitSandboxOf(t *testing.T) {
	const noNumber = -1
	for name, tc := range map[string]struct {
		// silent is how often the claim names no sandbox, owner whose the named one is.
		silent int
		owner  string
		reads  int
		err    string
	}{
		"named":          {owner: "c", reads: 1, err: "<nil>"},
		"withdrawn":      {silent: 2, owner: "c", reads: 3, err: "<nil>"},
		"never":          {silent: math.MaxInt, reads: noNumber, err: "claim ns/c has no sandbox\ncontext deadline exceeded"},
		"somebody's":     {owner: "other", reads: 1, err: "claim ns/c says it has sandbox m, which is not its own"},
		"somebody's yet": {silent: 1, owner: "other", reads: 2, err: "claim ns/c says it has sandbox m, which is not its own"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				claim := builders.MakeClaim("ns", "c").UID("c").Set("m", "status", "sandbox", "name").Obj()
				unnamed := builders.MakeClaim("ns", "c").UID("c").Obj()
				sandbox := &unstructured.Unstructured{}
				sandbox.SetOwnerReferences([]metav1.OwnerReference{{UID: types.UID(tc.owner), Controller: ptr.To(true)}})
				client := fake.NewSimpleDynamicClient(runtime.NewScheme())
				reads := 0
				client.PrependReactor("get", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
					if a.GetResource().Resource == upstream.Sandboxes.Resource {
						return true, sandbox, nil
					}
					if reads++; reads <= tc.silent {
						return true, unnamed, nil
					}
					return true, claim, nil
				})
				n := &Namespace{Name: "ns", Version: "v1beta1", client: client}
				_, err := n.waitSandboxOf(t.Context(), "c")
				if said := fmt.Sprint(err); said != tc.err {
					t.Errorf("error %q, want %q", said, tc.err)
				}
				if tc.reads != noNumber && reads != tc.reads {
					t.Errorf("the claim was read %d times, want %d", reads, tc.reads)
				}
			})
		})
	}
}
