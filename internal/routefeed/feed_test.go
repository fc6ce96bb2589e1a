package routefeed

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/routes"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/recordertest"
)

const (
	ns = "team-a"
	id = "team-a--one"
)

func platform() Platform {
	return Platform{
		Sandboxes: agentsandbox.Sandboxes, Versions: agentsandbox.Versions, PodSelector: agentsandbox.Objects{}.MemberPods(),
		SandboxOf: agentsandbox.RouteOfSandbox, PodOf: agentsandbox.RouteOfPod,
	}
}

func sandbox(namespace, name string) *unstructured.Unstructured {
	template := builders.MakeTemplate(namespace, "python").Obj()
	return builders.MakeColdStart(builders.MakeClaim(namespace, name).Obj(), template).Obj()
}

func pod(of *unstructured.Unstructured, ip string) *unstructured.Unstructured {
	return builders.MakePod(of).Stored("node").Ready(true).Set(ip, "status", "podIP").Obj()
}

type running struct {
	t     *testing.T
	api   *recordertest.API
	table *routes.Table
	clock *clocktesting.FakeClock
	feed  *Feed
	done  chan error
}

// served is the only version that an API server has.
type served string

func (v served) Resource(_ context.Context, gr schema.GroupResource) (schema.GroupVersionResource, error) {
	return gr.WithVersion(string(v)), nil
}

func start(t *testing.T, api *recordertest.API, namespaces ...string) *running {
	t.Helper()
	return startVersion(t, api, "v1beta1", namespaces...)
}

func startVersion(t *testing.T, api *recordertest.API, version string, namespaces ...string) *running {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	table := routes.New(routes.Options{Clock: clock, Namespaces: namespaces})
	r := &running{t: t, api: api, table: table, clock: clock, done: make(chan error, 1)}
	var err error
	r.feed, err = New(api.Config(), table, platform(), namespaces, NewMetrics(prometheus.NewRegistry(), table))
	if err != nil {
		t.Fatal(err)
	}
	r.feed.clock = clock
	r.feed.resolver = served(version)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { r.done <- r.feed.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-r.done; err != nil {
			t.Error(err)
		}
	})
	return r
}

// until waits for the table to say something; tick moves the clock meanwhile.
func (r *running) until(what string, tick time.Duration, ok func() bool) {
	r.t.Helper()
	err := wait.PollUntilContextTimeout(r.t.Context(), time.Millisecond, 10*time.Minute, true, func(context.Context) (bool, error) {
		if ok() {
			return true, nil
		}
		r.clock.Step(tick)
		return false, nil
	})
	if err != nil {
		r.t.Fatalf("waiting until %s: %v; %+v\n%s", what, err, r.table.Stats(), lastRequests(r.api))
	}
}

func lastRequests(api *recordertest.API) string {
	all := api.Requests()
	return strings.Join(all[max(0, len(all)-20):], "\n")
}

func (r *running) untilServed(id, ip string) {
	r.t.Helper()
	r.until(id+" is served at "+ip, time.Millisecond, func() bool { return r.table.Lookup(id).Address().String() == ip })
}

func (r *running) untilStatus(id string, want routes.Status) {
	r.t.Helper()
	r.until(id+" is "+want.String(), time.Millisecond, func() bool { return r.table.Lookup(id).Status == want })
}

func TestFollowsSandboxesAndPods(t *testing.T) {
	for name, version := range map[string]string{"v1beta1": "v1beta1", "v1alpha1": "v1alpha1"} {
		t.Run(name, func(t *testing.T) {
			api := recordertest.New(t, recordertest.Settings{Version: version, PageSize: 1})
			for _, name := range []string{"one", "two", "three"} {
				s := sandbox(ns, name)
				api.Put(s)
				api.Put(pod(s, "10.0.0."+map[string]string{"one": "1", "two": "2", "three": "3"}[name]))
			}
			r := startVersion(t, api, version)
			r.untilServed(id, "10.0.0.1")
			r.untilServed("team-a--three", "10.0.0.3")
			s := sandbox(ns, "four")
			api.Put(s)
			api.Put(pod(s, "10.0.0.4"))
			r.untilServed("team-a--four", "10.0.0.4")
			api.Remove(s)
			r.untilStatus("team-a--four", routes.Gone)
		})
	}
}

func TestServesNothingBeforeBothListsAreThere(t *testing.T) {
	api := recordertest.New(t, recordertest.Settings{Refuse: "pods"})
	s := sandbox(ns, "one")
	api.Put(s)
	r := start(t, api)
	r.until("sandboxes were listed", time.Millisecond, func() bool { return r.table.Stats().Routes == 1 })
	if a := r.table.Lookup(id); a.Status != routes.NotKnown || a.Reason != routes.ViewIncomplete {
		t.Errorf("the answer is %s %s, want NotKnown ViewIncomplete", a.Status, a.Reason)
	}
}

