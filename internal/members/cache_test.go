package members

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/test/builders"
)

var sandboxKind = schema.GroupVersionKind{Group: builders.GroupCore, Version: builders.V1Beta1, Kind: "Sandbox"}

// api serves lists page by page, and watches that end when the test does. Where
// it does not stream lists, clients have to ask for pages.
type api struct {
	streams bool

	mu    sync.Mutex
	asked []string
	ended chan struct{}
	later chan *unstructured.Unstructured
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	watch, initial := q.Get("watch") != "", q.Get("sendInitialEvents") != ""
	kind := "pods"
	if strings.HasSuffix(r.URL.Path, "/sandboxes") {
		kind = "sandboxes"
	}
	a.mu.Lock()
	if !watch {
		a.asked = append(a.asked, fmt.Sprintf("%s limit=%s continue=%s rv=%s", kind, q.Get("limit"), q.Get("continue"), q.Get("resourceVersion")))
	}
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	all := []*unstructured.Unstructured{member("a", noon), member("b", noon), member("c", noon)}
	if kind == "pods" {
		all = nil
	}
	send := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	switch {
	case initial && !a.streams:
		w.WriteHeader(http.StatusUnprocessableEntity)
		send(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
	case watch:
		if initial {
			for _, u := range all {
				send(map[string]any{"type": "ADDED", "object": u.Object})
			}
			send(map[string]any{"type": "BOOKMARK", "object": map[string]any{
				"apiVersion": map[string]string{"pods": "v1"}[kind], "kind": "Sandbox", "metadata": map[string]any{
					"resourceVersion": "10", "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"},
				},
			}})
		}
		w.(http.Flusher).Flush()
		for kind == "sandboxes" {
			select {
			case u := <-a.later:
				send(map[string]any{"type": "ADDED", "object": u.Object})
				w.(http.Flusher).Flush()
				continue
			case <-a.ended:
			}
			return
		}
		<-a.ended
	default:
		page, next := all, ""
		if len(all) > 0 && q.Get("continue") == "" {
			page, next = all[:2], "more"
		} else if len(all) > 0 {
			page = all[2:]
		}
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("v1")
		list.SetKind("List")
		list.SetResourceVersion("10")
		list.SetContinue(next)
		for _, u := range page {
			list.Items = append(list.Items, *u)
		}
		send(list.UnstructuredContent())
	}
}

var source = Source{Reducer: platform.NewReducer(agentsandbox.Objects{}), Kind: sandboxKind, Resource: "sandboxes", Pods: agentsandbox.PodSandboxLabel}

func startCache(t *testing.T, a *api) *Cache {
	t.Helper()
	a.ended, a.later = make(chan struct{}), make(chan *unstructured.Unstructured)
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(a.ended) })
	c, err := NewCache(&informertest.FakeInformers{}, &rest.Config{Host: server.URL}, source, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.Start(t.Context()) }()
	if err := c.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// Whole objects must not be in memory together, however the API server lists.
func TestAFirstListIsReducedOnTheWay(t *testing.T) {
	a := &api{}
	c := startCache(t, a)
	if diff := cmp.Diff([]string{"a", "b", "c"}, names(c.OfPool(pool.GetUID()))); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
	a.mu.Lock()
	asked := slices.DeleteFunc(slices.Clone(a.asked), func(s string) bool { return strings.HasPrefix(s, "pods") })
	a.mu.Unlock()
	want := []string{"sandboxes limit=250 continue= rv=", "sandboxes limit=250 continue=more rv="}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("lists (-want,+got):\n%s", diff)
	}
	updated := make(chan string, 10)
	c.HandleSandboxes(func(old, now *Member) {
		if old == nil && now.Name == "d" {
			updated <- now.Name
		}
	})
	a.later <- member("d", noon)
	<-updated
	if c.Sandbox(types.NamespacedName{Namespace: "ns", Name: "d"}) == nil {
		t.Error("what a watch tells of is not there")
	}
}

