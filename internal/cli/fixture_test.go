package cli_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/clitest"
)

const ns = "prod"

// version is a version of the template python.
func version(image string) *unstructured.Unstructured {
	return builders.MakeTemplate(ns, "python").Image(image).RV(1).Obj()
}

func pool(replicas int64) *builders.Pool {
	return builders.MakePool(ns, "python").Template("python").Replicas(replicas).Strategy("OnReplenish")
}

// idle returns ready members of a version of the template, each a minute old.
func idle(p *builders.Pool, template *unstructured.Unstructured, prefix string, n int) []client.Object {
	var out []client.Object
	for i := range n {
		out = append(out, one(p, template, fmt.Sprintf("python-%s%d", prefix, i)).Ready(true).Obj())
	}
	return out
}

func one(p *builders.Pool, template *unstructured.Unstructured, name string) *builders.Sandbox {
	return builders.MakeMember(p.Obj(), template).Name(name).Created(clitest.Now.Add(-time.Minute))
}

func namespace(mode string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	if mode != "" {
		n.Labels = map[string]string{settings.EnforcementKey: mode}
	}
	return n
}

func newCluster(t *testing.T, objs ...client.Object) *cli.Cluster {
	t.Helper()
	return clitest.New(t, interceptor.Funcs{}, objs...)
}

// published writes what the controller would onto a pool.
func published(t *testing.T, p *builders.Pool, state, reason string, status platform.RolloutStatus) *builders.Pool {
	t.Helper()
	raw, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	return p.Annotation(settings.RolloutStateKey, state).Annotation(settings.RolloutReasonKey, reason).
		Annotation(settings.RolloutRevisionKey, status.UpdateRevision).Annotation(settings.RolloutStatusKey, string(raw))
}

func judge(t *testing.T, c *cli.Cluster) []cli.Pool {
	t.Helper()
	store, err := c.Load(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.Judge(store).Pools(t.Context(), cli.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
