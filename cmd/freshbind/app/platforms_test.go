package app

import (
	"context"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/freshbind/freshbind/controllers/history"
	"github.com/freshbind/freshbind/internal/fair"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/manager"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/settings"
)

// A platform works without most of what it is handed, and judges less: nothing is
// repaired, or every tenant may take all of the CPU.
func TestThePlatformGetsEverySource(t *testing.T) {
	reader := liveread.NewReader(nil, nil)
	c := fake.NewClientBuilder().Build()
	sources := manager.Sources{
		Stored: platform.Stored{Reader: reader, Resolver: noResolver{}}, ByUID: reader, History: history.NewReader(c, builtIn), API: c, Cache: c,
		CachedNamespaces: platform.CachedNamespaceLabels(c), Defaults: settings.Defaults{Mode: settings.Enforce}, SchedulerName: "second",
		RepairOff: true, Turns: fair.NewTurns(2, 1), CachedNode: func(string, string) string { return "" },
	}
	whole(t, sources)
	for _, g := range guarded(false) {
		whole(t, g)
		connected := g.Connect(sources)
		whole(t, connected)
		whole(t, connected.Keep)
		p, ok := connected.Guard.(*agentsandbox.Platform)
		if !ok {
			t.Fatalf("the guard is %T", connected.Guard)
		}
		whole(t, p)
		if connected.Keep.Platform != manager.KeptPlatform(p) || connected.Deletions != any(p) {
			t.Error("there are two of it, which remember different things")
		}
		adviser, ok := connected.Adviser(func(context.Context, string) ([]*unstructured.Unstructured, error) { return nil, nil }).(*agentsandbox.Adviser)
		if !ok {
			t.Fatal("nobody advises")
		}
		whole(t, adviser)
		whole(t, adviser.Lister)
	}
}

// So it does of OpenKruise Agents.
func TestTheGuardOfOpenKruiseAgentsGetsEverySource(t *testing.T) {
	reader := liveread.NewReader(nil, nil)
	all := guarded(true)
	connected := all[len(all)-1].Connect(manager.Sources{
		Stored: platform.Stored{Reader: reader, Resolver: noResolver{}}, ByUID: reader, Defaults: settings.Defaults{Mode: settings.Enforce}, Turns: fair.NewTurns(2, 1),
		History: history.NewReader(fake.NewClientBuilder().Build(), kruise.Objects{}), RepairOff: true,
	})
	p, ok := connected.Guard.(*kruise.Platform)
	if !ok {
		t.Fatalf("the guard is %T", connected.Guard)
	}
	whole(t, p)
	if connected.Deletions != any(p) {
		t.Errorf("what somebody has is protected by %v", connected.Deletions)
	}
	if p.Stored != (platform.Stored{Reader: reader, Resolver: noResolver{}}) {
		t.Errorf("it reads %v", p.Stored)
	}
}

// whole reports exported fields that are not set. What is said where nothing is, as of
// Objects, is no field to be set.
func whole(t *testing.T, of any) {
	t.Helper()
	for field, value := range reflect.Indirect(reflect.ValueOf(of)).Fields() {
		if field.IsExported() && field.Type.Size() > 0 && value.IsZero() {
			t.Errorf("%T has no %s", of, field.Name)
		}
	}
}

type noResolver struct{}

func (noResolver) Resource(context.Context, schema.GroupResource) (schema.GroupVersionResource, error) {
	return schema.GroupVersionResource{}, nil
}