func TestMetadataOfSandboxes(t *testing.T) {
	const byClaim = "claim"
	claim := builders.MakeClaim("ns", "c").Obj()
	store := NewStore(platform.NewReducer(agentsandbox.Objects{}))
	c := &Cache{Store: store, kind: sandboxKind, metadata: newMetadata(store, sandboxKind), synced: make(chan struct{})}
	sandbox := func() *metav1.PartialObjectMetadata {
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(sandboxKind)
		return m
	}
	owners := func(obj client.Object) (out []string) {
		for _, ref := range obj.GetOwnerReferences() {
			out = append(out, string(ref.UID))
		}
		return out
	}
	if err := c.IndexField(t.Context(), sandbox(), byClaim, owners); err != nil {
		t.Fatal(err)
	}
	informer, err := c.GetInformer(t.Context(), sandbox())
	if err != nil {
		t.Fatal(err)
	}
	var notified []string
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { notified = append(notified, "new "+obj.(*metav1.PartialObjectMetadata).Name) },
		DeleteFunc: func(obj any) { notified = append(notified, "gone "+obj.(*metav1.PartialObjectMetadata).Name) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, sandbox()); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("before the start: %v, want an error that does not say that there is none", err)
	}
	c.started.Store(true)
	close(c.synced)
	bound := builders.Bound(member("b", noon), claim, template).Obj()
	put(t, store, member("a", noon), bound)
	list := func(opts ...client.ListOption) []string {
		t.Helper()
		var found [2][]string
		// A cache of controller-runtime takes either kind.
		for i, kind := range []string{"SandboxList", "Sandbox"} {
			var into metav1.PartialObjectMetadataList
			into.SetGroupVersionKind(sandboxKind.GroupVersion().WithKind(kind))
			if err := c.List(t.Context(), &into, opts...); err != nil {
				t.Fatal(err)
			}
			for _, m := range into.Items {
				found[i] = append(found[i], m.Name)
			}
			slices.Sort(found[i])
		}
		if diff := cmp.Diff(found[0], found[1]); diff != "" {
			t.Errorf("by the kind of a list, and of its items (-,+):\n%s", diff)
		}
		return found[0]
	}
	for name, tc := range map[string]struct {
		opts []client.ListOption
		want []string
	}{
		"all":            {nil, []string{"a", "b"}},
		"of a namespace": {[]client.ListOption{client.InNamespace("other")}, nil},
		"by label":       {[]client.ListOption{client.HasLabels{builders.LabelPool}}, []string{"a"}},
		"by field":       {[]client.ListOption{client.InNamespace("ns"), client.MatchingFields{byClaim: string(claim.GetUID())}}, []string{"b"}},
	} {
		if diff := cmp.Diff(tc.want, list(tc.opts...)); diff != "" {
			t.Errorf("%s (-want,+got):\n%s", name, diff)
		}
	}
	got := sandbox()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(bound), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bound.GetOwnerReferences(), got.OwnerReferences); diff != "" || got.UID != bound.GetUID() || !got.CreationTimestamp.Time.Equal(bound.GetCreationTimestamp().Time) {
		t.Errorf("got %v, owners (-want,+got):\n%s", got, diff)
	}
	store.sandboxes.remove(types.NamespacedName{Namespace: "ns", Name: "b"})
	if left := list(client.MatchingFields{byClaim: string(claim.GetUID())}); len(left) > 0 {
		t.Errorf("%v are found by field after they went", left)
	}
	if diff := cmp.Diff([]string{"new a", "new b", "gone b"}, notified); diff != "" {
		t.Errorf("told (-want,+got):\n%s", diff)
	}
}

// What is none of Sandboxes is read where everything else is.
func TestListsOfOtherKinds(t *testing.T) {
	store := NewStore(platform.NewReducer(agentsandbox.Objects{}))
	put(t, store, member("a", noon))
	c := &Cache{Cache: &informertest.FakeInformers{}, Store: store, kind: sandboxKind, metadata: newMetadata(store, sandboxKind), synced: make(chan struct{})}
	c.started.Store(true)
	close(c.synced)
	for _, kind := range []schema.GroupVersionKind{
		{Group: builders.GroupCore, Version: builders.V1Beta1, Kind: "SandboxTemplateList"},
		{Group: builders.GroupCore, Version: builders.V1Alpha1, Kind: "SandboxList"},
		{Version: "v1", Kind: "SandboxList"},
	} {
		var into metav1.PartialObjectMetadataList
		into.SetGroupVersionKind(kind)
		if err := c.List(t.Context(), &into); err != nil || len(into.Items) > 0 {
			t.Errorf("a list of %s has %d Sandboxes, error %v", kind, len(into.Items), err)
		}
	}
}
