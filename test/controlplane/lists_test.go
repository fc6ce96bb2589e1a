package controlplane

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

func TestListed(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	cases := map[string]struct {
		method, path string
		want         schema.GroupResource
		no           bool
	}{
		"all namespaces": {path: "/api/v1/pods?limit=500", want: pods},
		"one namespace":  {path: "/api/v1/namespaces/a/pods?resourceVersion=0", want: pods},
		"namespaces":     {path: "/api/v1/namespaces", want: schema.GroupResource{Resource: "namespaces"}},
		"of a group":     {path: "/apis/apps/v1/deployments", want: schema.GroupResource{Group: "apps", Resource: "deployments"}},
		"one object":     {path: "/api/v1/namespaces/a/pods/p", no: true},
		"a watch":        {path: "/api/v1/pods?watch=true", no: true},
		"a create":       {method: http.MethodPost, path: "/api/v1/namespaces/a/pods", no: true},
		"no resource":    {path: "/apis/apps/v1", no: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), tc.method, "https://server"+tc.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := listed(r); ok == tc.no || got != tc.want {
				t.Errorf("got %v, is a list: %t", got, ok)
			}
		})
	}
}

func (tp *tap) lists(l Lists) { tp.pace.change(configMaps, func(r *rule) { r.lists = l }) }

func TestPaceHoldsInitialObjects(t *testing.T) {
	tp := newTap(t, true)
	tp.lists(ListsHeld)
	tp.write("a\n", bookmark, "b\n")
	tp.read()
	tp.hold(true)
	tp.wantNothing()
	tp.lists(ListsWhole)
	tp.want("a\n", bookmark)
	tp.wantNothing()
	tp.hold(false)
	tp.want("b\n")
}

func TestPaceCutsInitialObjects(t *testing.T) {
	for name, tc := range map[string]struct{ frames, want []string }{
		"after the first object":     {frames: []string{"a\n", "b\n", bookmark}, want: []string{"a\n"}},
		"before the only bookmark":   {frames: []string{bookmark}},
		"after the only object":      {frames: []string{"a\n", bookmark}, want: []string{"a\n"}},
		"not what has no list in it": {frames: nil},
	} {
		t.Run(name, func(t *testing.T) {
			tp := newTap(t, true)
			tp.lists(ListsHeld)
			tp.write(tc.frames...)
			if tc.frames == nil {
				if err := tp.source.Close(); err != nil {
					t.Fatal(err)
				}
			}
			tp.lists(ListsCut)
			tp.read()
			tp.want(tc.want...)
			want := io.ErrUnexpectedEOF
			if tc.frames == nil {
				want = io.EOF
			}
			if err := <-tp.end; !errors.Is(err, want) {
				t.Errorf("ended with %v, want %v", err, want)
			}
			tp.wantNothing()
		})
	}
}

func TestListBody(t *testing.T) {
	long := strings.Repeat("x", 4*cutAfter)
	cases := map[string]struct {
		lists Lists
		want  string
		err   error
	}{
		"whole":         {want: long},
		"cut":           {lists: ListsCut, want: long[:cutAfter], err: io.ErrUnexpectedEOF},
		"refused later": {lists: ListsRefused, want: long[:cutAfter], err: io.ErrUnexpectedEOF},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tp := newTap(t, true)
			tp.lists(ListsHeld)
			body := newListBody(&http.Response{Body: io.NopCloser(strings.NewReader(long))}, tp.pace, configMaps)
			type answer struct {
				text []byte
				err  error
			}
			got := make(chan answer, 1)
			go func() {
				text, err := io.ReadAll(body)
				got <- answer{text, err}
			}()
			select {
			case a := <-got:
				t.Fatalf("a held list arrived: %q", a.text)
			default:
			}
			tp.lists(tc.lists)
			a := <-got
			if string(a.text) != tc.want || !errors.Is(a.err, tc.err) {
				t.Errorf("got %q and error %v, want %q and %v", a.text, a.err, tc.want, tc.err)
			}
		})
	}
}

func TestListBodyCloses(t *testing.T) {
	tp := newTap(t, true)
	tp.lists(ListsHeld)
	body := newListBody(&http.Response{Body: io.NopCloser(strings.NewReader("x"))}, tp.pace, configMaps)
	end := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(body)
		end <- err
	}()
	for range 2 {
		if err := body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-end; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("ended with %v, want a closed pipe", err)
	}
}

