package fakekruise

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// What a SandboxSet's controller made is born when its event comes, whoever has it by then,
// and also when it is gone before the controller looks for it.
func TestBirthsAreSeenByTheirEvents(t *testing.T) {
	set := &unstructured.Unstructured{Object: map[string]any{"apiVersion": Sets.GroupVersion().String(), "kind": "SandboxSet"}}
	set.SetName("pool")
	set.SetUID("uid")
	box := &unstructured.Unstructured{}
	box.SetName("pool-1")
	box.SetOwnerReferences(controlledBy(set))
	taken := box.DeepCopy()
	taken.SetOwnerReferences(nil)
	other := box.DeepCopy()
	other.SetName("pool-2")
	for name, tc := range map[string]struct {
		old, now *unstructured.Unstructured
		want     int
	}{
		"born":             {nil, box, 0},
		"taken":            {box, taken, 0},
		"another one born": {nil, other, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := &setController{queue: newQueue(), made: map[types.UID]map[string]bool{}}
			note(c.made, set, box.GetName())
			c.boxChanged(tc.old, tc.now)
			if got := len(c.made[set.GetUID()]); got != tc.want {
				t.Errorf("%d births are not seen, want %d", got, tc.want)
			}
		})
	}
}
