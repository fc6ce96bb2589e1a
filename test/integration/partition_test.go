package integration

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/scenario"
)

// When the control plane loses sight of every node at once, members are refused,
// for nobody knows how they are, but none is deleted: nothing could come in their
// place. That holds, too, while Freshbind's own watch of nodes shows them ready. When
// the nodes are back they are claimed as if nothing had been.
func TestNoMemberIsGivenUpWhenEveryNodeIsAway(t *testing.T) {
	t.Parallel()
	var proxy *controlplane.Proxy
	w := ownWorld(t, scenario.WorldOptions{Cluster: controlplane.Options{Stages: notReady}, Reach: scenario.Through(&proxy)})
	t.Run("seen", func(t *testing.T) { everyNodeIsAway(t, w) })
	t.Run("not seen", func(t *testing.T) {
		proxy.Hold("", "nodes")
		defer proxy.Release("", "nodes")
		everyNodeIsAway(t, w)
	})
}

func everyNodeIsAway(t *testing.T, w *world) {
	s := w.enforced(t)
	p := s.pool(scenario.Pool{Replicas: 4, Strategy: scenario.OnReplenish})
	before := map[types.UID]bool{}
	for _, m := range s.full(p, "") {
		before[m.UID] = true
	}
	s.nodesReady(false)
	// One after the other comes upon each member, and is cold-started.
	claims := scenario.Names("c", 4)
	s.must(s.CreateClaims(t.Context(), p, claims...))
	leaving := func(d decision) bool { return d.Operation == "bind" && d.Reason == "NodeLeaving" }
	s.eventually("every member refused", func(context.Context) (string, bool) {
		refused := map[string]bool{}
		for _, d := range s.decisions(leaving) {
			refused[d.Sandbox] = true
		}
		return fmt.Sprintf("%d members refused", len(refused)), len(refused) == p.Replicas
	})
	s.eventually("no claim left without a sandbox", func(ctx context.Context) (string, bool) {
		// One that was not stored is tried again.
		cold := map[string]bool{}
		for _, d := range s.decisions(func(d decision) bool { return d.Operation == "coldstart" && d.Verdict == "allow" }) {
			cold[d.Claim] = true
		}
		return fmt.Sprintf("%d cold starts", len(cold)), len(cold) == len(claims)
	})
	offered := s.watchOffers()
	s.nodesReady(true)
	s.eventually("every member offered again", func(context.Context) (string, bool) {
		return fmt.Sprintf("%d offered", len(offered())), len(offered()) == p.Replicas
	})
	s.must(s.WaitClaims(t.Context(), within, claims...))
	members := s.full(p, "")
	for _, m := range members {
		if !before[m.UID] {
			t.Errorf("member %s is new: one was given up", m.Name)
		}
	}
	s.atRest(p)
	s.claim(p, scenario.Names("d", 4)...)
	if sum, _ := s.judged(); sum.Warm != 4 {
		t.Errorf("%s, want the last 4 warm", sum)
	}
}

// nodesReady makes all nodes ready, or none.
func (s *stage) nodesReady(ready bool) {
	s.t.Helper()
	nodes := s.kube().CoreV1().Nodes()
	patch := `{"metadata":{"labels":{"` + notReadyLabel + `":"true"}}}`
	if ready {
		patch = `{"metadata":{"labels":{"` + notReadyLabel + `":null}}}`
	}
	list, err := nodes.List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	for _, n := range list.Items {
		_, err := nodes.Patch(s.t.Context(), n.Name, mergePatch, []byte(patch), patchOptions)
		s.must(err)
	}
	s.eventually(fmt.Sprintf("all nodes ready: %t", ready), func(ctx context.Context) (string, bool) {
		list, err := nodes.List(ctx, metav1.ListOptions{})
		s.must(err)
		n := 0
		for i := range list.Items {
			for _, c := range list.Items[i].Status.Conditions {
				if c.Type == corev1.NodeReady && (c.Status == corev1.ConditionTrue) == ready {
					n++
				}
			}
		}
		return fmt.Sprintf("%d of %d", n, len(list.Items)), n == len(list.Items)
	})
}
