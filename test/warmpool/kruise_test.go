package warmpool

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/test/fakekruise"
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

// What a probe is refused it gets only if Freshbind offers it again; before and after, upstream
// asks again by itself.
func TestProbesAreRemembered(t *testing.T) {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{fakekruise.Sandboxes: "SandboxList"})
	p := &SetPool{Kruise: &Kruise{}, client: client, in: "a", size: 1}
	failed, got := errors.New("no list"), []time.Duration{p.remembers()}
	client.PrependReactor("list", fakekruise.Sandboxes.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		got = append(got, p.remembers())
		return true, nil, failed
	})
	if _, err := p.Unserved(t.Context()); !errors.Is(err, failed) {
		t.Fatalf("the probe: %v, want that its first list fails", err)
	}
	want := []time.Duration{fakekruise.CacheTimeout, forever, fakekruise.CacheTimeout}
	if diff := cmp.Diff(want, append(got, p.remembers())); diff != "" {
		t.Errorf("remembered before, in and after a probe (-want,+got):\n%s", diff)
	}
}
