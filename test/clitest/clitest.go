// Package clitest stands in for a cluster in tests of commands.
package clitest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/freshbind/freshbind/controllers/history"
	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
)

// Now is the time of the cluster.
var Now = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

type kindsOf map[schema.GroupResource]schema.GroupVersionKind

var kinds = kindsOf{
	agentsandbox.Pools:       extension("SandboxWarmPool"),
	agentsandbox.Templates:   extension("SandboxTemplate"),
	agentsandbox.Claims:      extension("SandboxClaim"),
	agentsandbox.Sandboxes:   {Group: agentsandbox.CoreGroup, Version: "v1beta1", Kind: "Sandbox"},
	agentsandbox.Pods:        {Version: "v1", Kind: "Pod"},
	{Resource: "nodes"}:      {Version: "v1", Kind: "Node"},
	{Resource: "namespaces"}: {Version: "v1", Kind: "Namespace"},
}

func extension(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: agentsandbox.ExtensionsGroup, Version: "v1beta1", Kind: kind}
}

// Resource returns the version that objects of tests have.
func (k kindsOf) Resource(_ context.Context, gr schema.GroupResource) (schema.GroupVersionResource, error) {
	gvk, served := k[gr]
	if !served {
		return schema.GroupVersionResource{}, fmt.Errorf("asking for %s: %w", gr, liveread.ErrNotServed)
	}
	return gr.WithVersion(gvk.Version), nil
}

type getter struct {
	client.Reader
	kinds kindsOf
}

// Get reads through the client.
func (g getter) Get(ctx context.Context, ref liveread.Ref) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(g.kinds[ref.GVR.GroupResource()])
	err := g.Reader.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, obj)
	if apierrors.IsNotFound(err) {
		// The fake guesses plurals.
		return nil, apierrors.NewNotFound(ref.GVR.GroupResource(), ref.Name)
	}
	return obj, err
}

// New returns a cluster with these objects, in which nothing is said by default.
func New(t *testing.T, funcs interceptor.Funcs, objs ...client.Object) *cli.Cluster {
	t.Helper()
	return agentSandbox(t, kinds, funcs, objs...)
}

// NewBoth is New with OpenKruise Agents beside agent-sandbox.
func NewBoth(t *testing.T, funcs interceptor.Funcs, objs ...client.Object) *cli.Cluster {
	t.Helper()
	both := maps.Clone(kinds)
	maps.Copy(both, kruiseKinds)
	return agentSandbox(t, both, funcs, objs...)
}

func agentSandbox(t *testing.T, k kindsOf, funcs interceptor.Funcs, objs ...client.Object) *cli.Cluster {
	t.Helper()
	c := served(k, k.client(t, funcs, objs...))
	c.Objects = agentsandbox.Objects{}
	c.Judging = func(s cli.Sources) cli.Judging {
		p := &agentsandbox.Platform{Reader: s.Reader, Resolver: s.Resolver, History: s.History, Defaults: s.Defaults}
		if s.Namespaces == nil {
			return p
		}
		return agentsandbox.CachedInspector{Platform: p, Cached: s.Namespaces}
	}
	c.History = func(r client.Reader) platform.History { return history.NewReader(r, agentsandbox.Objects{}) }
	return c
}

// served is a cluster that serves these kinds, of no platform yet.
func served(k kindsOf, c client.WithWatch) *cli.Cluster {
	return &cli.Cluster{
		Client: c, Resolver: k, Reader: liveread.NewReader(getter{c, k}, nil),
		Defaults: settings.Defaults{Mode: settings.Audit, Strategy: freshness.OnReplenish},
		Now:      func() time.Time { return Now },
	}
}

// client has these objects, of these kinds and of Kubernetes' own.
func (k kindsOf) client(t *testing.T, funcs interceptor.Funcs, objs ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var members []client.Object
	for gr, gvk := range k {
		if gr.Resource == agentsandbox.Sandboxes.Resource {
			member := &unstructured.Unstructured{}
			member.SetGroupVersionKind(gvk)
			members = append(members, member)
		}
		if gvk.Group != "" {
			scheme.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
			scheme.AddKnownTypeWithName(gvk.GroupVersion().WithKind(gvk.Kind+"List"), &unstructured.UnstructuredList{})
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).WithStatusSubresource(members...).WithInterceptorFuncs(funcs).
		WithIndex(&eventsv1.Event{}, "regarding.name", func(o client.Object) []string { return []string{o.(*eventsv1.Event).Regarding.Name} }).
		WithIndex(&eventsv1.Event{}, "regarding.kind", func(o client.Object) []string { return []string{o.(*eventsv1.Event).Regarding.Kind} }).
		WithIndex(&coordinationv1.Lease{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		Build()
}

// Hash is the template-spec-hash of a template.
func Hash(t *testing.T, template *unstructured.Unstructured) string {
	t.Helper()
	b, err := agentsandbox.RenderMember(template)
	if err != nil {
		t.Fatal(err)
	}
	return b.Hash()
}

// Revision records a template as it is, as that number, since a time.
func Revision(t *testing.T, template *unstructured.Unstructured, number int64, since time.Time) *appsv1.ControllerRevision {
	t.Helper()
	return revision(t, template, Hash(t, template), number, since)
}

func revision(t *testing.T, template *unstructured.Unstructured, hash string, number int64, since time.Time) *appsv1.ControllerRevision {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"spec": template.Object["spec"]})
	if err != nil {
		t.Fatal(err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: template.GetNamespace(), Name: template.GetName() + "-" + hash, CreationTimestamp: metav1.NewTime(since),
			Labels:          map[string]string{settings.TemplateUIDLabel: string(template.GetUID()), settings.StampKey: hash},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(template, template.GroupVersionKind())},
		},
		Data: runtime.RawExtension{Raw: raw}, Revision: number,
	}
}

// Digests is Revision with the values left out.
func Digests(t *testing.T, template *unstructured.Unstructured, number int64, since time.Time) *appsv1.ControllerRevision {
	t.Helper()
	r := Revision(t, template, number, since)
	b, err := agentsandbox.RenderMember(template)
	if err != nil {
		t.Fatal(err)
	}
	r.Data.Raw, err = json.Marshal(map[string]any{"digests": json.RawMessage(b.Redact().JSON())})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
