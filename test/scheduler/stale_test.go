package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/freshbind/freshbind/scheduler"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// follower notes what became of every pod of a namespace.
type follower struct {
	mu sync.Mutex
	// there are the pods as they are.
	there map[types.UID]*corev1.Pod
	// bound are the pods that ever had a node, refusals the conditions that say so.
	bound    map[types.UID]string
	refusals map[types.UID]corev1.PodCondition
	// waited are the pods that had no node at the first refusal.
	waited map[types.UID]*corev1.Pod
}

func (s *stage) follow() *follower {
	s.t.Helper()
	f := &follower{there: map[types.UID]*corev1.Pod{}, bound: map[types.UID]string{}, refusals: map[types.UID]corev1.PodCondition{}}
	pods := s.w.kube.CoreV1().Pods(s.Name)
	list, err := pods.List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	for i := range list.Items {
		f.see(watch.Added, &list.Items[i])
	}
	// When the API server ends it, because this reads too slowly, it goes on where it was.
	w, err := watchtools.NewRetryWatcherWithContext(s.t.Context(), list.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: pods.Watch})
	s.must(err)
	s.t.Cleanup(w.Stop)
	go func() {
		for e := range w.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok && e.Type != watch.Error {
				f.see(e.Type, pod)
			}
		}
	}()
	return f
}

func (f *follower) see(event watch.EventType, pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.there[pod.UID] = pod
	if event == watch.Deleted {
		delete(f.there, pod.UID)
	}
	if pod.Spec.NodeName != "" {
		f.bound[pod.UID] = pod.Spec.NodeName
	}
	c := scheduled(pod)
	if !strings.Contains(c.Message, scheduler.StaleMember) {
		return
	}
	if len(f.refusals) == 0 {
		f.waited = maps.Clone(f.there)
		maps.DeleteFunc(f.waited, func(_ types.UID, pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	}
	f.refusals[pod.UID] = c
}

// view is for looks at what it has noted.
func (f *follower) view(look func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	look()
}

// gone waits until it has seen that there is no such pod any more.
func (s *stage) gone(f *follower, what string, is func(*corev1.Pod) bool) {
	s.t.Helper()
	s.eventually("the end of pods "+what+" is seen", func(context.Context) (string, bool) {
		n := 0
		f.view(func() {
			for _, pod := range f.there {
				if is(pod) {
					n++
				}
			}
		})
		return fmt.Sprintf("%d are there", n), n == 0
	})
}

// The template changes while every pod of a large pool waits for a node. From the
// first refusal on no stale pod gets one, and all fresh ones do.
func TestTemplateChangesWhile200PodsArePending(t *testing.T) {
	s := newStage(t)
	p := s.pool(scenario.Pool{Replicas: 200}, s.onlyOn("late"))
	s.waitPods("pending", 200, func(pod *corev1.Pod) bool { return scheduled(pod).Status == corev1.ConditionFalse })
	f, was := s.follow(), s.metric(refusals)

	s.image(p, v2)
	start := time.Now()
	// Freshbind knows by now: it has deleted members, as many as its budget allows.
	s.waitSome("of the new image", func(pod *corev1.Pod) bool { return imageOf(pod) == v2 })
	s.openRoom("late", 0, 1, 2, 3)
	s.waitMetric(refusals, was)
	s.full(p, v2)
	took := time.Since(start)
	s.gone(f, "that are stale", func(pod *corev1.Pod) bool { return imageOf(pod) == v1 })
	f.view(func() {
		stale := maps.Clone(f.waited)
		maps.DeleteFunc(stale, func(_ types.UID, pod *corev1.Pod) bool { return imageOf(pod) != v1 })
		t.Logf("200 members fresh and ready after %.0f s; %d stale pods waited when the extender first refused one", took.Seconds(), len(stale))
		if len(stale) == 0 {
			t.Fatal("no stale pod was left when the extender first refused one: the test shows nothing")
		}
		for uid, pod := range stale {
			if node := f.bound[uid]; node != "" {
				t.Errorf("stale pod %s was bound to %s after the first refusal", pod.Name, node)
			}
		}
		revisions := 0
		for _, c := range f.refusals {
			if c.Reason != corev1.PodReasonUnschedulable {
				t.Errorf("condition %s: %q, want %s", c.Reason, c.Message, corev1.PodReasonUnschedulable)
			}
			// Not of one whose Sandbox is gone already.
			if strings.Contains(c.Message, "(is v1-") && strings.Contains(c.Message, "in force is v1-") {
				revisions++
			}
		}
		if revisions == 0 {
			t.Errorf("none of %d conditions names the pod's revision and the one in force", len(f.refusals))
		}
	})
}

// Stale members that wait for their deletion evict nobody, although they are more
// important: and the moment that the template comes back they are fresh, and run.
func TestRollbackBringsRefusedPodsToRun(t *testing.T) {
	s := newStage(t)
	const replicas = 3 * budget
	important, innocent := s.important(), s.occupy(nodeName(0))
	p := s.pool(scenario.Pool{Replicas: replicas}, s.onlyOn("old"), func(tpl *builders.Template) {
		tpl.PodSpec(important, "priorityClassName")
		tpl.PodSpec([]any{map[string]any{
			"name": "c", "image": v1, "resources": map[string]any{"requests": map[string]any{"cpu": "5"}},
		}}, "containers")
	})
	s.waitPods("pending", replicas, func(pod *corev1.Pod) bool { return scheduled(pod).Status == corev1.ConditionFalse })
	f := s.follow()
	refused, kept, requeued := s.metric(refusals), s.metric(noPreemptions), s.metric(requeues)

	// Nothing of the new revision ever starts, so that the budget is used up.
	s.move(p, "nowhere")
	s.waitSome("of the new revision", func(pod *corev1.Pod) bool { return s.selects(pod, "nowhere") })
	s.openRoom("old", 0, 1)
	s.waitMetric(refusals, refused)
	s.waitMetric(noPreemptions, kept)
	s.waitSome("refused", func(pod *corev1.Pod) bool { return strings.Contains(scheduled(pod).Message, scheduler.StaleMember) })
	f.view(func() {
		for uid := range f.refusals {
			if f.bound[uid] != "" {
				t.Errorf("a refused pod is on %s", f.bound[uid])
			}
		}
	})
	start := time.Now()
	s.move(p, "old")
	refusedBefore := func(pod *corev1.Pod) (was bool) {
		f.view(func() { _, was = f.refusals[pod.UID] })
		return was
	}
	s.waitPods("that were refused and do not run", 0, func(pod *corev1.Pod) bool {
		return refusedBefore(pod) && pod.Status.Phase != corev1.PodRunning
	})
	s.waitSome("that were refused and run", refusedBefore)
	t.Logf("refused pods ran %.1f s after the rollback", time.Since(start).Seconds())
	s.waitMetric(requeues, requeued)
	s.full(p, v1)
	pod, err := s.w.kube.CoreV1().Pods(s.Name).Get(t.Context(), innocent.Name, metav1.GetOptions{})
	if err != nil || pod.UID != innocent.UID || pod.DeletionTimestamp != nil {
		t.Errorf("the pod on the full node was evicted: deleted at %v, %v", pod.DeletionTimestamp, err)
	}
}

// important makes a priority above everybody else's.
func (s *stage) important() string {
	s.t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: s.Name}, Value: 1000}
	_, err := s.w.kube.SchedulingV1().PriorityClasses().Create(s.t.Context(), class, metav1.CreateOptions{})
	s.must(err)
	return class.Name
}