func TestAgeIsProvenByBookmarksOnly(t *testing.T) {
	api := recordertest.New(t, recordertest.Settings{})
	s := sandbox(ns, "one")
	api.Put(s)
	api.Put(pod(s, "10.0.0.1"))
	r := start(t, api)
	r.untilServed(id, "10.0.0.1")
	// Something happens in the cluster, and no watch says that it was not this.
	rv := api.Put(builders.MakeTemplate(ns, "other").Obj())
	r.until("the view is too old", 50*time.Millisecond, func() bool { return r.table.Lookup(id).Reason == routes.ViewTooOld })
	for range 20 {
		r.clock.Step(time.Second)
		if a := r.table.Lookup(id); a.Status != routes.NotKnown {
			t.Fatalf("the answer is %s without any proof", a.Status)
		}
	}
	bookmark := builders.MakePool("", "").Obj()
	bookmark.SetResourceVersion(rv)
	api.Raw("sandboxes", "BOOKMARK", 103, bookmark.Object)
	for range 20 {
		r.clock.Step(time.Second)
		if r.table.Ready() {
			t.Fatal("ready by the bookmark of one kind alone")
		}
	}
	api.Raw("pods", "BOOKMARK", 103, bookmark.Object)
	r.untilServed(id, "10.0.0.1")
}

func TestListsAgainWhenEventsWereLost(t *testing.T) {
	api := recordertest.New(t, recordertest.Settings{})
	one, two := sandbox(ns, "one"), sandbox(ns, "two")
	for i, s := range []*unstructured.Unstructured{one, two} {
		api.Put(s)
		api.Put(pod(s, []string{"10.0.0.1", "10.0.0.2"}[i]))
	}
	r := start(t, api)
	r.untilServed(id, "10.0.0.1")
	api.LoseEvents(func() {
		api.Remove(one)
		api.Remove(pod(one, ""))
	})
	r.untilStatus(id, routes.Gone)
	r.untilServed("team-a--two", "10.0.0.2")
	if n := testutil.ToFloat64(r.feed.metrics.sessions); n != 1 {
		t.Errorf("%v sessions, want 1: fences outlive a new list", n)
	}
}

func TestBeginsAnewAfterARestore(t *testing.T) {
	api := recordertest.New(t, recordertest.Settings{})
	s := sandbox(ns, "one")
	for range 5 {
		api.Put(s.DeepCopy())
	}
	api.Put(pod(s, "10.0.0.1"))
	r := start(t, api)
	r.untilServed(id, "10.0.0.1")
	api.Restore()
	other := sandbox(ns, "other")
	api.Put(other)
	api.Put(pod(other, "10.0.0.1"))
	r.untilServed("team-a--other", "10.0.0.1")
	if a := r.table.Lookup(id); a.Status != routes.NotFound {
		t.Errorf("what was never stored is %s, want NotFound", a.Status)
	}
	if n := testutil.ToFloat64(r.feed.metrics.sessions); n < 2 {
		t.Errorf("%v sessions, want another one", n)
	}
}

func TestSeveralNamespaces(t *testing.T) {
	api := recordertest.New(t, recordertest.Settings{})
	for i, namespace := range []string{"team-a", "team-b"} {
		s := sandbox(namespace, "one")
		api.Put(s)
		api.Put(pod(s, []string{"10.0.0.1", "10.0.0.2"}[i]))
	}
	r := start(t, api, "team-a", "team-b")
	r.untilServed(id, "10.0.0.1")
	r.untilServed("team-b--one", "10.0.0.2")
	for _, request := range r.api.Requests() {
		if !strings.Contains(request, "/namespaces/team-") && strings.Contains(request, "watch=true") {
			t.Errorf("a watch of all namespaces: %s", request)
		}
	}
}

func TestLateEventIsDecidedByALiveRead(t *testing.T) {
	api := recordertest.New(t, recordertest.Settings{})
	api.Put(sandbox(ns, "one"))
	r := start(t, api)
	r.untilStatus(id, routes.NotRunning)
	late := sandbox(ns, "late")
	late.SetResourceVersion("50")
	api.Raw("sandboxes", "RAW", 50, late.Object)
	r.until("it was read", 10*time.Millisecond, func() bool {
		return testutil.ToFloat64(r.feed.metrics.reads.WithLabelValues("sandboxes", resultDecided))+
			testutil.ToFloat64(r.feed.metrics.reads.WithLabelValues("sandboxes", resultFailed)) > 0
	})
	if a := r.table.Lookup("team-a--late"); a.Status == routes.Serving || a.Status == routes.NotRunning {
		t.Errorf("an event from before the list made it %s", a.Status)
	}
}
