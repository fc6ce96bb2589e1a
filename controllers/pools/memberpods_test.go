package pools

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// What a Pod runs makes its member what it is, as far as caches show; the rest is
// judged by live reads, once.
func TestMembersByTheirPods(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("OnReplenish").Annotation("freshbind.dev/rollout-strategy", "Recreate").Obj()
	inForce, err := agentsandbox.RenderMember(v2)
	if err != nil {
		t.Fatal(err)
	}
	stamp := inForce.Hash()
	member := of(pool, v2, "m").Label(settings.StampKey, stamp).Obj()
	pod := func() *builders.Pod {
		return builders.MakePod(member).Label(settings.StampKey, stamp).Generation(1).Stored("node-1")
	}
	old := builders.MakePod(of(pool, v1, "m").UID(string(member.GetUID())).Obj()).Stored("node-1")
	deletes := []string{"delete m"}
	doubted := []string{"m"}
	cases := map[string]struct {
		pod    *unstructured.Unstructured
		writes []string
		judged []string
	}{
		"as its member":             {pod: pod().Obj()},
		"none":                      {},
		"of an older image":         {pod: old.Owners(builders.ControllerRef(member)).Obj(), writes: deletes},
		"with ephemeral containers": {pod: pod().Set([]any{map[string]any{"name": "debugger", "image": "b"}}, "spec", "ephemeralContainers").Obj(), writes: deletes},
		"edited":                    {pod: pod().Generation(2).Set("other", "spec", "hostname").Obj(), judged: doubted},
		"of another stamp":          {pod: pod().Label(settings.StampKey, "v1-old").Obj(), judged: doubted},
		"of no stamp":               {pod: pod().NoLabel(settings.StampKey).Obj(), writes: []string{"stamp Pod m"}},
		"another's":                 {pod: pod().Label(settings.StampKey, "v1-old").Owners(builders.ControllerRef(builders.SandboxFrom(member).UID("x").Obj())).Obj()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objs := []*unstructured.Unstructured{pool, v2, member, of(pool, v2, "other").Obj(), nodeNamed("node-1", false)}
			if tc.pod != nil {
				objs = append(objs, tc.pod)
			}
			r := newHarness(t, history{v2, v1}, objs...)
			writes, _ := r.step(pool)
			if diff := cmp.Diff(tc.writes, writes); diff != "" {
				t.Errorf("writes (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.judged, r.noted()); diff != "" {
				t.Errorf("judged again (-want,+got):\n%s", diff)
			}
			r.step(pool)
			if again := r.noted(); len(again) > 0 {
				t.Errorf("judged once more: %v", again)
			}
		})
	}
}
