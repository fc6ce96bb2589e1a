package scenario

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fakekruise"
)

// boxesPerSet is how many members a SandboxSet has.
const boxesPerSet = 4

// TestKruiseForensics plays OpenKruise Agents, by their double, in a cluster without Freshbind. Claims and users of E2B get
// what there is, warm and cold. What the watch convicts, the API server's log convicts; what happens without lag raises no
// alarm.
func TestKruiseForensics(t *testing.T) {
	c, log := startLogged(t, controlplane.Options{})
	c.RanOn(t, "")
	p := &kruisePlayed{t: t, c: c}
	p.build()
	rec, err := Record(t.Context(), c.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range []string{"current", "late"} {
		p.namespace(ns)
		p.set(ns, "pool", boxesPerSet)
		p.set(ns, "empty", 0)
		p.full(ns, "box:1")
		p.serve(ns, "before")
		p.full(ns, "box:1")
	}
	p.edit("current", "box:2")
	p.full("current", "box:2")
	p.serve("current", "after")

	p.hold()
	p.edit("late", "box:2")
	// What is written after the edit was surely bound after it.
	p.touch("late")
	p.serve("late", "after")
	p.release()
	p.full("late", "box:2")

	watched, err := rec.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.worthLooking(watched)
	logSaysTheSame(t, log, watched)
}

// kruisePlayed is a cluster in which the double of OpenKruise Agents works.
type kruisePlayed struct {
	t       *testing.T
	c       *controlplane.Cluster
	client  dynamic.Interface
	kube    kubernetes.Interface
	server  *fakekruise.Server
	proxies []*controlplane.Proxy
}

func (p *kruisePlayed) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *kruisePlayed) build() {
	p.t.Helper()
	var err error
	p.client, err = dynamic.NewForConfig(p.c.Config())
	p.must(err)
	p.kube, err = kubernetes.NewForConfig(p.c.Config())
	p.must(err)
	p.must(p.c.InstallCRDs(p.t.Context(), fakekruise.CRDs()...))
	as := func(user string) *rest.Config {
		cfg, err := p.c.User(user, "system:masters", "system:authenticated")
		p.must(err)
		proxy, err := p.c.NewProxy(0)
		p.must(err)
		p.proxies = append(p.proxies, proxy)
		return proxy.Config(cfg)
	}
	p.t.Cleanup(p.release)
	p.must(fakekruise.StartControllers(p.t.Context(), as(fakekruise.ControllerUser), fakekruise.Options{}))
	p.server, err = fakekruise.StartServer(p.t.Context(), as(fakekruise.ServerUser), fakekruise.Options{})
	p.must(err)
}

// hold keeps everybody from learning of edits of SandboxSets.
func (p *kruisePlayed) hold() {
	for _, proxy := range p.proxies {
		proxy.Hold(fakekruise.Group, fakekruise.Sets.Resource)
	}
}

func (p *kruisePlayed) release() {
	for _, proxy := range p.proxies {
		proxy.Release(fakekruise.Group, fakekruise.Sets.Resource)
	}
}

