package pools

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// counted counts lists of Sandboxes, and of pools.
type counted struct {
	client.Reader
	lists, pools int
	// meanwhile is what happens during a list; nil for nothing.
	meanwhile func()
}

func (c *counted) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch list.GetObjectKind().GroupVersionKind().Kind {
	case "SandboxWarmPoolList":
		c.pools++
	case "SandboxList":
		c.lists++
		if c.meanwhile != nil {
			c.meanwhile()
		}
	}
	return c.Reader.List(ctx, list, opts...)
}

// What the last leader left on the pools is read once, not with every pool.
func TestALeaderReadsWhatTheLastOneLeftOnce(t *testing.T) {
	a, b := builders.MakePool("ns", "a").Replicas(0).Obj(), builders.MakePool("ns", "b").UID("uid-b").Replicas(0).Obj()
	r := newHarness(t, nil, v1, a, b)
	lists := &counted{Reader: r.client}
	r.view.lists = lists
	for _, pool := range []*unstructured.Unstructured{a, b, a} {
		r.step(pool)
	}
	if lists.pools != 1 {
		t.Errorf("pools were listed %d times, want 1", lists.pools)
	}
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
	r := newHarness(t, nil, objs...)
	lists := &counted{Reader: r.client}
	r.view.lists = lists
	for _, pool := range pools {
		r.step(pool)
		if got := r.annotation(pool, settings.RolloutStateKey); got != string(freshness.Complete) {
			t.Errorf("pool %s is %q, want Complete", pool.GetName(), got)
		}
	}
	if lists.lists != 1 {
		t.Errorf("%d lists for %d pools, want 1", lists.lists, len(pools))
	}
	r.clock.SetTime(r.clock.Now().Add(listingKept))
	if r.step(pools[0]); lists.lists != 1 || len(r.view.listings.kept) > 0 {
		t.Errorf("%d lists, and %d are kept for pools that are proven, want 1 and none", lists.lists, len(r.view.listings.kept))
	}
}

// A namespace whose list takes long holds up no other one, and all of its own pools
// wait for the same list.
func TestATakeoverListsNamespacesSideBySide(t *testing.T) {
	slow, quick := builders.MakePool("ns", "slow").Obj(), builders.MakePool("other", "quick").Obj()
	r := newHarness(t, nil, slow, quick)
	begun, goOn := make(chan struct{}, 2), make(chan struct{})
	lists := &held{Reader: r.client, namespace: "ns", begun: begun, goOn: goOn}
	r.view.lists = lists
	var waiting sync.WaitGroup
	prove := func(pool *unstructured.Unstructured) {
		if proven, err := r.view.ProvenOnce(t.Context(), pool, r.clock); !proven || err != nil {
			t.Errorf("ProvenOnce(%s) = %t, %v", pool.GetName(), proven, err)
		}
	}
	for range 3 {
		waiting.Go(func() { prove(slow) })
	}
	<-begun
	prove(quick)
	close(goOn)
	waiting.Wait()
	if n := len(begun); n > 0 {
		t.Errorf("%d lists more than one of a namespace", n)
	}
}

// held lists a namespace only when it may go on.
type held struct {
	client.Reader
	namespace   string
	begun, goOn chan struct{}
}

func (h *held) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	if o.ApplyOptions(opts); o.Namespace == h.namespace {
		h.begun <- struct{}{}
		<-h.goOn
	}
	return h.Reader.List(ctx, list, opts...)
}

// A list that takes a minute, as one of very many members does, is still shared
// when it is complete, and not for ever.
func TestATakeoverSharesAListThatTookLong(t *testing.T) {
	pools := make([]*unstructured.Unstructured, 5)
	objs := []*unstructured.Unstructured{v1}
	for i := range pools {
		pools[i] = builders.MakePool("ns", fmt.Sprintf("p%d", i)).UID(fmt.Sprintf("uid-%d", i)).Template("python").Replicas(0).Obj()
		objs = append(objs, pools[i])
	}
	r := newHarness(t, nil, objs...)
	lists := &counted{Reader: r.client, meanwhile: func() { r.clock.SetTime(r.clock.Now().Add(time.Minute)) }}
	r.view.lists = lists
	for i, tc := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {time.Minute, 1}, {time.Minute - 1, 1}, {1, 2}, {time.Second, 2}} {
		r.clock.SetTime(r.clock.Now().Add(tc.after))
		r.step(pools[i])
		if lists.lists != tc.want {
			t.Errorf("%d lists at pool %d, want %d", lists.lists, i, tc.want)
		}
	}
}

func TestWhenMembersAreOfferedAgain(t *testing.T) {
	cases := map[string]struct {
		seen     templateVersion
		revision string
		want     bool
	}{
		"nothing changed":                    {templateVersion{"u", 1}, "r", false},
		"a change that makes nothing stale":  {templateVersion{"u", 2}, "r", false},
		"another revision":                   {templateVersion{"u", 2}, "s", true},
		"changes that were not seen between": {templateVersion{"u", 3}, "r", true},
		"another template of that name":      {templateVersion{"v", 1}, "r", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := &poolRecord{template: templateVersion{"u", 1}, rollout: freshness.Rollout{Revision: "r"}}
			if got := m.turned(tc.seen, tc.revision); got != tc.want {
				t.Errorf("turned() = %t, want %t", got, tc.want)
			}
		})
	}
	if (&poolRecord{}).turned(templateVersion{"u", 7}, "r") {
		t.Error("a template that was never seen before has turned")
	}
}

// Each member of a pool costs some six reads to settle.
func TestNothingIsOfferedWhenNothingBecameStale(t *testing.T) {
	pool := builders.MakePool("ns", "python").Replicas(2).Strategy("Recreate").Obj()
	r := newHarness(t, nil, append(ofAll(pool, v1, 2), pool, v1)...)
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
