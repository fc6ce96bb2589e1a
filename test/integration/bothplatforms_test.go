package integration

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// One process guards two warm-pool systems, each with its own webhooks and controllers. One
// that comes, changes or goes does nothing to the other.
func TestTwoPlatformsAreGuardedAtOnce(t *testing.T) {
	t.Parallel()
	w := startKruise(t)
	set, left := w.set(kruiseSpace, "pool", ""), w.set(kruiseSpace, "left", "")
	w.asked(left)
	w.strategy(set, freshness.Recreate)
	w.eventually("the SandboxSet to be full", func() error { return w.full(set) })

	controllers, err := upstream.Start(t.Context(), w.cluster, upstream.Options{Version: "v1.0.3", Log: os.Stderr})
	w.must(err)
	w.logged(`"pools":"extensions.agents.x-k8s.io/`, 1)
	namespace, err := scenario.CreateNamespace(t.Context(), w.cluster.Config(), "v1beta1", "beside", scenario.Enforce())
	w.must(err)
	w.must(namespace.WaitGuarded(t.Context(), 2*within))
	w.replaced(namespace, "python")

	stale := w.born(left, "stale")
	w.edit("SandboxSet", kruiseSpace, "left")
	w.edit("SandboxSet", kruiseSpace, "pool")
	if err := refusedAsStale(w.take(stale, "a-user", "")); err != nil {
		t.Error(err)
	}
	w.eventually("the rollout of the SandboxSet", func() error {
		if err := w.full(set); err != nil {
			return err
		}
		return w.rolledOut(set)
	})
	if err := w.take(w.at(set, w.idle(set)[0]), "a-user", ""); err != nil {
		t.Errorf("a fresh member is refused: %v", err)
	}
	w.measured("agent-sandbox", kruise.Name)

	w.must(controllers.Stop())
	crds, err := apiextensions.NewForConfig(w.cluster.Config())
	w.must(err)
	for _, r := range []string{upstream.SandboxWarmPools.String(), upstream.SandboxClaims.String(), upstream.SandboxTemplates.String(), upstream.Sandboxes.String()} {
		w.must(crds.CustomResourceDefinitions().Delete(t.Context(), r, metav1.DeleteOptions{}))
	}
	w.eventually("the metrics of agent-sandbox to go", func() error {
		metrics, err := w.guard.Metrics(t.Context())
		if err == nil && strings.Contains(metrics, `platform="agent-sandbox"`) {
			err = fmt.Errorf("they are there: %s", metrics)
		}
		return err
	})
	w.must(w.guard.Err())
	if err := w.take(w.born(left, "fresh"), "b-user", ""); err != nil {
		t.Errorf("a fresh member is refused: %v", err)
	}
	if err := refusedAsStale(w.take(stale, "b-user", "")); err != nil {
		t.Error(err)
	}
}

// Commands look at the platform that is asked for. A release looks at both, though nobody is
// left to show the members that are hidden.
func TestTwoPlatformsAreReleased(t *testing.T) {
	t.Parallel()
	w := startKruise(t)
	set := w.set(kruiseSpace, "left", "")
	w.asked(w.set(kruiseSpace, "probe", ""))
	controllers, err := upstream.Start(t.Context(), w.cluster, upstream.Options{Version: "v1.0.3", Log: os.Stderr})
	w.must(err)
	t.Cleanup(func() { w.must(controllers.Stop()) })
	w.logged(`"pools":"extensions.agents.x-k8s.io/`, 1)
	namespace, err := scenario.CreateNamespace(t.Context(), w.cluster.Config(), "v1beta1", "beside", scenario.Enforce())
	w.must(err)
	w.must(namespace.WaitGuarded(t.Context(), 2*within))
	w.replaced(namespace, "python")
	stale := w.born(set, "stale").GetName()
	w.edit("SandboxSet", kruiseSpace, set.GetName())
	w.finds(set)

	w.prints("status -A", "beside", "python")
	w.prints("status -A --platform "+kruise.Name, kruiseSpace, set.GetName())
	// A pool that says nothing of Freshbind has nothing to be released.
	w.eventually("the outcome on the pool of agent-sandbox", func() error {
		pool, err := namespace.Resource(upstream.SandboxWarmPools).Get(t.Context(), "python", metav1.GetOptions{})
		if err == nil && pool.GetAnnotations()[settings.RolloutStateKey] == "" {
			err = fmt.Errorf("it says: %v", pool.GetAnnotations())
		}
		return err
	})
	w.must(w.guard.Kill())
	// It tries by itself until the policies that it deletes are forgotten, and says once what it did.
	said, err := w.command(t.Context(), "release -A --stop none/none --unattended --timeout "+within.String()).CombinedOutput()
	for _, want := range []string{"SandboxWarmPool beside/python: ", "SandboxSet " + kruiseSpace + "/" + set.GetName() + ": 1 members shown"} {
		if err != nil || !strings.Contains(string(said), want) {
			t.Errorf("release ends with %v and does not say %q:\n%s", err, want, said)
		}
	}
	w.finds(set, stale)
	for _, marked := range []*unstructured.Unstructured{w.at(set, stale), w.stored(set)} {
		if text := fmt.Sprint(marked.GetLabels(), marked.GetAnnotations()); strings.Contains(text, settings.Prefix) {
			t.Errorf("%s %s is still marked: %s", marked.GetKind(), marked.GetName(), text)
		}
	}
}

// refusedAsStale is nil when this is a denial because of an older revision, which may not be
// recorded yet.
func refusedAsStale(err error) error {
	if refused(err, "UnknownRevision: ") == nil {
		return nil
	}
	return refused(err, "StaleRevision: ")
}

// measured waits until metrics tell of these platforms.
func (w *kruiseWorld) measured(platforms ...string) {
	w.t.Helper()
	for _, name := range platforms {
		err := scenario.Poll(w.t.Context(), within, func(ctx context.Context) (bool, error) {
			metrics, err := w.guard.Metrics(ctx)
			return strings.Contains(metrics, `verdict="allow"`) && strings.Contains(metrics, fmt.Sprintf("platform=%q", name)), err
		})
		if err != nil {
			w.t.Errorf("no metric tells of %s: %v", name, err)
		}
	}
}
