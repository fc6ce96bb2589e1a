package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// Freshbind's API server hears of etcd's changes late, that of agent-sandbox does
// not (kubernetes#59848). Freshbind's caches are old, and filling them anew does
// not help; it still binds nothing stale and deletes nothing fresh.
func TestAnAPIServerOlderThanEtcd(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, scenario.WorldOptions{
		Cluster: controlplane.Options{APIServers: 2, EtcdProxies: true, AuditLog: true},
		Reach: func(c *controlplane.Cluster, freshbind *rest.Config) (*rest.Config, error) {
			return c.At(freshbind, 1), nil
		},
	})
	for _, r := range []schema.GroupResource{upstream.SandboxTemplates, upstream.Sandboxes} {
		t.Run(r.Resource, func(t *testing.T) { w.playOld(t, r) })
	}
	w.firstListsConsistent(t, 1)
}

func (w *world) playOld(t *testing.T, r schema.GroupResource) {
	s := w.enforced(t)
	recreated := s.pool(scenario.Pool{Name: "recreated", Replicas: 4, Strategy: scenario.Recreate})
	rolled := s.pool(scenario.Pool{Name: "rolled", Replicas: 4, Strategy: scenario.OnReplenish})
	s.annotate(rolled, settings.StrategyKey, "RollingUpdate", settings.MaxUnavailableKey, "50%")
	s.state(rolled, "Complete", "")

	etcd := w.Cluster.EtcdProxy(1)
	t.Cleanup(func() { etcd.Release(r.Group, r.Resource) })
	etcd.Hold(r.Group, r.Resource)
	s.claim(recreated, "before")
	held, err := s.SandboxOf(t.Context(), "before")
	s.must(err)
	losses := s.losses("sandbox:v2")
	defer func() {
		var deleted []string
		for _, write := range w.writes(t, 1, s.Name, time.Time{}) {
			if name, ok := strings.CutPrefix(write, "delete sandboxes "); ok {
				deleted = append(deleted, name)
			}
		}
		others := map[string]bool{}
		for _, l := range losses() {
			if !l.Deleted || slices.Contains(deleted, l.Member) {
				t.Errorf("Freshbind deleted or hid a fresh member: %+v; it deleted: %v", l, deleted)
			} else {
				others[l.Member] = true
			}
		}
		if excess := s.excess(); len(others) > excess {
			t.Errorf("agent-sandbox deleted fresh members: %v, and had %d too many", others, excess)
		}
	}()
	s.image(recreated, "sandbox:v2")
	s.image(rolled, "sandbox:v2")
	s.claim(recreated, scenario.Names("c", 2)...)
	// More members are born of the newer template.
	rolled.Replicas += 2
	s.patch(upstream.SandboxWarmPools, rolled.Name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, rolled.Replicas))
	s.full(recreated, "sandbox:v2")
	s.newer(rolled, 2)
	s.servesFresh(rolled)
	s.claim(rolled, "during")

	s.must(w.Guard.Stop())
	launched := time.Now()
	asked := w.wantedAll(t, 1, r, "watch")
	s.must(w.Guard.Launch())
	// The API server waits for 3 s to hear of all that etcd has, and gives up.
	s.eventually("first lists, asked for again", func(context.Context) (string, bool) {
		n := w.wantedAll(t, 1, r, "watch") - asked
		return fmt.Sprintf("%d requests", n), n >= 2
	})
	if wrote := w.writes(t, 1, s.Name, launched); len(wrote) > 0 {
		t.Errorf("Freshbind wrote before its first lists were complete: %v", wrote)
	}
	s.unheard(r, "sandbox:v2")
	etcd.Release(r.Group, r.Resource)
	s.must(w.Guard.WaitReady(t.Context(), within))
	s.full(recreated, "sandbox:v2")
	s.full(rolled, "sandbox:v2")
	s.atRest(rolled)
	s.claim(recreated, "after")
	s.claim(rolled, "after-too")
	now, err := s.SandboxOf(t.Context(), "before")
	if err != nil {
		t.Errorf("the sandbox of a claim: %v", err)
	} else if now.GetUID() != held.GetUID() || now.GetDeletionTimestamp() != nil {
		t.Error("the sandbox of a claim was deleted")
	}
	s.fresh(6)
}

// unheard checks that Freshbind's API server has not heard of an image yet: the
// list is what its watch cache holds.
func (s *stage) unheard(r schema.GroupResource, image string) {
	s.t.Helper()
	client, err := dynamic.NewForConfig(s.w.Cluster.ServerConfig(1))
	s.must(err)
	list, err := client.Resource(r.WithVersion(s.Version)).Namespace(s.Name).List(s.t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	s.must(err)
	for i := range list.Items {
		if scenario.ImageOf(&list.Items[i]) == image {
			s.t.Errorf("%s %s has come to Freshbind's API server: this test has shown nothing", r.Resource, list.Items[i].GetName())
		}
	}
	if len(list.Items) == 0 {
		s.t.Errorf("Freshbind's API server has no %s: this test has shown nothing", r.Resource)
	}
}

// newer waits until a pool has so many ready members of the newer template.
func (s *stage) newer(p scenario.Pool, want int) {
	s.t.Helper()
	s.eventually("newer members", func(ctx context.Context) (string, bool) {
		n := 0
		members, err := s.Members(ctx, p.Name)
		if err != nil {
			return err.Error(), false
		}
		for _, m := range members {
			if m.Image == "sandbox:v2" && m.Ready && m.Shown {
				n++
			}
		}
		return fmt.Sprintf("%d of %d members", n, len(members)), n >= want
	})
}

// servesFresh waits until a pool with fresh members that are ready does not say,
// for a while, that claims may be given others.
func (s *stage) servesFresh(p scenario.Pool) {
	s.t.Helper()
	still := 0
	s.eventually("claims given fresh members only", func(context.Context) (string, bool) {
		admit := s.get(upstream.SandboxWarmPools, p.Name).GetAnnotations()[settings.AdmitKey]
		if still++; admit == string(freshness.AdmitAny) {
			still = 0
		}
		return "admit " + admit, still >= 60
	})
}

// loss is a fresh member that a pool has no more, or that claims are not given.
type loss struct {
	Member  string
	Deleted bool
}

// losses follows the members of an image from now on. It returns a function that
// tells which of them were deleted, or hidden after they were ready, so far.
func (s *stage) losses(image string) func() []loss {
	s.t.Helper()
	list, err := s.Resource(upstream.Sandboxes).List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	var mu sync.Mutex
	var lost []loss
	ready := map[types.UID]bool{}
	s.watchFrom(s.Resource(upstream.Sandboxes), list.GetResourceVersion(), func(event watch.EventType, o *unstructured.Unstructured) {
		if scenario.ImageOf(o) != image {
			return
		}
		pool := scenario.PoolOf(o)
		deleted := event == watch.Deleted || o.GetDeletionTimestamp() != nil
		if pool != "" && (deleted || ready[o.GetUID()] && !agentsandbox.Shown(o)) {
			mu.Lock()
			lost = append(lost, loss{Member: o.GetName(), Deleted: deleted})
			mu.Unlock()
		}
		ready[o.GetUID()] = pool != "" && agentsandbox.Shown(o) && !agentsandbox.ReadySince(o).IsZero()
	})
	return func() []loss {
		mu.Lock()
		defer mu.Unlock()
		return lost
	}
}