// watchList is a watch that begins with all config maps.
func watchList() metav1.ListOptions {
	return metav1.ListOptions{
		SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
}

func testProxyLists(t *testing.T, c *Cluster) {
	w := newLateWorld(t, c, "application/json")
	createConfigMap(t, w.direct, "listed-1")
	createConfigMap(t, w.direct, "listed-2")
	maps := w.late.CoreV1().ConfigMaps("default")

	w.proxy.SetLists("", "configmaps", ListsCut)
	if list, err := maps.List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Errorf("a list that was cut has %d config maps", len(list.Items))
	}
	cut := w.openWatch(watchList())
	if first := next(t, cut); first.Type != watch.Added {
		t.Errorf("a watch that is cut begins with %s, want an object", first.Type)
	}
	// client-go tells of an end that is no end of a frame by closing.
	for e := range cut.ResultChan() {
		if e.Type == watch.Added || e.Type == watch.Bookmark {
			t.Errorf("a watch that is cut goes on with %s", e.Type)
		}
	}

	w.proxy.SetLists("", "configmaps", ListsRefused)
	if _, err := maps.List(t.Context(), metav1.ListOptions{}); !apierrors.IsInternalError(err) {
		t.Errorf("a refused list: %v, want an internal error", err)
	}
	if _, err := maps.Watch(t.Context(), watchList()); !apierrors.IsInternalError(err) {
		t.Errorf("a refused watch with initial events: %v, want an internal error", err)
	}
	if _, err := maps.Get(t.Context(), "listed-1", metav1.GetOptions{}); err != nil {
		t.Errorf("a GET: %v", err)
	}
	plain := w.openWatch(w.now())
	createConfigMap(t, w.direct, "watched")
	arrive(t, plain, "watched")

	w.proxy.SetLists("", "configmaps", ListsHeld)
	held := make(chan *corev1.ConfigMapList, 1)
	go func() {
		if list, err := maps.List(t.Context(), metav1.ListOptions{}); err == nil {
			held <- list
		}
		close(held)
	}()
	if _, err := w.late.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a list of another resource: %v", err)
	}
	initial := w.openWatch(watchList())
	nothing(t, initial)
	w.proxy.SetLists("", "configmaps", ListsWhole)
	if next(t, initial).Type != watch.Added {
		t.Error("the watch does not begin with an object")
	}
	list := <-held
	has := func(cm corev1.ConfigMap) bool { return cm.Name == "listed-2" }
	if list == nil || !slices.ContainsFunc(list.Items, has) {
		t.Errorf("the list that was held is %v", list)
	}
}

func (w *lateWorld) openWatch(options metav1.ListOptions) watch.Interface {
	w.t.Helper()
	opened, err := w.late.CoreV1().ConfigMaps("default").Watch(w.t.Context(), options)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(opened.Stop)
	return opened
}

func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch ended")
		}
		return event
	case <-time.After(timeout):
		t.Fatal("waited too long for an event")
	}
	return watch.Event{}
}

// Lists can be refused to some and not to others.
func testProxyListsOfSome(t *testing.T, c *Cluster) {
	w := newLateWorld(t, c, "application/json")
	w.proxy.SetLists("", "configmaps", ListsRefused, func(r *http.Request) bool { return r.URL.Query().Has("labelSelector") })
	for selector, refused := range map[string]bool{"": false, "some=thing": true} {
		_, err := w.late.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		if apierrors.IsInternalError(err) != refused {
			t.Errorf("list of %q: %v, want it refused: %t", selector, err, refused)
		}
	}
}

func testProxyHoldsRequests(t *testing.T, c *Cluster) {
	w := newLateWorld(t, c, "application/json")
	w.proxy.HoldRequests(func(r *http.Request) bool { return r.Method == http.MethodPost })
	gone, leave := context.WithCancel(t.Context())
	results := make(chan error, 2)
	create := func(ctx context.Context, name string) {
		_, err := w.late.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		results <- err
	}
	go create(gone, "given-up")
	leave()
	if err := <-results; err == nil {
		t.Error("a create that its client gave up has an answer")
	}
	go create(t.Context(), "in-the-end")
	if _, err := w.late.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a request that is not held: %v", err)
	}
	select {
	case err := <-results:
		t.Fatalf("a held create was answered: %v", err)
	default:
	}
	w.proxy.HoldRequests(nil)
	if err := <-results; err != nil {
		t.Error(err)
	}
	_, err := w.direct.CoreV1().ConfigMaps("default").Get(t.Context(), "given-up", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("what its client gave up: %v, want not found", err)
	}
}
