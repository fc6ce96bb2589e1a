package recreate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/test/builders"
)

// counted counts lists of Sandboxes.
type counted struct {
	client.Reader
	lists int
}

func (c *counted) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if list.GetObjectKind().GroupVersionKind().Kind == "SandboxList" {
		c.lists++
	}
	return c.Reader.List(ctx, list, opts...)
}

// However many pools a namespace has, a new leader lists its members once.
func TestATakeoverListsANamespaceOnce(t *testing.T) {
	objs := []*unstructured.Unstructured{v1}
	var pools []*unstructured.Unstructured
	for i := range 20 {
		pool := builders.MakePool("ns", fmt.Sprintf("p%d", i)).UID(fmt.Sprintf("uid-%d", i)).Template("python").Replicas(1).Strategy("OnReplenish").Obj()
		pools = append(pools, pool)
		objs = append(objs, pool, of(pool, v1, fmt.Sprintf("m%d", i)).Obj())
	}
	r := newRig(t, nil, objs...)
	lists := &counted{Reader: r.client}
	r.view.lists = lists
	for _, pool := range pools {
		r.step(pool)
		if got := r.said(pool, platform.RolloutStateKey); got != string(freshness.Complete) {
			t.Errorf("pool %s is %q, want Complete", pool.GetName(), got)
		}
	}
	if lists.lists != 1 {
		t.Errorf("%d lists for %d pools, want 1", lists.lists, len(pools))
	}
}

func TestWhenMembersAreOfferedAgain(t *testing.T) {
	cases := map[string]struct {
		seen     edition
		revision string
		want     bool
	}{
		"nothing changed":                    {edition{"u", 1}, "r", false},
		"a change that makes nothing stale":  {edition{"u", 2}, "r", false},
		"another revision":                   {edition{"u", 2}, "s", true},
		"changes that were not seen between": {edition{"u", 3}, "r", true},
		"another template of that name":      {edition{"v", 1}, "r", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := &memory{template: edition{"u", 1}, rollout: freshness.Rollout{Revision: "r"}}
			if got := m.turned(tc.seen, tc.revision); got != tc.want {
				t.Errorf("turned() = %t, want %t", got, tc.want)
			}
		})
	}
	if (&memory{}).turned(edition{"u", 7}, "r") {
		t.Error("a template that was never seen before has turned")
	}
}

// Each member of a pool costs some six reads to settle.
func TestNothingIsOfferedWhenNothingBecameStale(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("Recreate").Obj()
	r := newRig(t, nil, append(ofAll(pool, v1, 2), pool, v1)...)
	r.step(pool)
	edited := object(poolKinds.Templates)
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(v1), edited); err != nil {
		t.Fatal(err)
	}
	edited.SetGeneration(edited.GetGeneration() + 1)
	if err := r.client.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{0, offers[0], offers[1], time.Hour} {
		r.clock.SetTime(now.Add(after))
		r.step(pool)
		if noted := r.noted(); len(noted) > 0 {
			t.Errorf("offered %v %s after a change that makes nothing stale", noted, after)
		}
	}
}

func TestWaitsGetLonger(t *testing.T) {
	var waiting waits[types.UID]
	var got []time.Duration
	for range 4 {
		got = append(got, waiting.next("a", time.Second, 5*time.Second))
	}
	waiting.forget("a")
	got = append(got, waiting.next("a", time.Second, 5*time.Second))
	want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
	if waiting.forget("a"); len(waiting.waits) > 0 {
		t.Errorf("%d waits are remembered although nothing waits", len(waiting.waits))
	}
}
