package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/fakekruise"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/webhooks"
)

const (
	// kruiseCreates is how often each namespace is asked for a sandbox;
	// FRESHBIND_KRUISE_CREATES says otherwise.
	kruiseCreates = 100
	// kruiseUsers ask at the same time in each namespace.
	kruiseUsers = 4
	// kruiseEvery is after how many requests somebody edits the SandboxSets.
	kruiseEvery = 20
	// kruiseSize is how many members each SandboxSet has.
	kruiseSize = 10
)

// Users of E2B ask for sandboxes while somebody edits the SandboxSet, whose controllers and
// server learn of it late. Where binds are enforced, nobody gets a stale one, and nobody gets
// an error but whose CREATE an edit overtakes (decision record 13); where they are not, somebody
// does get a stale one.
func TestKruiseCreates(t *testing.T) {
	t.Parallel()
	w := startKruise(t)
	n := kruiseCreates
	if value := os.Getenv("FRESHBIND_KRUISE_CREATES"); value != "" {
		var err error
		n, err = strconv.Atoi(value)
		w.must(err)
	}
	w.asked(w.set(kruiseSpace, "probe", ""))
	c := &creates{w: w, server: w.doubleOf(lag, fakekruise.Options{})}
	guarded, unguarded := w.sized(kruiseSpace, freshness.Recreate), w.sized("audited", "")
	c.sets = []*unstructured.Unstructured{guarded, unguarded}
	for _, set := range c.sets {
		w.eventually("SandboxSet "+set.GetNamespace()+" to be full", func() error { return w.ready(set, 0) })
	}
	before := c.unrepaired()
	c.run(n)
	c.whileUnseen()

	with, without := c.of(guarded), c.of(unguarded)
	t.Logf("%d edits, seen %s late, %d members each", c.version.Load(), lag, kruiseSize)
	t.Logf("guarded    %s", with)
	t.Logf("unguarded  %s", without)
	if with.stale > 0 || with.failed > 0 {
		t.Errorf("where binds are enforced %d requests got a stale sandbox and %d an error, want none: %q", with.stale, with.failed, with.errs)
	}
	// Each was created as a late cache had it, because Freshbind was too late to repair it.
	if most := c.unrepaired() - before; with.unrepaired > most {
		t.Errorf("%d cold starts were refused that no edit overtook, and %d were not repaired in time: %q", with.unrepaired, most, with.errs)
	}
	if without.stale == 0 {
		t.Error("where nothing is enforced nobody got a stale sandbox, and at least one edit was unseen: the test shows nothing")
	}
}

// doubleOf starts controllers and an E2B server, which learn of changes of SandboxSets late,
// each by itself. It returns the server.
func (w *kruiseWorld) doubleOf(late time.Duration, options fakekruise.Options) *fakekruise.Server {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	w.t.Cleanup(cancel)
	as := func(user string) *rest.Config {
		cfg, err := w.cluster.User(user, "system:masters", "system:serviceaccounts", "system:authenticated")
		w.must(err)
		proxy, err := w.cluster.NewProxy(0)
		w.must(err)
		proxy.SetDelay(fakekruise.Group, fakekruise.Sets.Resource, late)
		w.doubles = append(w.doubles, proxy)
		return proxy.Config(cfg)
	}
	w.must(fakekruise.StartControllers(ctx, as(fakekruise.ControllerUser), options))
	server, err := fakekruise.StartServer(ctx, as(fakekruise.ServerUser), options)
	w.must(err)
	return server
}

// served has the server give somebody a sandbox, who asks again when nobody could decide in time.
func (w *kruiseWorld) served(server *fakekruise.Server, r fakekruise.Request) fakekruise.Result {
	w.t.Helper()
	var got fakekruise.Result
	w.must(w.answered(r.User, func() (err error) {
		got, err = server.Create(w.t.Context(), r)
		return err
	}))
	return got
}

