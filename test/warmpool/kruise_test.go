package warmpool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Who has a Sandbox of OpenKruise Agents loses it with it, unless they have let go.
func TestHolder(t *testing.T) {
	set := newSet(PoolOptions{Namespace: "a", Strategy: OwnRolling})
	owned := []metav1.OwnerReference{{APIVersion: set.GetAPIVersion(), Kind: "SandboxSet", Name: PoolName, Controller: ptr.To(true)}}
	cases := map[string]struct {
		owners              []metav1.OwnerReference
		labels, annotations map[string]string
		want                []string
	}{
		"a user of E2B":      {annotations: map[string]string{KeyOwner: "user-2"}, want: []string{"user-2"}},
		"a SandboxClaim":     {labels: map[string]string{LabelClaim: "c1"}, annotations: map[string]string{KeyOwner: "uid"}, want: []string{"c1"}},
		"nobody":             {},
		"who has let go":     {annotations: map[string]string{KeyOwner: "user-2", KeyLetGo: "true"}},
		"a member to delete": {owners: owned, annotations: map[string]string{KeyOwner: "__manager_scale_down"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			box := NewObject("Sandbox", "a", "python-9", nil)
			box.SetOwnerReferences(tc.owners)
			box.SetLabels(tc.labels)
			box.SetAnnotations(tc.annotations)
			if diff := cmp.Diff(tc.want, Holder(box)); diff != "" {
				t.Errorf("holders (-want,+got):\n%s", diff)
			}
		})
	}
}