// occupy has one pod of the least priority take all CPU of a node.
func (s *stage) occupy(node string) *corev1.Pod {
	s.t.Helper()
	pod := plainPod("innocent")
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}
	return s.runs(pod)
}

func plainPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "plain:v1"}}},
	}
}

// runs stores a pod and waits until it runs.
func (s *stage) runs(pod *corev1.Pod) *corev1.Pod {
	s.t.Helper()
	stored, err := s.w.kube.CoreV1().Pods(s.Name).Create(s.t.Context(), pod, metav1.CreateOptions{})
	s.must(err)
	s.waitRuns(pod.Name)
	return stored
}

func (s *stage) waitRuns(name string) {
	s.t.Helper()
	s.eventually("pod "+name+" runs", func(ctx context.Context) (string, bool) {
		pod, err := s.w.kube.CoreV1().Pods(s.Name).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprint(scheduled(pod)), pod.Status.Phase == corev1.PodRunning
	})
}

// move has the template's members run in another room.
func (s *stage) move(p scenario.Pool, room string) {
	s.t.Helper()
	s.patchTemplate(p, fmt.Sprintf(`{"spec":{"podTemplate":{"spec":{"nodeSelector":{%q:%q}}}}}`, s.roomKey(), s.room(room)))
}

func (s *stage) selects(pod *corev1.Pod, room string) bool {
	return pod.Spec.NodeSelector[s.roomKey()] == s.room(room)
}

// Whoever got a member that waits for a node gets its node, however stale it has
// become.
func TestAMemberClaimedWhilePendingIsScheduled(t *testing.T) {
	s := newStage(t)
	p := s.pool(scenario.Pool{Replicas: 1}, s.onlyOn("late"))
	s.waitPods("pending", 1, func(pod *corev1.Pod) bool { return scheduled(pod).Status == corev1.ConditionFalse })
	name := s.claimPending(p, "c1")
	s.image(p, v2)
	s.waitPods("of the new image", 1, func(pod *corev1.Pod) bool { return imageOf(pod) == v2 })
	s.openRoom("late", 2)
	s.waitRuns(name)
	pod, err := s.w.kube.CoreV1().Pods(s.Name).Get(t.Context(), name, metav1.GetOptions{})
	s.must(err)
	if got := imageOf(pod); got != v1 {
		t.Errorf("the claim's pod runs %s, want %s, which was in force when it was claimed", got, v1)
	}
	s.must(s.WaitClaims(t.Context(), within, "c1"))
	s.full(p, v2)
}

