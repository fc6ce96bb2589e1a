package scheduler

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/test/scenario"
)

const strict = "strict-scheduler"

// While Freshbind is down pods of a scheduler that may ignore it are scheduled, its
// own among them, and those of one that may not wait, and are scheduled at once
// when it is back.
func TestExtenderDown(t *testing.T) {
	s := newStage(t)
	s.startSecond(strict, "--ignorable=false")
	up := plainPod("up")
	up.Spec.SchedulerName = strict
	s.runs(up)

	s.must(s.w.Guard.Stop())
	s.runs(plainPod("ignoring"))
	waits := plainPod("waiting")
	waits.Spec.SchedulerName = strict
	_, err := s.w.kube.CoreV1().Pods(s.Name).Create(t.Context(), waits, metav1.CreateOptions{})
	s.must(err)
	s.waitPods("that nobody dares to place", 1, func(pod *corev1.Pod) bool {
		return pod.Name == waits.Name && scheduled(pod).Reason == corev1.PodReasonSchedulerError
	})
	s.must(s.w.Guard.Start(context.WithoutCancel(t.Context())))
	s.waitRuns(waits.Name)
}

// startSecond runs a scheduler with the configuration that freshbind prints for
// one of its own, until the test ends.
func (s *stage) startSecond(name string, args ...string) (stop func()) {
	s.t.Helper()
	config, err := s.w.config(s.t.Context(), append([]string{"--second-scheduler", "--scheduler-name=" + name}, args...)...)
	s.must(err)
	// There is one of it, and a lease would outlive it.
	alone := strings.Replace(config, "leaderElect: true", "leaderElect: false", 1)
	if alone == config {
		s.t.Fatalf("the second scheduler elects no leader:\n%s", config)
	}
	process, err := s.w.Cluster.StartScheduler(name, nil, alone)
	s.must(err)
	stop = func() { s.must(process.Stop()) }
	s.t.Cleanup(stop)
	return stop
}

// mode starts Freshbind again with another --scheduling.
func (s *stage) mode(flag string) {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	s.must(s.w.Guard.Stop())
	s.w.Guard.SetArgs(flag, budgetFlag)
	s.must(s.w.Guard.Start(ctx))
	s.must(s.WaitGuarded(ctx, within))
}

const secondScheduler = "freshbind-scheduler"

// Members' pods go to the second scheduler, are bound and replaced like others,
// and nothing waits for it when it is gone.
func TestSecondScheduler(t *testing.T) {
	s := newStage(t)
	t.Cleanup(func() { s.mode(extenderMode) })
	s.mode("--scheduling=SecondScheduler")
	stop := s.startSecond(secondScheduler)
	sent := func(pod *corev1.Pod) bool { return pod.Spec.SchedulerName == secondScheduler }

	p := s.pool(scenario.Pool{Replicas: 6})
	s.full(p, v1)
	s.waitPods("sent to the second scheduler", 6, sent)
	s.must(s.CreateClaims(t.Context(), p, "c1"))
	s.must(s.WaitClaims(t.Context(), within, "c1"))
	s.image(p, v2)
	s.full(p, v2)
	s.must(s.CreateClaims(t.Context(), p, "c2"))
	s.must(s.WaitClaims(t.Context(), within, "c2"))

	// Some wait for a node when the second scheduler goes: a claim's, and idle ones.
	late := s.pool(scenario.Pool{Name: "late", Replicas: 2}, s.onlyOn("late"))
	waits := func(pod *corev1.Pod) bool { return sent(pod) && s.selects(pod, "late") && pod.Spec.NodeName == "" }
	s.waitPods("waiting", 2, waits)
	s.claimPending(late, "waits")
	s.waitPods("waiting", 3, waits)

	s.mode("--scheduling=None")
	stop()
	s.openRoom("late", 7)
	s.waitPods("of idle members that are the second scheduler's, or pending", 0, func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName == "" || sent(pod) && !s.claimed(pod)
	})
	s.must(s.WaitClaims(t.Context(), within, "c1", "c2", "waits"))
	s.full(p, v2)
	s.full(late, "")
	s.waitPods("pending", 0, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" })
}

// claimed reports whether a claim has the pod's Sandbox.
func (s *stage) claimed(pod *corev1.Pod) bool {
	s.t.Helper()
	for _, pool := range []string{"python", "late"} {
		members, err := s.Members(s.t.Context(), pool)
		s.must(err)
		for _, m := range members {
			if m.Name == pod.Name {
				return false
			}
		}
	}
	return true
}
