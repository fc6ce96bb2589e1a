package pools

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/controllers/hints"
	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// world is a cluster for benchmarks: the real store of members and the real
// controller of pools with its event handlers, on an API server and a platform
// that cost next to nothing.
type world struct {
	*Controller
	ctx       context.Context
	clock     *clocktesting.FakePassiveClock
	store     *members.Store
	sandboxes *members.Feed[members.Member]
	bodies    *members.Feed[members.Pod]

	mu sync.Mutex
	// objects are pools, templates and Sandboxes, as they are stored.
	objects  map[objectKey]*unstructured.Unstructured
	recorded []platform.Recorded
	versions int
	// changed are Sandboxes that the store does not show yet, gone those that it
	// shows still.
	changed, gone []*unstructured.Unstructured
	due           sets.Set[types.NamespacedName]
}

type objectKey struct {
	kind string
	types.NamespacedName
}

func keyOf(u client.Object) objectKey {
	return objectKey{u.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(u)}
}

func newWorld(b *testing.B) *world {
	b.Helper()
	w := &world{
		ctx: logf.IntoContext(b.Context(), logr.Discard()), clock: clocktesting.NewFakePassiveClock(now), store: members.NewStore(platform.NewReducer(agentsandbox.Objects{})),
		objects: map[objectKey]*unstructured.Unstructured{}, due: sets.New[types.NamespacedName](),
	}
	w.sandboxes, w.bodies = w.store.FeedSandboxes("", func() {}), w.store.FeedPods("", func() {})
	act := func(context.Context, string, string) (bool, error) { return true, nil }
	view := &View{cache: w, lists: w, members: w.store, pods: w.store, kinds: poolKinds, objects: agentsandbox.Objects{}, barePods: agentsandbox.BarePods{}}
	view.followNodes(w.store)
	w.Controller = &Controller{
		platform: newInForce(w, w),
		kinds:    agentsandbox.Objects{}.Kinds(), visible: agentsandbox.Objects{}, enforced: act, enforcedNow: act, leads: func() bool { return true }, ready: map[types.UID]sets.Set[types.UID]{}, view: view,
		client: worldWrites{world: w}, refused: &Refused{hints: make(hints.Queue[Refusal], 1)}, metrics: NewMetrics(prometheus.NewRegistry()),
		events: &events.FakeRecorder{}, clock: w.clock, records: map[types.NamespacedName]*poolRecord{},
	}
	w.budget = NewBudget(50, Pace{}, func(key types.NamespacedName, _ time.Duration) { w.due.Insert(key) })
	for _, start := range []func() error{
		func() error {
			return changes[members.Member]{handle: w.store.HandleSandboxes, pools: w.poolsOfMember}.Start(b.Context(), worldQueue{due: w.due})
		},
		func() error {
			return changes[members.Pod]{handle: w.store.HandlePods, pools: view.poolsOfPod}.Start(b.Context(), worldQueue{due: w.due})
		},
	} {
		if err := start(); err != nil {
			b.Fatal(err)
		}
	}
	return w
}

// worldQueue has pools looked at as soon as somebody does.
type worldQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	due sets.Set[types.NamespacedName]
}

func (q worldQueue) AddAfter(req reconcile.Request, _ time.Duration) {
	q.due.Insert(req.NamespacedName)
}

// reconcile brings the pools a step further that wait for it, and returns how many
// those were.
func (w *world) reconcile(b *testing.B) int {
	due := slices.Collect(maps.Keys(w.due))
	clear(w.due)
	for _, key := range due {
		if _, err := w.Reconcile(w.ctx, reconcile.Request{NamespacedName: key}); err != nil {
			b.Fatal(err)
		}
	}
	return len(due)
}

// edit makes that the template in force.
func (w *world) edit(b *testing.B, template *unstructured.Unstructured) {
	b.Helper()
	rendered, err := agentsandbox.RenderMember(template)
	if err != nil {
		b.Fatal(err)
	}
	w.recorded = append([]platform.Recorded{{Hash: rendered.Hash(), Template: template, Rendered: rendered}}, w.recorded...)
	w.recorded = w.recorded[:min(len(w.recorded), 10)]
	w.objects[keyOf(template)] = template
}

// addPool adds a pool with as many members as it asks for, and their Pods.
func (w *world) addPool(b *testing.B, pool, template *unstructured.Unstructured) {
	b.Helper()
	w.objects[keyOf(pool)] = pool
	for i := range agentsandbox.Replicas(pool) {
		w.bear(b, pool, template, fmt.Sprintf("%s-%d", pool.GetName(), i))
	}
}