// sized is a SandboxSet of revision 0.
func (w *kruiseWorld) sized(namespace string, strategy freshness.Strategy) *unstructured.Unstructured {
	w.t.Helper()
	set := kruiseObject("SandboxSet", namespace, "pool", map[string]any{"replicas": int64(kruiseSize), "template": boxTemplate(boxOf(0))})
	if strategy != "" {
		set.SetAnnotations(map[string]string{settings.StrategyKey: string(strategy)})
	}
	w.create(set)
	return set
}

// boxOf is the image of a revision, and revisionOf the revision of an image.
func boxOf(revision int64) string { return fmt.Sprintf("registry.example.com/box:%d", revision) }

func revisionOf(image string) (int64, error) {
	_, tag, _ := strings.Cut(image, ":")
	return strconv.ParseInt(tag, 10, 64)
}

// ready is nil when a SandboxSet has all its members, of that revision at least, and all are
// ready.
func (w *kruiseWorld) ready(set *unstructured.Unstructured, least int64) error {
	w.t.Helper()
	n := 0
	for _, name := range w.idle(set) {
		box := w.at(set, name)
		ip, _, _ := unstructured.NestedString(box.Object, "status", "podInfo", "podIP")
		if is, err := revisionOf(boxImage(box)); err == nil && is >= least && ip != "" {
			n++
		}
	}
	if n < kruiseSize {
		return fmt.Errorf("%d members of %d are ready", n, kruiseSize)
	}
	return nil
}

func boxImage(box *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(box.Object, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return ""
	}
	first, _ := containers[0].(map[string]any)
	image, _ := first["image"].(string)
	return image
}

// creates are requests to the E2B server, between which SandboxSets are edited.
type creates struct {
	w      *kruiseWorld
	server *fakekruise.Server
	sets   []*unstructured.Unstructured
	// version is the revision that all SandboxSets are known to be of, or of a newer one, and
	// begun the newest that one of them may be of.
	version, begun atomic.Int64
	editing        sync.Mutex

	mu   sync.Mutex
	made map[string][]created
}

// created is how one request ended.
type created struct {
	took  time.Duration
	cold  bool
	stale bool
	// overtaken: it was refused for good before its last try, while somebody edited the SandboxSet.
	overtaken bool
	// unrepaired: so it was, and nobody did.
	unrepaired bool
	tries      int
	err        error
	runs, want int64
}

// run has n requests made in each SandboxSet.
func (c *creates) run(n int) {
	c.made = map[string][]created{}
	var started, asked atomic.Int64
	var group sync.WaitGroup
	for _, set := range c.sets {
		var own atomic.Int64
		for range kruiseUsers {
			group.Go(func() {
				for own.Add(1) <= int64(n) {
					if started.Add(1)%(kruiseEvery*int64(len(c.sets))) == 1 {
						if err := c.edit(); err != nil {
							c.w.t.Errorf("editing: %v", err)
						}
					}
					made := c.ask(set, asked.Add(1))
					c.mu.Lock()
					c.made[set.GetNamespace()] = append(c.made[set.GetNamespace()], made)
					c.mu.Unlock()
				}
			})
		}
	}
	group.Wait()
}

// whileUnseen has everybody ask once more, while the controllers and the server do not see an
// edit, however long that takes.
func (c *creates) whileUnseen() {
	c.w.t.Helper()
	for _, proxy := range c.w.doubles {
		proxy.Hold(fakekruise.Group, fakekruise.Sets.Resource)
		defer proxy.Release(fakekruise.Group, fakekruise.Sets.Resource)
	}
	c.w.must(c.edit())
	for _, set := range c.sets {
		c.made[set.GetNamespace()] = append(c.made[set.GetNamespace()], c.ask(set, 0))
	}
}

// edit gives all SandboxSets the next revision, while requests are under way. Only when that
// is stored in all is it the one that those have to get which begin then.
func (c *creates) edit() error {
	c.editing.Lock()
	defer c.editing.Unlock()
	next := c.begun.Add(1)
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"template": boxTemplate(boxOf(next))}})
	if err != nil {
		return err
	}
	for _, set := range c.sets {
		if err := c.w.c.Patch(c.w.t.Context(), set.DeepCopy(), client.RawPatch(types.MergePatchType, raw)); err != nil {
			return err
		}
	}
	c.version.Store(next)
	return nil
}

