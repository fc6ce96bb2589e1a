// Package scheduler tests the scheduler extender with the real kube-scheduler and
// the real agent-sandbox. What was bound is judged from the watch of pods.
package scheduler

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	release = "v1.0.3"
	// within bounds every wait; nothing here should come near it.
	within = 10 * time.Minute

	zones, nodesPerZone = 3, 4
	// budget is small, so that stale members have to wait for their deletion.
	budget = 25

	extenderMode = "--scheduling=Extender"
)

var budgetFlag = "--replacement-budget=" + strconv.Itoa(budget)

// shared is the world of all tests, which run one after the other.
var shared struct {
	once sync.Once
	w    *world
	err  error
}

func TestMain(m *testing.M) {
	fixture.Main(m, func() error {
		if shared.w == nil {
			return nil
		}
		return shared.w.close()
	})
}

// world is a control plane with nodes in zones, agent-sandbox, Freshbind, and a
// kube-scheduler that asks it.
type world struct {
	*scenario.World
	kube   *kubernetes.Clientset
	cancel context.CancelFunc
	// proxy is between Freshbind and the API server.
	proxy  *controlplane.Proxy
	caFile string
}

func sharedWorld(t *testing.T) *world {
	t.Helper()
	shared.once.Do(func() { shared.w, shared.err = newWorld(context.WithoutCancel(t.Context())) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	shared.w.RanOn(t)
	return shared.w
}

func newWorld(ctx context.Context) (*world, error) {
	program, err := fixture.Program()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &world{cancel: cancel}
	w.World, err = scenario.StartWorld(ctx, scenario.WorldOptions{
		Release: release,
		// The garbage collector takes the Pods of deleted Sandboxes away.
		Cluster: controlplane.Options{Nodes: zones * nodesPerZone, OwnScheduler: true, ControllerManager: true, Log: os.Stderr},
		Guard:   fixture.Options{Program: program, Args: []string{extenderMode, budgetFlag}},
		Reach:   scenario.Through(&w.proxy),
	})
	if err != nil {
		cancel()
		return nil, err
	}
	w.caFile = w.Cluster.Dir() + "/freshbind-ca.crt"
	if w.kube, err = kubernetes.NewForConfig(w.Cluster.Config()); err != nil {
		return nil, err
	}
	if err := os.WriteFile(w.caFile, w.Guard.CA(), 0o644); err != nil {
		return nil, err
	}
	for i := range zones * nodesPerZone {
		if err := w.label(ctx, nodeName(i), corev1.LabelTopologyZone, zoneOf(nodeName(i))); err != nil {
			return nil, err
		}
	}
	stanza, err := w.config(ctx)
	if err != nil {
		return nil, err
	}
	_, err = w.Cluster.StartScheduler(controlplane.KubeScheduler, nil, stanza)
	return w, err
}

// config is what freshbind itself says a scheduler has to be told. It waits as long as
// it may: who goes on without an answer places pods as if there were no Freshbind.
func (w *world) config(ctx context.Context, args ...string) (string, error) {
	args = append([]string{"scheduler-config", "--url=" + w.Guard.WebhookURL(), "--ca-file=" + w.caFile, "--timeout=1m"}, args...)
	cmd := exec.CommandContext(ctx, w.Guard.Program(), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("scheduler-config: %w: %s", err, stderr.String())
	}
	return string(out), nil
}

func (w *world) close() error {
	died := w.Err()
	w.cancel()
	return errors.Join(died, w.Stop())
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// zoneOf puts nodes into zones in turn.
func zoneOf(node string) string {
	i, err := strconv.Atoi(strings.TrimPrefix(node, "node-"))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("zone-%d", i%zones)
}

// label sets a label of a node; "" removes it.
func (w *world) label(ctx context.Context, node, key, value string) error {
	v := strconv.Quote(value)
	if value == "" {
		v = "null"
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, key, v)
	_, err := w.kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// metric is the sum of the samples whose line begins so.
func (w *world) metric(ctx context.Context, begins string) (float64, error) {
	text, err := w.Guard.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, line := range regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(begins)+`.* (\S+)$`).FindAllStringSubmatch(text, -1) {
		v, err := strconv.ParseFloat(line[1], 64)
		if err != nil {
			return 0, fmt.Errorf("reading metric %q: %w", line[0], err)
		}
		sum += v
	}
	return sum, nil
}

const (
	refusals      = `freshbind_scheduler_requests_total{platform="agent-sandbox",result="refused",verb="filter"}`
	noPreemptions = `freshbind_scheduler_requests_total{platform="agent-sandbox",result="refused",verb="preempt"}`
	requeues      = `freshbind_scheduler_requeues_total`
)

var namespaces atomic.Int64

// stage is a namespace in which Freshbind denies, with its test.
type stage struct {
	*scenario.Namespace
	t *testing.T
	w *world
}

func newStage(t *testing.T) *stage {
	t.Helper()
	w := sharedWorld(t)
	name := fmt.Sprintf("st-%d", namespaces.Add(1))
	ns, err := scenario.CreateNamespace(t.Context(), w.Cluster.Config(), w.Version, name, scenario.Enforce())
	s := &stage{ns, t, w}
	s.must(err)
	s.must(ns.WaitGuarded(t.Context(), within))
	t.Cleanup(func() {
		// What is left must not take the room, or the budget, of the next test.
		s.must(ns.Remove(context.WithoutCancel(t.Context())))
		s.eventually("namespace "+name+" gone", func(ctx context.Context) (string, bool) {
			_, err := w.kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			return fmt.Sprint(err), err != nil
		})
	})
	return s
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// eventually polls for a condition that tells how far things are.
func (s *stage) eventually(what string, condition func(ctx context.Context) (string, bool)) {
	s.t.Helper()
	state := ""
	err := scenario.Poll(context.WithoutCancel(s.t.Context()), within, func(ctx context.Context) (bool, error) {
		var done bool
		state, done = condition(ctx)
		return done, nil
	})
	if err != nil {
		s.t.Fatalf("%s: %v; there is: %s", what, err, state)
	}
}

// pool stores a template and a pool that Freshbind recreates, one at a time of
// its budget: agent-sandbox itself leaves stale members alone.
func (s *stage) pool(p scenario.Pool, change ...func(*builders.Template)) scenario.Pool {
	s.t.Helper()
	p.Name = cmp.Or(p.Name, "python")
	p.Template, p.Image = p.Name, cmp.Or(p.Image, v1)
	template := builders.MakeTemplate(s.Name, p.Template).APIVersion(s.Version).Image(p.Image)
	for _, c := range change {
		c(template)
	}
	pool := builders.MakePool(s.Name, p.Name).APIVersion(s.Version).Template(p.Template).Replicas(int64(p.Replicas)).
		Strategy(scenario.OnReplenish).Annotation("freshbind.dev/rollout-strategy", "Recreate")
	s.must(s.Create(s.t.Context(), template.Obj(), pool.Obj()))
	return p
}

const v1, v2 = "sandbox:v1", "sandbox:v2"

// onlyOn has members run on nodes with a label that is the stage's own.
func (s *stage) onlyOn(room string) func(*builders.Template) {
	return func(t *builders.Template) { t.PodSpec(s.room(room), "nodeSelector", s.roomKey()) }
}

func (s *stage) roomKey() string         { return "test.freshbind.dev/" + s.Name }
func (s *stage) room(name string) string { return s.Name + "-" + name }

// openRoom makes nodes of that room.
func (s *stage) openRoom(room string, nodes ...int) {
	s.t.Helper()
	for _, i := range nodes {
		s.must(s.w.label(s.t.Context(), nodeName(i), s.roomKey(), s.room(room)))
	}
}

func (s *stage) pods() []corev1.Pod {
	s.t.Helper()
	list, err := s.w.kube.CoreV1().Pods(s.Name).List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	return list.Items
}

func imageOf(pod *corev1.Pod) string { return pod.Spec.Containers[0].Image }

// scheduled returns the condition that tells what the scheduler thinks.
func scheduled(pod *corev1.Pod) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c
		}
	}
	return corev1.PodCondition{}
}

// waitPods waits until as many pods as wanted are as wanted.
func (s *stage) waitPods(what string, want int, is func(*corev1.Pod) bool) {
	s.t.Helper()
	s.waitCount(fmt.Sprintf("%d pods %s", want, what), is, func(n int) bool { return n == want })
}

// waitSome waits until some pod is as wanted.
func (s *stage) waitSome(what string, is func(*corev1.Pod) bool) {
	s.t.Helper()
	s.waitCount("pods "+what, is, func(n int) bool { return n > 0 })
}

func (s *stage) waitCount(what string, is func(*corev1.Pod) bool, enough func(int) bool) {
	s.t.Helper()
	s.eventually(what, func(context.Context) (string, bool) {
		n, all := 0, s.pods()
		for i := range all {
			if is(&all[i]) {
				n++
			}
		}
		return fmt.Sprintf("%d of %d", n, len(all)), enough(n)
	})
}

// waitMetric waits until a sample is greater than it was.
func (s *stage) waitMetric(sample string, was float64) {
	s.t.Helper()
	s.eventually(sample+" grows", func(ctx context.Context) (string, bool) {
		is, err := s.w.metric(ctx, sample)
		return fmt.Sprintf("%g, was %g: %v", is, was, err), err == nil && is > was
	})
}

func (s *stage) metric(sample string) float64 {
	s.t.Helper()
	v, err := s.w.metric(s.t.Context(), sample)
	s.must(err)
	return v
}

func (s *stage) full(p scenario.Pool, image string) {
	s.t.Helper()
	_, err := s.WaitPool(s.t.Context(), p, image, within)
	s.must(err)
}

func (s *stage) image(p scenario.Pool, image string) {
	s.t.Helper()
	_, err := s.SetImage(s.t.Context(), p.Template, image)
	s.must(err)
}

func (s *stage) patchTemplate(p scenario.Pool, patch string) {
	s.t.Helper()
	_, err := s.Resource(upstream.SandboxTemplates).Patch(s.t.Context(), p.Template, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	s.must(err)
}
