package liveread

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// lists serves pages, by what they continue, and notes what is asked.
func lists(t *testing.T, pages map[string]string, asked *[]string) Getter {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		*asked = append(*asked, req.Method+" "+req.URL.String())
		w.Header().Set("Content-Type", "application/json")
		page, ok := pages[req.URL.Query().Get("continue")]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound,
				Details: &metav1.StatusDetails{Name: "uid-2", Group: gvr.Group, Kind: gvr.Resource},
			})
			return
		}
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(server.Close)
	g, err := NewUIDGetter(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAnObjectIsFoundByItsUID(t *testing.T) {
	const (
		first = `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"7","continue":"more"},` +
			`"items":[{"metadata":{"name":"a","uid":"uid-1","annotations":{"x":"]}"}}}]}`
		second = `{"metadata":{},"items":[{"metadata":{"name":"b","uid":"uid-2"}},{"metadata":{"name":"c","uid":"uid-3"}}]}`
	)
	base := "GET /apis/" + gvr.Group + "/" + gvr.Version + "/namespaces/ns/" + gvr.Resource
	cases := map[string]struct {
		pages      map[string]string
		uid        string
		want       string
		wantAbsent bool
		asked      []string
	}{
		"on the first page":  {map[string]string{"": first}, "uid-1", "a", false, []string{base + "?limit=500"}},
		"on the second":      {map[string]string{"": first, "more": second}, "uid-2", "b", false, []string{base + "?limit=500", base + "?continue=more&limit=500"}},
		"on none":            {map[string]string{"": first, "more": second}, "uid-9", "", true, []string{base + "?limit=500", base + "?continue=more&limit=500"}},
		"of an empty list":   {map[string]string{"": `{"items":[],"metadata":{}}`}, "uid-1", "", true, []string{base + "?limit=500"}},
		"not served":         {nil, "uid-2", "", false, []string{base + "?limit=500"}},
		"a page is lost":     {map[string]string{"": first}, "uid-2", "", false, []string{base + "?limit=500", base + "?continue=more&limit=500"}},
		"a page is cut off":  {map[string]string{"": `{"metadata":{},"items":[{"metadata":{"name":"a"}}`}, "uid-2", "", false, []string{base + "?limit=500"}},
		"no list":            {map[string]string{"": `{"metadata":{}}`}, "uid-2", "", false, []string{base + "?limit=500"}},
		"no object":          {map[string]string{"": `[]`}, "uid-2", "", false, []string{base + "?limit=500"}},
		"of no items":        {map[string]string{"": `{"metadata":{},"items":null}`}, "uid-2", "", true, []string{base + "?limit=500"}},
		"items are not many": {map[string]string{"": `{"items":{}}`}, "uid-2", "", false, []string{base + "?limit=500"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var asked []string
			got, err := NewReader(lists(t, tc.pages, &asked), nil).Get(t.Context(), ref(tc.uid))
			if IsAbsent(err) != tc.wantAbsent || (err == nil) != (tc.want != "") {
				t.Fatalf("Get() error = %v, absent %t, want %q, absent %t", err, IsAbsent(err), tc.want, tc.wantAbsent)
			}
			if err != nil && strings.Contains(err.Error(), "panic") {
				t.Errorf("Get() error = %v", err)
			}
			if err == nil && (got.GetName() != tc.want || got.GetUID() != types.UID(tc.uid)) {
				t.Errorf("Get() = %s %s, want %s", got.GetName(), got.GetUID(), tc.want)
			}
			if diff := cmp.Diff(tc.asked, asked); diff != "" {
				t.Errorf("requests (-want,+got):\n%s", diff)
			}
		})
	}
}

// A list that ends early, wherever it is cut, or that is spoiled anywhere, proves no
// absence: a cut-off list that seems whole would let a claim's UID pass for nobody's.
func TestAListThatIsNotWholeProvesNoAbsence(t *testing.T) {
	const list = `{"kind":"PartialObjectMetadataList","metadata":{"continue":"","x":[1]},` +
		`"items":[{"metadata":{"name":"a","uid":"uid-1"}},{"metadata":{"name":"b","uid":"uid-2"}}],"more":{"y":null}}`
	if found, more, err := scanList(strings.NewReader(list), "uid-9"); err != nil || found != nil || more != "" {
		t.Fatalf("scanList() of the whole list = %v, %q, %v", found, more, err)
	}
	for i := range len(list) {
		if _, _, err := scanList(strings.NewReader(list[:i]), "uid-9"); err == nil {
			t.Errorf("no error for %q", list[:i])
		}
		// What is no JSON, at each place outside of strings.
		if strings.Count(list[:i], `"`)%2 == 0 {
			if _, _, err := scanList(strings.NewReader(list[:i]+"!"+list[i:]), "uid-9"); err == nil {
				t.Errorf("no error for ! at %d", i)
			}
		}
	}
	for _, text := range []string{`{"items":{}}`, `{"items":[1]}`, `{"items":"[]"}`, `{"metadata":[],"items":[]}`, `{"metadata":{"continue":1},"items":[]}`, `["items",[]]`, `{1 "items":[]}`} {
		if _, _, err := scanList(strings.NewReader(text), "uid-9"); err == nil {
			t.Errorf("no error for %s", text)
		}
	}
	reset := errors.New("connection reset")
	if _, _, err := scanList(iotest.ErrReader(reset), "uid-9"); !errors.Is(err, reset) {
		t.Errorf("scanList() of what cannot be read = %v, want %v", err, reset)
	}
}

// Nothing but the 404 of a list could be taken for that of an object.
func TestWhyAListIsNotServed(t *testing.T) {
	notFound, forbidden := apierrors.NewNotFound(gvr.GroupResource(), "uid-2"), apierrors.NewForbidden(gvr.GroupResource(), "", nil)
	if err := unnamed(notFound); apierrors.IsNotFound(err) {
		t.Errorf("unnamed(%v) = %v, which is a 404", notFound, err)
	}
	if err := unnamed(forbidden); !errors.Is(err, forbidden) {
		t.Errorf("unnamed(%v) = %v", forbidden, err)
	}
}