// unrepaired is how many cold starts had no answer in time from the hook that repairs them.
func (c *creates) unrepaired() int {
	c.w.t.Helper()
	n, err := passed(c.w.t.Context(), c.w.cluster, c.w.guard, webhooks.StampHook.Name)
	c.w.must(err)
	return n
}

// ask has somebody ask until there is an answer that is not about the moment.
func (c *creates) ask(set *unstructured.Unstructured, user int64) (out created) {
	err := scenario.Poll(c.w.t.Context(), within, func(context.Context) (bool, error) {
		out = c.try(set, user)
		return !ofTheMoment(out.err), nil
	})
	out.err = errors.Join(out.err, err)
	return out
}

// ofTheMoment: the API server, or Freshbind, says that a deadline was over, or that the member,
// which went for an edit, is gone, as the server does not see yet.
func ofTheMoment(err error) bool {
	late := apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && strings.Contains(err.Error(), "context deadline")
	return late || isNotFound(err)
}

// try is one request, and the end of what came of it. Stale is what is older than the
// revision that was stored before anybody asked: by the Sandbox, and by its Pod.
func (c *creates) try(set *unstructured.Unstructured, user int64) created {
	ctx := c.w.t.Context()
	out := created{want: c.version.Load()}
	got, err := c.server.Create(ctx, fakekruise.Request{Namespace: set.GetNamespace(), Set: set.GetName(), User: fmt.Sprintf("user-%d", user)})
	out.took, out.tries, out.cold, out.err = got.Took, got.Tries, got.Created, err
	if err != nil {
		cold := apierrors.IsConflict(err) && got.Tries < fakekruise.Tries
		out.overtaken = cold && c.begun.Load() > out.want
		out.unrepaired = cold && !out.overtaken
		return out
	}
	var pod corev1.Pod
	if err := c.w.c.Get(ctx, client.ObjectKeyFromObject(got.Sandbox), &pod); err != nil {
		out.err = fmt.Errorf("the pod of what somebody got: %w", err)
		return out
	}
	out.runs, err = revisionOf(pod.Spec.Containers[0].Image)
	inSpec, also := revisionOf(boxImage(got.Sandbox))
	out.stale = min(out.runs, inSpec) < out.want
	out.err = errors.Join(err, also, c.server.Delete(ctx, got.Sandbox))
	return out
}

// outcome sums requests up.
type outcome struct {
	asked, stale, failed, overtaken, unrepaired, cold int
	// tries are how many requests were tried how often.
	tries          map[int]int
	p50, p99, most time.Duration
	errs           []string
}

func (c *creates) of(set *unstructured.Unstructured) outcome {
	out := outcome{tries: map[int]int{}}
	var took []time.Duration
	for _, m := range c.made[set.GetNamespace()] {
		out.asked++
		took = append(took, m.took)
		out.tries[m.tries]++
		switch {
		case m.overtaken:
			out.overtaken++
		case m.err != nil:
			if m.unrepaired {
				out.unrepaired++
			} else {
				out.failed++
			}
			if len(out.errs) < 5 {
				out.errs = append(out.errs, m.err.Error())
			}
		case m.stale:
			out.stale++
		}
		if m.cold {
			out.cold++
		}
	}
	slices.Sort(took)
	at := func(percent int) time.Duration { return took[min(len(took)*percent/100, len(took)-1)] }
	out.p50, out.p99, out.most = at(50), at(99), at(100)
	return out
}

func (o outcome) String() string {
	return fmt.Sprintf("%d creates: %d stale, %d failed, %d overtaken by an edit, %d not repaired in time, %d created for want of a member, by tries %v; p50 %s, p99 %s, most %s",
		o.asked, o.stale, o.failed, o.overtaken, o.unrepaired, o.cold, o.tries, o.p50.Round(time.Millisecond), o.p99.Round(time.Millisecond), o.most.Round(time.Millisecond))
}
