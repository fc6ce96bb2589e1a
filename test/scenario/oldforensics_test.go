package scenario

import (
	"context"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/upstream"
)

// TestForensicsOfBarePods plays releases whose members are Pods. They know nothing of staleness: after an edit, claims get what
// there is until somebody deletes it. What the watch convicts, the API server's log convicts, and nothing else.
func TestForensicsOfBarePods(t *testing.T) {
	for _, release := range upstream.OldReleases() {
		t.Run(release, func(t *testing.T) {
			c, log := startLogged(t, controlplane.Options{ControllerManager: true})
			c.RanOn(t, release)
			if _, err := upstream.Start(t.Context(), c, upstream.Options{Version: release, Log: os.Stderr}); err != nil {
				t.Fatal(err)
			}
			rec, err := Record(t.Context(), c.Config())
			if err != nil {
				t.Fatal(err)
			}
			var all []*oldPlayed
			for _, ns := range []string{"current", "late"} {
				p := playOld(t, c, ns)
				all = append(all, p)
				p.edit()
				if ns == "current" {
					p.deleteMembers()
					p.full("sandbox:v2")
				}
				p.claims("after")
			}
			watched, err := rec.Judge(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range all {
				p.runs(watched)
			}
			logSaysTheSame(t, log, watched)
		})
	}
}

// oldPlayed is a namespace with a pool of Pods.
type oldPlayed struct {
	*played
	pods dynamic.ResourceInterface
}

func playOld(t *testing.T, c *controlplane.Cluster, name string) *oldPlayed {
	t.Helper()
	n, err := CreateNamespace(t.Context(), c.Config(), builders.V1Alpha1, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &oldPlayed{played: &played{t: t, n: n, pool: Pool{Name: "python", Template: "python", Replicas: 3}}}
	p.pods = n.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(name)
	template := builders.MakeTemplate(name, p.pool.Template).APIVersion(n.Version).Image("sandbox:v1").Obj()
	pool := builders.MakePool(name, p.pool.Name).APIVersion(n.Version).Template(p.pool.Template).Replicas(int64(p.pool.Replicas)).
		Annotation(settings.StrategyKey, Recreate).Obj()
	if err := n.Create(t.Context(), template, pool); err != nil {
		t.Fatal(err)
	}
	p.full("sandbox:v1")
	p.claims("before")
	p.full("sandbox:v1")
	return p
}

func (p *oldPlayed) edit() {
	p.t.Helper()
	if _, err := p.n.SetImage(p.t.Context(), p.pool.Template, "sandbox:v2"); err != nil {
		p.t.Fatal(err)
	}
}

// members are the pool's Pods that are to stay, with their image if they run.
func (p *oldPlayed) members(ctx context.Context) (map[string]string, error) {
	list, err := p.pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for i := range list.Items {
		pod := &list.Items[i]
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || owner.Kind != "SandboxWarmPool" || pod.GetDeletionTimestamp() != nil {
			continue
		}
		out[pod.GetName()] = ""
		containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
		if phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase"); phase == "Running" {
			first, _ := containers[0].(map[string]any)
			out[pod.GetName()], _ = first["image"].(string)
		}
	}
	return out, nil
}

// full waits until the pool has as many Pods as it wants, all of one image.
func (p *oldPlayed) full(image string) {
	p.t.Helper()
	err := Poll(p.t.Context(), forensicsWithin, func(ctx context.Context) (bool, error) {
		members, err := p.members(ctx)
		n := 0
		for _, is := range members {
			if is == image {
				n++
			}
		}
		return n == p.pool.Replicas && len(members) == n, err
	})
	if err != nil {
		p.t.Fatalf("pool %s/%s full of %s: %v", p.n.Name, p.pool.Name, image, err)
	}
}

// runs looks into the Pods: those binds are stale whose Pod runs what the template does not say any more.
func (p *oldPlayed) runs(watched *checker.Report) {
	p.t.Helper()
	for _, b := range watched.Binds {
		if b.Namespace != p.n.Name || !strings.HasPrefix(b.Claim.Name, "after") {
			continue
		}
		sandbox, err := p.n.Resource(upstream.Sandboxes).Get(p.t.Context(), b.Sandbox.Name, metav1.GetOptions{})
		if err != nil {
			p.t.Fatal(err)
		}
		pod, err := p.pods.Get(p.t.Context(), sandbox.GetAnnotations()[builders.AnnotationPodName], metav1.GetOptions{})
		if err != nil {
			p.t.Fatal(err)
		}
		containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
		first, _ := containers[0].(map[string]any)
		want := checker.Fresh
		if first["image"] != "sandbox:v2" {
			want = checker.Stale
		}
		if b.Class != want {
			p.t.Errorf("%s/%s runs %v in Pod %s: the watch says %s, want %s", p.n.Name, b.Claim.Name, first["image"], pod.GetName(), b.Class, want)
		}
	}
}

func (p *oldPlayed) deleteMembers() {
	p.t.Helper()
	members, err := p.members(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	for name := range members {
		if err := p.pods.Delete(p.t.Context(), name, metav1.DeleteOptions{}); err != nil {
			p.t.Fatal(err)
		}
	}
}
