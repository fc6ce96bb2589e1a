package integration

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// empty is a cluster with Freshbind and no warm-pool system.
type empty struct {
	t       *testing.T
	cluster *controlplane.Cluster
	guard   *fixture.Freshbind
}

func emptyCluster(t *testing.T, args ...string) *empty {
	t.Helper()
	return emptyClusterOf(t, 1, args...)
}

// emptyClusterOf is one with so many nodes.
func emptyClusterOf(t *testing.T, nodes int, args ...string) *empty {
	t.Helper()
	program, err := fixture.Program()
	if err != nil {
		t.Fatal(err)
	}
	w, err := scenario.StartWorld(context.WithoutCancel(t.Context()), scenario.WorldOptions{
		Cluster: controlplane.Options{Nodes: nodes, Log: os.Stderr}, Guard: fixture.Options{Program: program, Args: args},
	})
	if err != nil {
		t.Fatal(err)
	}
	e := &empty{t: t, cluster: w.Cluster, guard: w.Guard}
	t.Cleanup(func() { e.must(w.Stop()) })
	w.RanOn(t)
	return e
}

func (e *empty) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// logged waits until Freshbind's log says something so often.
func (e *empty) logged(what string, times int) {
	e.t.Helper()
	err := scenario.Poll(e.t.Context(), 2*within, func(context.Context) (bool, error) {
		return e.says(what) >= times, e.guard.Err()
	})
	if err != nil {
		e.t.Fatalf("%q is logged %d times, want %d: %v", what, e.says(what), times, err)
	}
}

func (e *empty) says(what string) int {
	e.t.Helper()
	log, err := os.ReadFile(e.guard.LogPath())
	e.must(err)
	return strings.Count(string(log), what)
}

// replaced creates a pool, changes its template, and waits until all its members
// are of the new one.
func (e *empty) replaced(namespace *scenario.Namespace, name string) {
	e.t.Helper()
	ctx := e.t.Context()
	p := scenario.Pool{Name: name, Template: name, Image: "sandbox:v1", Replicas: 2, Strategy: scenario.Recreate}
	e.must(namespace.CreatePool(ctx, p))
	_, err := namespace.WaitPool(ctx, p, "sandbox:v1", 2*within)
	e.must(err)
	_, err = namespace.SetImage(ctx, p.Template, "sandbox:v2")
	e.must(err)
	_, err = namespace.WaitPool(ctx, p, "sandbox:v2", 2*within)
	e.must(err)
	e.must(namespace.CreateClaims(ctx, p, name+"-c"))
	e.must(namespace.WaitClaims(ctx, 2*within, name+"-c"))
}

// Freshbind serves in a cluster without agent-sandbox and watches nothing of it;
// it takes up its work when the CRDs come, goes on when these serve another
// version, and waits again when they go.
func TestAPlatformComesChangesAndGoes(t *testing.T) {
	t.Parallel()
	e := emptyCluster(t)
	const waiting, found, changed = "Waiting for a warm-pool system", "Found a warm-pool system", "The served API versions of the warm-pool system have changed"
	e.logged(waiting, 1)
	kube, err := kubernetes.NewForConfig(e.cluster.Config())
	e.must(err)
	wrong := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "wrong", Labels: map[string]string{settings.EnforcementKey: "sometimes"}}}
	err = scenario.Poll(t.Context(), within, func(ctx context.Context) (bool, error) {
		_, err := kube.CoreV1().Namespaces().Create(ctx, wrong, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "advise.freshbind.dev"), nil
	})
	if err != nil {
		t.Fatalf("a mode that does not exist is not refused: %v", err)
	}
	if n := e.says("Starting EventSource"); n != 0 {
		t.Errorf("%d watches without anything to watch", n)
	}

	for i, of := range []struct{ release, version string }{{"v0.4.6", "v1alpha1"}, {"v0.5.6", "v1beta1"}} {
		controllers, err := upstream.Start(t.Context(), e.cluster, upstream.Options{Version: of.release, Log: os.Stderr})
		e.must(err)
		e.logged(fmt.Sprintf(`"pools":"extensions.agents.x-k8s.io/%s"`, of.version), 1)
		namespace, err := scenario.CreateNamespace(t.Context(), e.cluster.Config(), of.version, fmt.Sprintf("n%d", i), scenario.Enforce())
		e.must(err)
		e.must(namespace.WaitGuarded(t.Context(), 2*within))
		e.replaced(namespace, "python")
		e.must(controllers.Stop())
	}
	// The CRDs come one after the other: between two of them something else is served.
	changes := e.says(changed)
	if changes < 1 {
		t.Error("no change of what is served was noticed")
	}

	crds, err := apiextensions.NewForConfig(e.cluster.Config())
	e.must(err)
	for _, r := range []string{upstream.SandboxWarmPools.String(), upstream.SandboxClaims.String(), upstream.SandboxTemplates.String(), upstream.Sandboxes.String()} {
		e.must(crds.CustomResourceDefinitions().Delete(t.Context(), r, metav1.DeleteOptions{}))
	}
	e.logged(waiting, 2)
	e.must(e.guard.Err())
	if n := e.says(found); n != changes+1 {
		t.Errorf("found a warm-pool system %d times, want once, and once for each of %d changes", n, changes)
	}
	if !e.guard.Serves() {
		t.Error("the webhooks are not served any more")
	}
}
