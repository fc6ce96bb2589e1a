package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"

	"github.com/freshbind/freshbind/test/fixture"
)

const (
	// crowdPerPool is how many members a pool of BENCH=memory has.
	crowdPerPool = 100
	// benchNodes are added in the end, each with so many images.
	benchNodes, imagesPerNode = 10_000, 50
	// starting is how long a replica may take until it has seen all members.
	starting = 10 * time.Minute
	// perMember and perNode are what is promised, in bytes of heap; a start may
	// take perStart of each member.
	perMember, perNode, perStart = kibi, kibi, 2 * kibi
)

// memories is what members cost, in bytes of each.
type memories struct {
	members                        int
	leader, follower, start, nodes float64
	resident                       float64
}

func (m memories) rows() []row {
	of := fmt.Sprintf(" (of %d)", m.members)
	return []row{
		{what: "heap a member, leader" + of, unit: "B", aim: perMember, figures: []float64{m.leader}},
		{what: "heap a member, follower" + of, unit: "B", aim: perMember, figures: []float64{m.follower}},
		{what: "peak of resident memory at start, a member" + of, unit: "B", aim: perStart, figures: []float64{m.start}},
		{what: "heap a node", unit: "B", aim: perNode, figures: []float64{m.nodes}},
		{what: "peak of resident memory at start, all" + of, unit: "MiB", figures: []float64{m.resident / kibi / kibi}},
	}
}

func (m memories) faults() []string { return missed(m.rows()) }

func (m memories) line() string {
	return fmt.Sprintf("bench memory: members=%d leader=%.0f follower=%.0f start=%.0f node=%.0f", m.members, m.leader, m.follower, m.start, m.nodes)
}

// leading are the flags of a replica that elects.
func leading() []string {
	return []string{"--leader-elect=true", "--leader-election-namespace=default"}
}

// benchMemory starts Freshbind beside nothing and beside many members, and
// subtracts.
func benchMemory(ctx context.Context, o options, out io.Writer) (r result, err error) {
	w, err := newWorld(ctx, budget)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	if err := w.Controllers.Stop(); err != nil {
		return nil, fmt.Errorf("stop agent-sandbox: %w", err)
	}
	empty, err := w.restart(ctx)
	if err != nil {
		return nil, err
	}
	emptyHeap, err := heapInUse(ctx, w.Guard)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(w.Guard.Stop(), w.Guard.Uninstall(ctx)); err != nil {
		return nil, fmt.Errorf("stop freshbind: %w", err)
	}
	c, err := w.populate(ctx, "crowd", max(1, o.members/crowdPerPool), min(o.members, crowdPerPool), true)
	if err != nil {
		return nil, err
	}
	members := float64(len(c.pools) * c.perPool)
	_, _ = fmt.Fprintf(out, "%.0f ready members with Pods, in pools of %d; without any Freshbind has %.1f MiB of heap and %.1f MiB resident at start\n",
		members, c.perPool, emptyHeap/kibi/kibi, empty/kibi/kibi)
	found := memories{members: int(members)}
	if found.resident, err = w.restart(ctx); err != nil {
		return nil, err
	}
	found.start = (found.resident - empty) / members
	if err := c.waitComplete(ctx); err != nil {
		return nil, err
	}
	leader, err := heapInUse(ctx, w.Guard)
	if err != nil {
		return nil, err
	}
	found.leader = (leader - emptyHeap) / members
	return found, w.followerAndNodes(ctx, &found, emptyHeap)
}

// restart starts Freshbind as a replica that elects, and returns the peak of its
// resident memory until it was ready.
func (w *world) restart(ctx context.Context) (float64, error) {
	if err := w.Guard.Stop(); err != nil {
		return 0, fmt.Errorf("stop freshbind: %w", err)
	}
	w.Guard.SetArgs(leading()...)
	if err := w.Guard.Launch(); err != nil {
		return 0, err
	}
	if err := w.Guard.WaitReady(ctx, starting); err != nil {
		return 0, err
	}
	return peakMemory(w.Guard.PID())
}

// followerAndNodes adds a second replica, and then nodes.
func (w *world) followerAndNodes(ctx context.Context, m *memories, empty float64) (err error) {
	second, err := fixture.New(ctx, fixture.Options{
		Admin: w.Cluster.Config(), Identity: w.identity, Dir: filepath.Join(w.Cluster.Dir(), "second"),
		Program: w.Guard.Program(), Args: leading(),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, second.Close()) }()
	if err := second.Launch(); err != nil {
		return err
	}
	if err := second.WaitReady(ctx, starting); err != nil {
		return err
	}
	follower, err := heapInUse(ctx, second)
	if err != nil {
		return err
	}
	m.follower = (follower - empty) / float64(m.members)
	before, err := heapInUse(ctx, w.Guard)
	if err != nil {
		return err
	}
	if err := w.addNodes(ctx); err != nil {
		return err
	}
	nodes, err := heapInUse(ctx, w.Guard)
	m.nodes = (nodes - before) / benchNodes
	return err
}

// addNodes adds nodes that have many images, as those of a cluster do: one as a
// kubelet does, and the others as its copies.
func (w *world) addNodes(ctx context.Context) error {
	client, err := dynamic.NewForConfig(w.Cluster.Config())
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	made, err := runtime.DefaultUnstructuredConverter.ToUnstructured(benchNode())
	if err != nil {
		return fmt.Errorf("make node: %w", err)
	}
	first := &unstructured.Unstructured{Object: made}
	first.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	first, err = client.Resource(corev1.SchemeGroupVersion.WithResource("nodes")).Create(ctx, first, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i := range benchNodes {
		g.Go(func() error {
			node := first.DeepCopy()
			node.SetName(fmt.Sprintf("bench-%d", i+1))
			node.SetUID(uuid.NewUUID())
			// Nodes are stored under the name that they had before Kubernetes 1.0
			// (pkg/registry/core/rest, storage_core.go).
			return w.Cluster.Store(ctx, schema.GroupResource{Resource: "minions"}, node)
		})
	}
	return g.Wait()
}

func benchNode() *corev1.Node {
	const name = "bench-0"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: "zone-1"}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for k := range imagesPerNode {
		image := fmt.Sprintf("registry.example/team-%d/%s/image-%d", k%7, name, k)
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("%s@sha256:%064x", image, k), image + ":v1"}, SizeBytes: 1 << 28,
		})
	}
	return node
}
