package manager

import (
	"net/http"
	"reflect"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/freshbind/freshbind/controllers/pools"
	"github.com/freshbind/freshbind/controllers/waiting"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/webhooks"
)

// handlers keeps what is registered, by path.
type handlers struct {
	webhook.Server
	byPath map[string]http.Handler
}

func (h *handlers) Register(path string, handler http.Handler) { h.byPath[path] = handler }

// A guard works without most of its fields, and lets more pass: a second sandbox
// for a claim, or a hint that nobody follows.
func TestEveryGuardHasWhatItNeeds(t *testing.T) {
	server := &handlers{byPath: map[string]http.Handler{}}
	binds := webhooks.NewRecentBinds(nil)
	obs := observer{reofferer: &pools.Reofferer{}, pods: &pools.Pods{}, unheard: &waiting.Unheard{}}
	p := &agentsandbox.Platform{}
	a := &assembly{
		process: &process{turns: newTurns(2)}, served: served{Guarded: &Guarded{Name: "a"}}, Connected: Connected{Guard: p, Deletions: p, PodDeletions: &agentsandbox.PodDeletions{}},
		mgr: serverOnly{server: server}, modes: &webhooks.Modes{}, reg: prometheus.NewRegistry(),
	}
	a.register(obs.hints(), binds)

	hooks := []webhooks.Hook{webhooks.BirthHook}
	for _, hook := range webhooks.Judged() {
		hooks = append(hooks, hook, hook.Opened())
	}
	var retries *webhooks.RetryLimiter
	var refusals *webhooks.RefusalCache
	var existing *webhooks.ExistingNames
	for _, hook := range hooks {
		admission, ok := server.byPath[hook.Path].(*webhooks.Reviews)
		if !ok {
			t.Errorf("nobody answers %s", hook.Path)
			continue
		}
		guard, ok := admission.Handler.(*webhooks.Guard)
		if !ok {
			t.Errorf("%s has no guard", hook.Path)
			continue
		}
		if retries == nil {
			retries, refusals, existing = guard.Retries, guard.KnownRefusals, guard.Existing
		}
		if guard.RecentBinds != binds || guard.Retries != retries || guard.KnownRefusals != refusals || guard.Existing != existing {
			t.Errorf("%s remembers by itself what all guards have to", hook.Path)
		}
		if guard.FailOpen != hook.FailOpen || guard.Timeout != hook.HandlerTimeout() {
			t.Errorf("%s fails open: %t, after %s; want %t, %s", hook.Path, guard.FailOpen, guard.Timeout, hook.FailOpen, hook.HandlerTimeout())
		}
		for field, value := range reflect.ValueOf(guard).Elem().Fields() {
			if value.IsZero() && field.Name != "FailOpen" {
				t.Errorf("%s has no %s", hook.Path, field.Name)
			}
		}
	}
	for _, hook := range []webhooks.Hook{webhooks.StampHook, webhooks.StampBirthHook} {
		stamp := server.byPath[hook.Path].(*webhooks.Reviews).Handler.(*webhooks.Stamp)
		if stamp.Existing != existing {
			t.Errorf("%s knows nothing of what guards let be created", hook.Path)
		}
		if stamp.KnownRefusals != refusals {
			t.Errorf("%s tells no guard what it predicts", hook.Path)
		}
	}
	for _, of := range []struct {
		hook webhooks.Hook
		want webhooks.Deletions
	}{{webhooks.ProtectHook, a.Deletions}, {webhooks.ProtectPodHook, a.PodDeletions}} {
		hook, want := of.hook, of.want
		protect := server.byPath[hook.Path].(*webhooks.Reviews).Handler.(*webhooks.Protect)
		if protect.Deletions != want || protect.Modes != a.modes || protect.Timeout != hook.HandlerTimeout() {
			t.Errorf("%s is protected by %+v", hook.Path, protect)
		}
	}
}

// serverOnly is a manager that has nothing but webhooks.
type serverOnly struct {
	manager.Manager
	server webhook.Server
}

func (m serverOnly) GetWebhookServer() webhook.Server { return m.server }

// What a platform cannot answer is not answered by a handler without it, which
// would fail.
func TestAPlatformThatProtectsNothing(t *testing.T) {
	server := &handlers{byPath: map[string]http.Handler{}}
	a := &assembly{
		process: &process{turns: newTurns(2)}, served: served{Guarded: &Guarded{Name: "a"}}, Connected: Connected{Guard: &agentsandbox.Platform{}},
		mgr: serverOnly{server: server}, modes: &webhooks.Modes{}, reg: prometheus.NewRegistry(),
	}
	a.register(hints{Observer: reporter{}}, webhooks.NewRecentBinds(nil))
	if err := a.registerAdvice(nil); err != nil {
		t.Error(err)
	}
	for _, hook := range []webhooks.Hook{webhooks.ProtectHook, webhooks.ProtectPodHook, webhooks.AdviseHook} {
		if handler := server.byPath[hook.Path]; handler != nil {
			t.Errorf("%s is answered by %T", hook.Path, handler)
		}
	}
}
