package liveread

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
)

// serve answers discovery with versions and anything else with a 404 that
// names nothing, as an API server does for a version that it does not serve.
func serve(t *testing.T, versions *[]string) *rest.Config {
	return serveHeld(t, versions, func() {})
}

// serveHeld calls hold before each answer of discovery.
func serveHeld(t *testing.T, versions *[]string, hold func()) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/apis" {
			hold()
		}
		var out any = metav1.Status{Status: "Failure", Code: 404, Reason: metav1.StatusReasonNotFound}
		code := http.StatusNotFound
		group := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: gvr.Group}
		for _, v := range *versions {
			gv := metav1.GroupVersionForDiscovery{GroupVersion: gvr.Group + "/" + v, Version: v}
			group.Versions = append(group.Versions, gv)
			group.PreferredVersion = group.Versions[0]
			if req.URL.Path == "/apis/"+gv.GroupVersion {
				code, out = 200, metav1.APIResourceList{
					TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
					GroupVersion: gv.GroupVersion,
					APIResources: []metav1.APIResource{{Name: gvr.Resource, Kind: "SandboxTemplate", Namespaced: true, Verbs: []string{"get"}}},
				}
			}
		}
		switch req.URL.Path {
		case "/apis":
			code, out = 200, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{group}}
		case "/api":
			code, out = 200, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestResolver(t *testing.T) {
	versions := []string{"v1alpha1", "v1beta1"}
	cfg := serve(t, &versions)
	r, err := NewResolver(cfg, "v1beta1", "v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	c := testingclock.NewFakePassiveClock(time.Unix(0, 0))
	r.clock = c
	check := func(want string) {
		t.Helper()
		got, err := r.Resource(t.Context(), gvr.GroupResource())
		if err != nil || got.Version != want {
			t.Fatalf("Resource() = %v, %v, want version %s", got, err, want)
		}
	}
	check("v1beta1")
	versions = []string{"v1alpha1"}
	check("v1beta1")

	getter, err := NewDynamicGetter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.SetTime(c.Now().Add(refreshEvery))
	reader := NewReader(getter, nil, OnUnserved(r.Refresh))
	if _, err := reader.Get(t.Context(), ref("x")); err == nil || IsAbsent(err) {
		t.Fatalf("Get() of a version that is not served: %v, want an error that is no absence", err)
	}
	eventually(t, func() bool {
		got, err := r.Resource(t.Context(), gvr.GroupResource())
		return err == nil && got.Version == "v1alpha1"
	})

	if _, err := r.Resource(t.Context(), schema.GroupResource{Group: "nobody.example.com", Resource: "things"}); err == nil {
		t.Error("Resource() of what is not served is no error")
	}
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Minute, true, func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatal("it did not come true")
	}
}

// Discovery is held for as long as the test wants. Whoever asks for what is
// known is answered all the same, who asks for something else waits no longer
// than for himself, and all share one discovery.
func TestNobodyWaitsForDiscoveryOfWhatIsKnown(t *testing.T) {
	versions := []string{"v1beta1"}
	var asked atomic.Int32
	var held atomic.Bool
	release := make(chan struct{})
	cfg := serveHeld(t, &versions, func() {
		asked.Add(1)
		if held.Load() {
			<-release
		}
	})
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let)
	r, err := NewResolver(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := testingclock.NewFakePassiveClock(time.Unix(0, 0))
	r.clock = c
	known := gvr.GroupResource()
	if _, err := r.Resource(t.Context(), known); err != nil {
		t.Fatal(err)
	}
	held.Store(true)
	before := asked.Load()
	c.SetTime(c.Now().Add(time.Minute))
	r.Refresh(gvr)
	eventually(t, func() bool { return asked.Load() > before })

	for range 3 {
		c.SetTime(c.Now().Add(time.Minute))
		r.Refresh(gvr)
		if got, err := r.Resource(t.Context(), known); err != nil || got != gvr {
			t.Fatalf("Resource() of what is known = %v, %v while discovery is held", got, err)
		}
	}
	unknown := schema.GroupResource{Group: "nobody.example.com", Resource: "things"}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Resource(canceled, unknown); !errors.Is(err, context.Canceled) {
		t.Errorf("Resource() of what is not known, by one who is gone = %v", err)
	}
	if got := asked.Load() - before; got != 1 {
		t.Errorf("discovery was asked %d times, want once for all", got)
	}
	let()
	if _, err := r.Resource(t.Context(), unknown); err == nil {
		t.Error("Resource() of what is not served is no error")
	}
}

// However often something turns out not to be served, discovery is asked once in a
// while.
func TestDiscoveryIsAskedOnceInAWhile(t *testing.T) {
	versions := []string{"v1beta1"}
	var asked atomic.Int32
	r, err := NewResolver(serveHeld(t, &versions, func() { asked.Add(1) }))
	if err != nil {
		t.Fatal(err)
	}
	c := testingclock.NewFakePassiveClock(time.Unix(0, 0))
	r.clock = c
	unknown := schema.GroupResource{Group: "nobody.example.com", Resource: "things"}
	for _, tc := range []struct {
		after time.Duration
		want  bool
		do    func()
	}{
		{0, true, func() { _, _ = r.Resource(t.Context(), unknown) }},
		{refreshEvery - 1, false, func() { _, _ = r.Resource(t.Context(), unknown) }},
		{0, false, func() { r.Refresh(gvr) }},
		{1, true, func() { r.Refresh(gvr) }},
		{refreshEvery, true, func() { _, _ = r.Resource(t.Context(), unknown) }},
	} {
		before := asked.Load()
		c.SetTime(c.Now().Add(tc.after))
		tc.do()
		// It shares what was begun, and is done after that.
		<-r.asking.DoChan("", func() (any, error) { return nil, nil })
		if got := asked.Load() > before; got != tc.want {
			t.Errorf("after another %s: discovery was asked: %t, want %t", tc.after, got, tc.want)
		}
	}
}

// A discovery that fails takes nothing away from what is known.
func TestWhatIsKnownOutlivesADiscoveryThatFails(t *testing.T) {
	for name, broken := range map[string]func(*Resolver, *[]string){
		"the group is missing": func(_ *Resolver, versions *[]string) { *versions = nil },
		"nobody answers":       func(r *Resolver, _ *[]string) { r.discovery = unreachable(t) },
	} {
		versions := []string{"v1beta1"}
		r, err := NewResolver(serve(t, &versions))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Resource(t.Context(), gvr.GroupResource()); err != nil {
			t.Fatal(err)
		}
		broken(r, &versions)
		_, _ = r.discover()
		if got, err := r.Resource(t.Context(), gvr.GroupResource()); err != nil || got != gvr {
			t.Errorf("%s: Resource() = %v, %v", name, got, err)
		}
	}
}

// unreachable is the discovery of an API server that is not there.
func unreachable(t *testing.T) discovery.DiscoveryInterface {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Only an answer is worth waiting for the next one.
func TestADiscoveryThatFailedIsAskedAgainAtOnce(t *testing.T) {
	r, err := NewResolver(serve(t, &[]string{"v1beta1"}))
	if err != nil {
		t.Fatal(err)
	}
	served := r.discovery
	r.clock, r.discovery = testingclock.NewFakeClock(time.Now()), unreachable(t)
	if _, err := r.Resource(t.Context(), gvr.GroupResource()); err == nil {
		t.Fatal("no error while nobody answers")
	}
	r.discovery = served
	if got, err := r.Resource(t.Context(), gvr.GroupResource()); err != nil || got != gvr {
		t.Errorf("Resource() = %v, %v once there are answers", got, err)
	}
}
