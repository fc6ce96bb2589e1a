package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/scheduler"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// The scheduler's watch of Pods is ahead of Freshbind's of Sandboxes: it asks about members
// that no cache of Freshbind shows. Stale ones are refused all the same.
func TestMembersThatNoCacheShowsAreJudged(t *testing.T) {
	s := newStage(t)
	const replicas = 6
	held := upstream.Sandboxes
	s.w.proxy.Hold(held.Group, held.Resource)
	t.Cleanup(func() { s.w.proxy.Release(held.Group, held.Resource) })
	p := s.pool(scenario.Pool{Replicas: replicas}, s.onlyOn("late"))
	s.waitPods("pending", replicas, func(pod *corev1.Pod) bool { return scheduled(pod).Status == corev1.ConditionFalse })
	// Of a pool with members that it does not see Freshbind says nothing.
	empty := scenario.Pool{Name: "empty", Template: p.Template}
	s.must(s.Create(s.t.Context(), builders.MakePool(s.Name, empty.Name).APIVersion(s.Version).Template(p.Template).Replicas(0).
		Strategy(scenario.OnReplenish).Annotation("freshbind.dev/rollout-strategy", "Recreate").Obj()))
	before := s.waitRevision(empty, "")
	f := s.follow()

	s.image(p, v2)
	// Freshbind knows of it by now, and still of no member.
	s.waitRevision(empty, before)
	s.openRoom("late", 0, 1, 2, 3)
	s.waitPods("refused as stale", replicas, func(pod *corev1.Pod) bool {
		message := scheduled(pod).Message
		return strings.Contains(message, scheduler.StaleMember+" (is v1-") && strings.Contains(message, "in force is v1-")
	})
	f.view(func() {
		for uid, node := range f.bound {
			t.Errorf("stale pod %s was bound to %s", uid, node)
		}
	})
	s.w.proxy.Release(held.Group, held.Resource)
	s.full(p, v2)
}

// waitRevision waits until Freshbind says that the pool is to have another revision than
// that one, and returns it.
func (s *stage) waitRevision(p scenario.Pool, not string) (revision string) {
	s.t.Helper()
	s.eventually("Freshbind knows the pool's template", func(ctx context.Context) (string, bool) {
		pool, err := s.Resource(upstream.SandboxWarmPools).Get(ctx, p.Name, metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		var status struct{ UpdateRevision string }
		is := pool.GetAnnotations()[settings.RolloutStatusKey]
		err = json.Unmarshal([]byte(is), &status)
		revision = status.UpdateRevision
		return fmt.Sprintf("%q, %v", is, err), revision != "" && revision != not
	})
	return revision
}
