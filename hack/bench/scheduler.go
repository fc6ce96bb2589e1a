package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/scheduler"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
)

const (
	schedulerNodes = 100
	// allBound is how long a round may take.
	allBound = 5 * time.Minute
	// schedulerPods are those that a scheduler binds in one round.
	schedulerPods = 1000
	// atOnce is how many pods are created at once.
	atOnce = 16
)

// schedulings is the result of all pairs of rounds.
type schedulings struct {
	pods int
	// with and without the extender: how long it took from the first pod that was
	// bound to the last.
	with, without []time.Duration
	asked         []asked
}

func (s schedulings) rows() []row {
	var rows []row
	for _, a := range s.asked {
		rows = append(rows, a.row())
	}
	with, without := row{what: "pods bound with the extender", unit: "/s"}, row{what: "pods bound without it", unit: "/s"}
	for i := range s.with {
		with.figures = append(with.figures, float64(s.pods-1)/s.with[i].Seconds())
		without.figures = append(without.figures, float64(s.pods-1)/s.without[i].Seconds())
	}
	return append(rows, with, without)
}

func (s schedulings) faults() []string { return missed(s.rows()) }

func (s schedulings) line() string {
	return fmt.Sprintf("bench scheduler: nodes=%d pods=%d pairs=%d with=%.0f/s without=%.0f/s ratio=%.2f",
		schedulerNodes, s.pods, len(s.with), s.rate(s.with), s.rate(s.without), s.rate(s.with)/s.rate(s.without))
}

// rate is in pods per second, over all rounds.
func (s schedulings) rate(rounds []time.Duration) float64 {
	var sum time.Duration
	for _, d := range rounds {
		sum += d
	}
	return float64((s.pods-1)*len(rounds)) / sum.Seconds()
}

// benchScheduler has one kube-scheduler after the other bind pods that wait for
// it, in turn with and without the extender. The pods are nobody's members: what
// the extender costs them every pod of a cluster pays.
func benchScheduler(ctx context.Context, o options, out io.Writer) (result, error) {
	w, err := scenario.StartWorld(ctx, scenario.WorldOptions{
		Release: release,
		Cluster: controlplane.Options{Nodes: schedulerNodes, OwnScheduler: true, Log: os.Stderr},
		Guard:   fixture.Options{Args: []string{"--scheduling=Extender"}},
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Stop() }()
	// The members that it is asked about are stored as they are.
	if err := w.Controllers.Stop(); err != nil {
		return nil, fmt.Errorf("stop agent-sandbox: %w", err)
	}
	stanza, err := stanzaFor(w)
	if err != nil {
		return nil, err
	}
	cfg := rest.CopyConfig(w.Cluster.Config())
	cfg.QPS = -1
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	r := schedulings{pods: min(o.members, schedulerPods)}
	if r.asked, err = askAboutMembers(ctx, w, o, out); err != nil {
		return nil, err
	}
	for i := range o.pairs {
		for _, turn := range []struct {
			name, config string
			into         *[]time.Duration
		}{{"with", stanza, &r.with}, {"without", "", &r.without}} {
			took, err := bindAll(ctx, w, kube, fmt.Sprintf("%s-%d", turn.name, i), turn.config, r.pods)
			if err != nil {
				return nil, err
			}
			*turn.into = append(*turn.into, took)
			_, _ = fmt.Fprintf(out, "pair %d  %-7s the extender: %d pods in %.2f s\n", i+1, turn.name, r.pods, took.Seconds())
		}
	}
	return r, nil
}

func stanzaFor(w *scenario.World) (string, error) {
	ca := filepath.Join(w.Cluster.Dir(), "freshbind-ca.crt")
	if err := os.WriteFile(ca, w.Guard.CA(), 0o644); err != nil {
		return "", fmt.Errorf("write CA: %w", err)
	}
	config := scheduler.Config{URL: w.Guard.WebhookURL(), CAFile: ca, Timeout: time.Second, Weight: 10, Ignorable: true}
	stanza, err := yaml.Marshal(config.Stanza())
	if err != nil {
		return "", fmt.Errorf("encode stanza: %w", err)
	}
	return string(stanza), nil
}

// bindAll creates pods, has a scheduler bind them, and takes both away again.
func bindAll(ctx context.Context, w *scenario.World, kube kubernetes.Interface, name, config string, pods int) (time.Duration, error) {
	ns, err := scenario.CreateNamespace(ctx, w.Cluster.Config(), w.Version, "bench-"+name, nil)
	if err != nil {
		return 0, err
	}
	if err := createPods(ctx, kube, ns.Name, pods); err != nil {
		return 0, err
	}
	defer func() {
		_ = kube.CoreV1().Pods(ns.Name).DeleteCollection(ctx, *metav1.NewDeleteOptions(0), metav1.ListOptions{})
	}()
	process, err := w.Cluster.StartScheduler("scheduler-"+name, nil, config)
	if err != nil {
		return 0, err
	}
	defer func() { _ = process.Stop() }()
	return untilBound(ctx, cache.NewListWatchFromClient(kube.CoreV1().RESTClient(), "pods", ns.Name, fields.Everything()), name, pods)
}

// untilBound returns how long it took from the first pod that was bound to the last.
func untilBound(ctx context.Context, of cache.ListerWatcher, name string, pods int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, allBound)
	defer cancel()
	bound := map[types.UID]bool{}
	var first, last time.Time
	_, err := watchtools.UntilWithSync(ctx, of, &corev1.Pod{}, nil, func(e watch.Event) (bool, error) {
		pod, isPod := e.Object.(*corev1.Pod)
		if !isPod || pod.Spec.NodeName == "" || bound[pod.UID] {
			return false, nil
		}
		if last = time.Now(); first.IsZero() {
			first = last
		}
		bound[pod.UID] = true
		return len(bound) == pods, nil
	})
	if err != nil {
		return 0, fmt.Errorf("%s: wait until %d pods are bound, %d are: %w", name, pods, len(bound), err)
	}
	return last.Sub(first), nil
}

func createPods(ctx context.Context, kube kubernetes.Interface, namespace string, n int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i := range n {
		g.Go(func() error {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p-%d", i)},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "plain:v1"}}},
			}
			if _, err := kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("create pod: %w", err)
			}
			return nil
		})
	}
	return g.Wait()
}