// bear makes a member that is ready, on one of a hundred nodes.
func (w *world) bear(b *testing.B, pool, template *unstructured.Unstructured, name string) {
	b.Helper()
	w.versions++
	hash := w.recorded[0].Hash
	m := builders.MakeMember(pool, template).Name(name).UID("uid-of-"+name).RV(int64(w.versions)).Generation(1).Created(w.clock.Now()).
		Ready(true).Label(settings.StampKey, hash).Annotation(settings.CreatedByKey, settings.CreatedByPool).Obj()
	w.objects[keyOf(m)] = m
	node := nodeNamed(fmt.Sprintf("node-%d", w.versions%100), false)
	w.objects[keyOf(node)] = node
	pod := builders.MakePod(m).UID("pod-"+name).RV(int64(w.versions)).Label(settings.StampKey, hash).Stored(node.GetName()).Obj()
	if err := w.bodies.Add(pod); err != nil {
		b.Fatal(err)
	}
	if err := w.sandboxes.Add(m); err != nil {
		b.Fatal(err)
	}
}

// show has the store show what was written.
func (w *world) show(b *testing.B) {
	b.Helper()
	changed, gone := w.changed, w.gone
	w.changed, w.gone = nil, nil
	for _, u := range changed {
		if err := w.sandboxes.Update(u); err != nil {
			b.Fatal(err)
		}
	}
	for _, u := range gone {
		pod := object(podKind)
		pod.SetNamespace(u.GetNamespace())
		pod.SetName(u.GetName())
		if err := w.bodies.Delete(pod); err != nil {
			b.Fatal(err)
		}
		if err := w.sandboxes.Delete(u); err != nil {
			b.Fatal(err)
		}
	}
}

// Get returns a copy, as a cache does.
func (w *world) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	is := w.objects[objectKey{obj.GetObjectKind().GroupVersionKind().Kind, key}]
	if is == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	is.DeepCopyInto(obj.(*unstructured.Unstructured))
	return nil
}

// List shows exactly what caches do.
func (w *world) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	into := list.(*metav1.PartialObjectMetadataList)
	into.Items, into.ResourceVersion = nil, strconv.Itoa(w.versions)
	if into.GroupVersionKind() != listOf(poolKinds.Sandboxes) {
		return nil
	}
	for _, m := range w.store.Sandboxes("") {
		into.Items = append(into.Items, metav1.PartialObjectMetadata{ObjectMeta: m.Metadata()})
	}
	return nil
}

func (w *world) Revisions(context.Context, *unstructured.Unstructured) ([]platform.Recorded, error) {
	return w.recorded, nil
}

// worldWrites carries out every write.
type worldWrites struct {
	client.Client
	*world
}

func (w worldWrites) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return w.world.Get(ctx, key, obj, opts...)
}

func (w worldWrites) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return w.world.List(ctx, list, opts...)
}

func (w worldWrites) Delete(_ context.Context, obj client.Object, _ ...client.DeleteOption) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = append(w.gone, w.objects[keyOf(obj)])
	delete(w.objects, keyOf(obj))
	return nil
}

// Patch merges labels and annotations.
func (w worldWrites) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	body, err := patch.Data(obj)
	if err != nil {
		return err
	}
	var asked struct {
		Metadata struct{ Labels, Annotations map[string]*string }
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.versions++
	next := w.objects[keyOf(obj)].DeepCopy()
	next.SetResourceVersion(strconv.Itoa(w.versions))
	next.SetLabels(merged(next.GetLabels(), asked.Metadata.Labels))
	next.SetAnnotations(merged(next.GetAnnotations(), asked.Metadata.Annotations))
	w.objects[keyOf(obj)] = next
	if next.GetKind() == poolKinds.Sandboxes.Kind {
		w.changed = append(w.changed, next)
	}
	return nil
}

func merged(into map[string]string, patch map[string]*string) map[string]string {
	for key, value := range patch {
		if delete(into, key); value != nil {
			into[key] = *value
		}
	}
	return into
}

// calmDown looks at pools until there is nothing more to do, and once more when what
// was written is seen.
func (w *world) calmDown(b *testing.B) {
	b.Helper()
	for w.due.Len() > 0 {
		w.reconcile(b)
		w.show(b)
	}
	w.clock.SetTime(w.clock.Now().Add(countsEvery))
	w.callAll()
	w.reconcile(b)
}

// callAll has every pool looked at.
func (w *world) callAll() {
	for key := range w.objects {
		if key.kind == poolKinds.Pools.Kind {
			w.due.Insert(key.NamespacedName)
		}
	}
}

// forgetMembers keeps of members only what the store does.
func (w *world) forgetMembers() {
	maps.DeleteFunc(w.objects, func(key objectKey, _ *unstructured.Unstructured) bool { return key.kind == poolKinds.Sandboxes.Kind })
}
