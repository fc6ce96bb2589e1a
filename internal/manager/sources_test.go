package manager

import (
	"reflect"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/freshbind/freshbind/internal/settings"
)

// readersOnly is a manager that only reads.
type readersOnly struct {
	manager.Manager
	client client.Client
}

func (m readersOnly) GetConfig() *rest.Config     { return &rest.Config{Host: "http://127.0.0.1:1"} }
func (m readersOnly) GetClient() client.Client    { return m.client }
func (m readersOnly) GetAPIReader() client.Reader { return m.client }
func (readersOnly) GetCache() cache.Cache         { return &informertest.FakeInformers{} }

// What a platform is not given it does not miss before something is judged by it.
func TestSourcesAreWhole(t *testing.T) {
	o := &process{turns: newTurns(2), Options: Options{
		Defaults: settings.Defaults{Mode: settings.Enforce}, Scheduling: Scheduling{SchedulerName: "second"},
	}}
	got, err := o.sources(readersOnly{client: fake.NewClientBuilder().Build()}, &Guarded{Objects: onlyKinds{group: "a"}}, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	for field, value := range reflect.ValueOf(got).Fields() {
		// What caches keep of members is added where they keep any.
		if value.IsZero() && field.Name != "CachedNode" {
			t.Errorf("sources have no %s", field.Name)
		}
	}
	if got.Reader == nil || got.Resolver == nil || !got.RepairOff {
		t.Errorf("sources are %+v", got)
	}
	o.Repair = true
	if got, err = o.sources(readersOnly{client: fake.NewClientBuilder().Build()}, &Guarded{Objects: onlyKinds{group: "a"}}, prometheus.NewRegistry()); err != nil || got.RepairOff {
		t.Errorf("nothing is repaired, %v", err)
	}
}
