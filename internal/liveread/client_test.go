package liveread

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

func TestAbsentOnlyWhenTheAnswerNamesTheObject(t *testing.T) {
	notFound := func(group, kind, name string) error {
		return apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: kind}, name)
	}
	cases := map[string]struct {
		err          error
		wantAbsent   bool
		wantUnserved bool
		wantResult   string
	}{
		"names it":               {notFound(gvr.Group, gvr.Resource, "x"), true, false, "absent"},
		"names another":          {notFound(gvr.Group, gvr.Resource, "y"), false, true, "unserved"},
		"names another resource": {notFound(gvr.Group, "sandboxes", "x"), false, true, "unserved"},
		"names another group":    {notFound("", gvr.Resource, "x"), false, true, "unserved"},
		"names nothing":          {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound}}, false, true, "unserved"},
		"forbidden":              {apierrors.NewForbidden(gvr.GroupResource(), "x", nil), false, false, "error"},
		"no answer":              {errors.New("connection refused"), false, false, "error"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := NewMetrics(prometheus.NewRegistry(), gvr.Resource)
			unserved := false
			r := NewReader(getterFunc(func(context.Context, Ref) (*unstructured.Unstructured, error) { return nil, tc.err }), m,
				OnUnserved(func(got schema.GroupVersionResource) { unserved = got == gvr }))
			_, err := r.Get(t.Context(), ref("x"))
			if err == nil || IsAbsent(err) != tc.wantAbsent || unserved != tc.wantUnserved {
				t.Errorf("Get() error = %v: absent %t, unserved %t, want %t, %t", err, IsAbsent(err), unserved, tc.wantAbsent, tc.wantUnserved)
			}
			if !errors.Is(err, tc.err) {
				t.Errorf("Get() error = %v does not wrap its cause", err)
			}
			if got := testutil.ToFloat64(m.reads.WithLabelValues(gvr.Resource, tc.wantResult)); got != 1 {
				t.Errorf("counted %v as %s, want 1", got, tc.wantResult)
			}
		})
	}
}

// serve answers discovery with versions and anything else with a 404 that
// names nothing, as an API server does for a version that it does not serve.
func serve(t *testing.T, versions *[]string) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
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
	reader := NewReader(getter, nil, OnUnserved(r.Refresh))
	if _, err := reader.Get(t.Context(), ref("x")); err == nil || IsAbsent(err) {
		t.Fatalf("Get() of a version that is not served: %v, want an error that is no absence", err)
	}
	check("v1alpha1")

	if _, err := r.Resource(t.Context(), schema.GroupResource{Group: "nobody.example.com", Resource: "things"}); err == nil {
		t.Error("Resource() of what is not served is no error")
	}
}

// A resourceVersion, even 0, would let the API server answer from its cache
// (k8s.io/apimachinery/pkg/apis/meta/v1, GetOptions).
func TestReadsAskForNoResourceVersion(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked = append(asked, req.Method+" "+req.URL.String())
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": gvr.GroupVersion().String(), "kind": "SandboxTemplate"})
	}))
	defer server.Close()
	getter, err := NewDynamicGetter(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := getter.Get(t.Context(), ref("x")); err != nil {
		t.Fatal(err)
	}
	want := []string{"GET /apis/" + gvr.Group + "/" + gvr.Version + "/namespaces/ns/" + gvr.Resource + "/x"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("requests (-want,+got):\n%s", diff)
	}
}
