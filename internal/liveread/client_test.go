package liveread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func TestAbsentOnlyWhenTheAnswerNamesTheObject(t *testing.T) {
	notFound := func(group, kind, name string) error {
		return apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: kind}, name)
	}
	because := func(status *apierrors.StatusError, cause metav1.CauseType) error {
		status.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: cause}}
		return status
	}
	cases := map[string]struct {
		err          error
		wantAbsent   bool
		wantUnserved bool
		wantResult   string
	}{
		"names it":               {notFound(gvr.Group, gvr.Resource, "x"), true, false, "absent"},
		"names it, and says why": {because(apierrors.NewNotFound(gvr.GroupResource(), "x"), metav1.CauseTypeFieldValueNotFound), true, false, "absent"},
		"names another":          {notFound(gvr.Group, gvr.Resource, "y"), false, true, "unserved"},
		"names another resource": {notFound(gvr.Group, "sandboxes", "x"), false, true, "unserved"},
		"names another group":    {notFound("", gvr.Resource, "x"), false, true, "unserved"},
		"names nothing":          {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound}}, false, true, "unserved"},
		"no answer of ours":      {apierrors.NewGenericServerResponse(404, "get", gvr.GroupResource(), "x", "<html>no backend</html>", 0, true), false, true, "unserved"},
		"forbidden":              {apierrors.NewForbidden(gvr.GroupResource(), "x", nil), false, false, "error"},
		"no answer":              {errors.New("connection refused"), false, false, "error"},
		"no answer in time":      {fmt.Errorf("get: %w", context.DeadlineExceeded), false, false, "timeout"},
		"nobody waits any more":  {fmt.Errorf("get: %w", context.Canceled), false, false, "canceled"},
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

// A resourceVersion, even 0, would let the API server answer from its cache
// (k8s.io/apimachinery/pkg/apis/meta/v1, GetOptions).
func TestReadsAskForNoResourceVersion(t *testing.T) {
	var asked, agents []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked, agents = append(asked, req.Method+" "+req.URL.String()), append(agents, req.UserAgent())
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": gvr.GroupVersion().String(), "kind": "SandboxTemplate"})
	}))
	defer server.Close()
	for _, agent := range []string{"", "guard"} {
		getter, err := NewDynamicGetter(&rest.Config{Host: server.URL, UserAgent: agent})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := getter.Get(t.Context(), ref("x")); err != nil {
			t.Fatal(err)
		}
	}
	get := "GET /apis/" + gvr.Group + "/" + gvr.Version + "/namespaces/ns/" + gvr.Resource + "/x"
	if diff := cmp.Diff([]string{get, get}, asked); diff != "" {
		t.Errorf("requests (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"freshbind (live reads)", "guard (live reads)"}, agents); diff != "" {
		t.Errorf("user agents (-want,+got):\n%s", diff)
	}
}

// An answer is decoded as client-go decodes it, but for the managed fields, whatever it is.
func TestAnswersAreDecodedAsClientGoDoes(t *testing.T) {
	var body string
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	cfg := &rest.Config{Host: server.URL}
	ours, err := NewDynamicGetter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"x","group":"extensions.agents.x-k8s.io","kind":"sandboxtemplates"}}`
	for name, tc := range map[string]struct {
		code int
		body string
	}{
		"an object":             {200, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","labels":{"a":"b"},"managedFields":[{"manager":"m","fieldsV1":{"f:a":{}}}]},"spec":{"n":1,"f":1.5}}`},
		"of many characters":    {200, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"\ud83d\ude00"}}`},
		"a list":                {200, `{"kind":"PodList","apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1"}]}`},
		"has items":             {200, `{"kind":"Pod","apiVersion":"v1","items":1}`},
		"a status":              {200, status},
		"not found":             {404, status},
		"no kind":               {200, `{"apiVersion":"v1","metadata":{"name":"x"}}`},
		"an empty kind":         {200, `{"kind":"","apiVersion":"v1"}`},
		"no version":            {200, `{"kind":"Pod","metadata":{"name":"x"}}`},
		"a kind of a number":    {200, `{"kind":1,"apiVersion":"v1"}`},
		"a version of a number": {200, `{"kind":"Pod","apiVersion":1}`},
		"cut off":               {200, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"`},
		"no JSON":               {200, `<html>`},
		"nothing":               {200, ``},
		"an error":              {500, `down`},
	} {
		t.Run(name, func(t *testing.T) {
			code, body = tc.code, tc.body
			got, err := ours.Get(t.Context(), ref("x"))
			want, wantErr := client.Resource(gvr).Namespace("ns").Get(t.Context(), "x", metav1.GetOptions{})
			if wantErr != nil {
				if err == nil || err.Error() != wantErr.Error() || apierrors.ReasonForError(err) != apierrors.ReasonForError(wantErr) {
					t.Fatalf("Get() error = %v, want %v", err, wantErr)
				}
				return
			}
			unstructured.RemoveNestedField(want.Object, "metadata", "managedFields")
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("Get() error = %v (-want,+got):\n%s", err, diff)
			}
		})
	}
}

// What cannot be asked is an error at the start, and not in each read.
func TestConfigurationsThatCannotBeUsed(t *testing.T) {
	cfg := &rest.Config{Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(t.TempDir(), "ca.crt")}}
	for name, start := range map[string]func(*rest.Config) error{
		"reads":         func(cfg *rest.Config) error { _, err := NewDynamicGetter(cfg); return err },
		"reads by UIDs": func(cfg *rest.Config) error { _, err := NewUIDGetter(cfg); return err },
		"discovery":     func(cfg *rest.Config) error { _, err := NewResolver(cfg); return err },
	} {
		if err := start(cfg); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the error is %v, want that the CA is missing", name, err)
		}
	}
}

func TestNoReadQueues(t *testing.T) {
	given := &rest.Config{QPS: 5}
	if qps := unlimited(given).QPS; qps >= 0 || given.QPS != 5 {
		t.Errorf("QPS is %v, and %v where it was 5", qps, given.QPS)
	}
}