// claimPending gives a claim a member whose pod waits for a node. agent-sandbox
// does not choose one, but goes on with one that the claim names already.
func (s *stage) claimPending(p scenario.Pool, claim string) string {
	s.t.Helper()
	members, err := s.Members(s.t.Context(), p.Name)
	s.must(err)
	if len(members) == 0 || members[0].Ready {
		s.t.Fatalf("no member of %s is pending: %v", p.Name, members)
	}
	name := members[0].Name
	s.must(s.Create(s.t.Context(), builders.ClaimFrom(s.Claim(p, claim)).Names(name).Obj()))
	s.eventually("claim "+claim+" has "+name, func(ctx context.Context) (string, bool) {
		sandbox, err := s.SandboxOf(ctx, claim)
		if err != nil {
			return err.Error(), false
		}
		return sandbox.GetName(), sandbox.GetName() == name
	})
	return name
}

// A node that leaves gets no member, and a member that waits for it gets it when
// it stays after all.
func TestNodesThatLeaveAreRefused(t *testing.T) {
	s := newStage(t)
	s.openRoom("going", 5)
	s.taint(`[{"key":"test.freshbind.dev/going","effect":"NoExecute"}]`, 5)
	p := s.pool(scenario.Pool{Replicas: 2}, s.onlyOn("going"), func(tpl *builders.Template) {
		tpl.PodSpec([]any{map[string]any{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}}, "tolerations")
	})
	s.waitPods("refused", 2, func(pod *corev1.Pod) bool { return strings.Contains(scheduled(pod).Message, scheduler.NodeLeaving) })
	s.setTaints(t.Context(), "null", 5)
	s.full(p, "")
}

// taint has nodes tainted until the end of the test.
func (s *stage) taint(taints string, nodes ...int) {
	s.t.Helper()
	s.t.Cleanup(func() { s.setTaints(context.WithoutCancel(s.t.Context()), "null", nodes...) })
	s.setTaints(s.t.Context(), taints, nodes...)
}

func (s *stage) setTaints(ctx context.Context, taints string, nodes ...int) {
	s.t.Helper()
	for _, i := range nodes {
		_, err := s.w.kube.CoreV1().Nodes().Patch(ctx, nodeName(i), types.MergePatchType,
			[]byte(`{"spec":{"taints":`+taints+`}}`), metav1.PatchOptions{})
		s.must(err)
	}
}

// Nodes that are set aside for sandboxes have a taint that evicts whatever does
// not tolerate it. Members that do are scheduled there, stay, and are given to
// claims.
func TestNodesSetAsideForSandboxes(t *testing.T) {
	s := newStage(t)
	aside := []int{2, 6, 10}
	s.openRoom("aside", aside...)
	s.taint(`[{"key":"dedicated","value":"sandbox","effect":"NoExecute"}]`, aside...)
	p := s.pool(scenario.Pool{Replicas: 6}, s.onlyOn("aside"), func(tpl *builders.Template) {
		tpl.PodSpec([]any{map[string]any{"key": "dedicated", "operator": "Equal", "value": "sandbox", "effect": "NoExecute"}}, "tolerations")
	})
	s.full(p, v1)
	first, err := s.Members(t.Context(), p.Name)
	s.must(err)
	s.must(s.WaitSeen(t.Context(), within))
	claims := scenario.Names("c", 2)
	s.must(s.CreateClaims(t.Context(), p, claims...))
	s.must(s.WaitClaims(t.Context(), within, claims...))
	s.full(p, v1)

	var members, left []types.UID
	for _, m := range first {
		members = append(members, m.UID)
	}
	for _, claim := range claims {
		sandbox, err := s.SandboxOf(t.Context(), claim)
		s.must(err)
		if !slices.Contains(members, sandbox.GetUID()) {
			t.Errorf("claim %s started cold", claim)
		}
	}
	sandboxes, err := s.Resource(upstream.Sandboxes).List(t.Context(), metav1.ListOptions{})
	s.must(err)
	for _, sandbox := range sandboxes.Items {
		left = append(left, sandbox.GetUID())
	}
	for _, m := range first {
		if !slices.Contains(left, m.UID) {
			t.Errorf("member %s was deleted", m.Name)
		}
	}
	s.waitPods("on nodes set aside", 8, func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(aside, func(i int) bool { return pod.Spec.NodeName == nodeName(i) })
	})
}