func (p *kruisePlayed) namespace(name string) {
	p.t.Helper()
	_, err := p.kube.CoreV1().Namespaces().Create(p.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	p.must(err)
}

func (p *kruisePlayed) object(kind, ns, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": fakekruise.Sets.GroupVersion().String(), "kind": kind, "spec": spec}}
	u.SetNamespace(ns)
	u.SetName(name)
	return u
}

func (p *kruisePlayed) set(ns, name string, replicas int64) {
	p.t.Helper()
	spec := map[string]any{"replicas": replicas, "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "box:1"}}}}}
	_, err := p.client.Resource(fakekruise.Sets).Namespace(ns).Create(p.t.Context(), p.object("SandboxSet", ns, name, spec), metav1.CreateOptions{})
	p.must(err)
}

// edit has both SandboxSets make something else: whoever knows it of pool knows it of the other.
func (p *kruisePlayed) edit(ns, image string) {
	p.t.Helper()
	for _, name := range []string{"empty", "pool"} {
		patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":%q}]}}}}`, image)
		_, err := p.client.Resource(fakekruise.Sets).Namespace(ns).Patch(p.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		p.must(err)
	}
}

// idle are the members of an image that can be taken.
func (p *kruisePlayed) idle(ctx context.Context, ns, image string) ([]string, error) {
	boxes, err := p.client.Resource(fakekruise.Sandboxes).Namespace(ns).List(ctx, metav1.ListOptions{LabelSelector: fakekruise.Group + "/sandbox-claimed=false"})
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range boxes.Items {
		box := &boxes.Items[i]
		containers, _, _ := unstructured.NestedSlice(box.Object, "spec", "template", "spec", "containers")
		ip, _, _ := unstructured.NestedString(box.Object, "status", "podInfo", "podIP")
		if first, _ := containers[0].(map[string]any); ip != "" && first["image"] == image {
			out = append(out, box.GetName())
		}
	}
	return out, nil
}

// full waits until the SandboxSet has all its members, of one image.
func (p *kruisePlayed) full(ns, image string) {
	p.t.Helper()
	p.must(Poll(p.t.Context(), forensicsWithin, func(ctx context.Context) (bool, error) {
		idle, err := p.idle(ctx, ns, image)
		return len(idle) == boxesPerSet, err
	}))
}

// touch writes to every member.
func (p *kruisePlayed) touch(ns string) {
	p.t.Helper()
	idle, err := p.idle(p.t.Context(), ns, "box:1")
	p.must(err)
	for _, name := range idle {
		patch := []byte(`{"metadata":{"annotations":{"example.com/touched":"yes"}}}`)
		_, err := p.client.Resource(fakekruise.Sandboxes).Namespace(ns).Patch(p.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		p.must(err)
	}
}

// serve gives one member to a user of E2B, another to a SandboxClaim, and makes a third for a SandboxClaim that finds none.
func (p *kruisePlayed) serve(ns, prefix string) {
	p.t.Helper()
	// The server's cache may show a member that is gone, and then its user is refused.
	p.must(Poll(p.t.Context(), forensicsWithin, func(ctx context.Context) (bool, error) {
		_, err := p.server.Create(ctx, fakekruise.Request{Namespace: ns, Set: "pool", User: prefix + "-user", OnlyStock: true})
		return err == nil, nil
	}))
	claims := p.client.Resource(fakekruise.Claims).Namespace(ns)
	for _, of := range []string{"pool", "empty"} {
		name := prefix + "-claim-of-" + of
		_, err := claims.Create(p.t.Context(), p.object("SandboxClaim", ns, name, map[string]any{"templateName": of, "replicas": int64(1)}), metav1.CreateOptions{})
		p.must(err)
		p.must(Poll(p.t.Context(), forensicsWithin, func(ctx context.Context) (bool, error) {
			claim, err := claims.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			has, _, _ := unstructured.NestedInt64(claim.Object, "status", "claimedReplicas")
			return has == 1, nil
		}))
	}
}

// worthLooking: without lag all were fresh, and with lag somebody of each kind got what was stale, by the watch.
func (p *kruisePlayed) worthLooking(watched *checker.Report) {
	p.t.Helper()
	got := map[string]checker.Class{}
	for _, b := range watched.Binds {
		got[fmt.Sprintf("%s %s warm=%t", b.Namespace, b.Claim.Name, b.Warm)] = b.Class
	}
	for _, ns := range []string{"current", "late"} {
		for _, prefix := range []string{"before", "after"} {
			want := checker.Fresh
			if ns == "late" && prefix == "after" {
				want = checker.Stale
			}
			for _, who := range []string{"-user warm=true", "-claim-of-pool warm=true", "-claim-of-empty warm=false"} {
				key := ns + " " + prefix + who
				if got[key] != want {
					p.t.Errorf("%s: the watch says %q, want %s", key, got[key], want)
				}
				delete(got, key)
			}
		}
	}
	if rest := slices.Sorted(maps.Keys(got)); len(rest) > 0 {
		p.t.Errorf("binds that nobody asked for: %q", rest)
	}
}
