package clitest

import (
	"maps"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/freshbind/freshbind/controllers/history"
	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/kruise"
)

var kruiseKinds = kindsOf{
	kruise.Sets:              boxKind("SandboxSet"),
	kruise.Templates:         boxKind("SandboxTemplate"),
	kruise.Claims:            boxKind("SandboxClaim"),
	kruise.Sandboxes:         boxKind("Sandbox"),
	{Resource: "pods"}:       {Version: "v1", Kind: "Pod"},
	{Resource: "nodes"}:      {Version: "v1", Kind: "Node"},
	{Resource: "namespaces"}: {Version: "v1", Kind: "Namespace"},
}

func boxKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: kruise.Group, Version: "v1alpha1", Kind: kind}
}

// NewKruise is New with OpenKruise Agents in place of agent-sandbox. without is a resource
// that the API server does not serve; empty for none.
func NewKruise(t *testing.T, without schema.GroupResource, funcs interceptor.Funcs, objs ...client.Object) *cli.Cluster {
	t.Helper()
	known := maps.Clone(kruiseKinds)
	delete(known, without)
	c := served(known, kruiseKinds.client(t, funcs, objs...))
	c.Objects = kruise.Commands{}
	c.Judging = func(s cli.Sources) cli.Judging {
		p := &kruise.Platform{Stored: platform.Stored{Reader: s.Reader, Resolver: s.Resolver}, ByUID: s.ByUID, History: s.History, Defaults: s.Defaults}
		if s.Namespaces == nil {
			return p
		}
		return kruise.CachedInspector{Platform: p, Cached: s.Namespaces}
	}
	c.History = func(r client.Reader) platform.History { return history.NewReader(r, kruise.Objects{}) }
	return c
}

// Box makes an object of OpenKruise Agents, in namespace prod.
func Box(kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(boxKind(kind))
	u.SetNamespace("prod")
	u.SetName(name)
	u.SetUID(types.UID("uid-" + kind + "-" + name))
	u.SetGeneration(1)
	u.SetCreationTimestamp(metav1.NewTime(Now.Add(-time.Minute)))
	return u
}

// BoxPod is what spec.template of one says.
func BoxPod(image string) map[string]any {
	return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}}}
}

// BoxHash is the template-spec-hash of a SandboxSet or a SandboxTemplate.
func BoxHash(t *testing.T, template *unstructured.Unstructured) string {
	t.Helper()
	b, err := kruise.Objects{}.Render(template)
	if err != nil {
		t.Fatal(err)
	}
	return b.Hash()
}

// BoxRevision is Revision of a SandboxSet or a SandboxTemplate.
func BoxRevision(t *testing.T, template *unstructured.Unstructured, number int64, since time.Time) *appsv1.ControllerRevision {
	t.Helper()
	cr := revision(t, template, BoxHash(t, template), number, since)
	cr.Name = template.GetKind() + "-" + cr.Name
	return cr
}

// BoxMember is a ready Sandbox as a SandboxSet makes it, with a Pod of that image; without one
// for "".
func BoxMember(set *unstructured.Unstructured, name, image string) []client.Object {
	spec := set.DeepCopy().Object["spec"].(map[string]any)
	delete(spec, "replicas")
	m := Box("Sandbox", name, spec)
	m.SetLabels(map[string]string{
		kruise.Group + "/sandbox-claimed": "false", kruise.Group + "/sandbox-pool": set.GetName(), kruise.Group + "/sandbox-template": set.GetName(),
	})
	m.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(set, set.GroupVersionKind())})
	m.Object["status"] = map[string]any{"phase": "Running", "conditions": []any{
		map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": Now.Add(-time.Minute).UTC().Format(time.RFC3339)},
	}}
	if image == "" {
		return []client.Object{m}
	}
	pod := &unstructured.Unstructured{Object: map[string]any{"spec": BoxPod(image)["spec"]}}
	pod.SetGroupVersionKind(kruiseKinds[schema.GroupResource{Resource: "pods"}])
	pod.SetNamespace(m.GetNamespace())
	pod.SetName(name)
	pod.SetUID(types.UID("uid-pod-" + name))
	pod.SetGeneration(1)
	pod.SetLabels(map[string]string{kruise.Group + "/created-by": "sandbox"})
	pod.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: m.GetAPIVersion(), Kind: m.GetKind(), Name: name, UID: m.GetUID(), Controller: ptr.To(true),
	}})
	return []client.Object{m, pod}
}
