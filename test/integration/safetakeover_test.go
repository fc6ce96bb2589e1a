package integration

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// The leader is killed when it has written some of the stamps of a store full of
// members, of two revisions, from before it was asked to act. The other replica
// writes the rest, and none again.
func TestAnotherReplicaGoesOnWithABackfill(t *testing.T) {
	t.Parallel()
	var proxy *controlplane.Proxy
	lead := []string{"--leader-elect=true", "--leader-election-namespace=default"}
	w := ownWorld(t, scenario.WorldOptions{
		Cluster: controlplane.Options{AuditLog: true}, Reach: scenario.Through(&proxy), Guard: fixture.Options{Args: lead},
	})
	s := w.namespace(t, nil)
	p := s.pool(scenario.Pool{Replicas: 30, Strategy: scenario.OnReplenish})
	before := s.mixed(p, 10)
	s.atRest(p)
	rested, _ := s.judged()

	const most = 15
	var stamps atomic.Int64
	proxy.HoldRequests(func(r *http.Request) bool {
		return r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/sandboxes/") && stamps.Add(1) > most
	})
	s.enforce()
	stamped := func() (sandboxes map[types.UID]string, n int) {
		sandboxes = map[types.UID]string{}
		for _, o := range s.list(upstream.Sandboxes) {
			if sandboxes[o.GetUID()] = o.GetLabels()[settings.StampKey]; sandboxes[o.GetUID()] != "" {
				n++
			}
		}
		return sandboxes, n
	}
	s.eventually("some stamps, and the next one under way", func(context.Context) (string, bool) {
		_, n := stamped()
		return fmt.Sprintf("%d stamps, %d asked for", n, stamps.Load()), n > 0 && stamps.Load() > most
	})
	s.must(w.Guard.Kill())
	w.startSecond(t, lead)
	// The stamps that were under way are not the new leader's.
	s.eventually("all stamps", func(context.Context) (string, bool) {
		_, n := stamped()
		return fmt.Sprintf("%d stamps", n), n >= p.Replicas
	})
	s.must(w.Guard.Start(t.Context()))
	s.atRest(p)

	after, _ := stamped()
	for uid, want := range before {
		if got := after[uid]; got != want {
			t.Errorf("member %s is stamped %q, want %s", uid, got, want)
		}
	}
	s.podsStampedAs(after)
	if sum, _ := s.judged(); sum.MemberDeletes > rested.MemberDeletes || sum.Hidden > 0 || len(after) != len(before) {
		t.Errorf("%d members deleted, want none; %d hidden, %d there", sum.MemberDeletes-rested.MemberDeletes, sum.Hidden, len(after))
	}
	for name, n := range w.patched(t, s.Name) {
		if n != 1 {
			t.Errorf("sandbox %s was written %d times, want once", name, n)
		}
	}
	s.must(s.WaitGuarded(t.Context(), within))
	s.claim(p, scenario.Names("c", 3)...)
}

// mixed has some members of a pool replaced by ones of a newer template, and
// returns all with the stamps that they should get.
func (s *stage) mixed(p scenario.Pool, newer int) map[types.UID]string {
	s.t.Helper()
	older := s.printedHash(s.get(upstream.SandboxTemplates, p.Template))
	s.eventually("the older revision recorded", func(ctx context.Context) (string, bool) {
		list, err := s.kube().AppsV1().ControllerRevisions(s.Name).List(ctx, metav1.ListOptions{LabelSelector: settings.StampKey + "=" + older})
		s.must(err)
		return fmt.Sprintf("%d revisions", len(list.Items)), len(list.Items) == 1
	})
	s.image(p, "sandbox:v2")
	for _, m := range s.full(p, "")[:newer] {
		s.must(s.Resource(upstream.Sandboxes).Delete(s.t.Context(), m.Name, metav1.DeleteOptions{}))
	}
	revisions := map[string]string{"sandbox:v1": older, "sandbox:v2": s.printedHash(s.get(upstream.SandboxTemplates, p.Template))}
	out, n := map[types.UID]string{}, 0
	s.eventually("members of both", func(context.Context) (string, bool) {
		out, n = map[types.UID]string{}, 0
		for _, m := range s.full(p, "") {
			if out[m.UID] = revisions[m.Image]; m.Image == "sandbox:v2" {
				n++
			}
		}
		return fmt.Sprintf("%d newer ones", n), n == newer
	})
	return out
}

// startSecond runs another replica, straight at the API server.
func (w *world) startSecond(t *testing.T, args []string) {
	t.Helper()
	second, err := w.StartSecond(t.Context(), nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	})
}

// podsStampedAs waits until all Pods have the stamps of their Sandboxes.
func (s *stage) podsStampedAs(sandboxes map[types.UID]string) {
	s.t.Helper()
	s.eventually("all pods stamped", func(ctx context.Context) (string, bool) {
		pods, err := s.kube().CoreV1().Pods(s.Name).List(ctx, metav1.ListOptions{})
		s.must(err)
		n := 0
		for i := range pods.Items {
			owner, stamp := metav1.GetControllerOf(&pods.Items[i]), pods.Items[i].Labels[settings.StampKey]
			if owner == nil || pods.Items[i].DeletionTimestamp != nil || stamp == "" {
				continue
			}
			if want, ok := sandboxes[owner.UID]; ok {
				if n++; stamp != want {
					s.t.Fatalf("pod %s is stamped %q, want %s", pods.Items[i].Name, stamp, want)
				}
			}
		}
		return fmt.Sprintf("%d of %d", n, len(sandboxes)), n == len(sandboxes)
	})
}

// patched counts, for each sandbox of a namespace, Freshbind's patches that the
// API server has stored.
func (w *world) patched(t *testing.T, namespace string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, q := range w.requests(t, 0) {
		o := q.ObjectRef
		if q.Verb == "patch" && o.Resource == "sandboxes" && o.Namespace == namespace && q.ResponseStatus.Code == http.StatusOK {
			out[o.Name]++
		}
	}
	return out
}
