package controlplane

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What was answered once is answered again, status, header and all; what is not wanted goes
// to the API server each time.
func TestReplay(t *testing.T) {
	p := &Proxy{}
	p.Replay(func(r *http.Request) bool { return r.Method == http.MethodGet && r.URL.Path != "/live" })
	request := func(method, path string) *http.Request { return httptest.NewRequest(method, "https://proxy"+path, nil) }
	for _, r := range []*http.Request{request("GET", "/a?x=1"), request("GET", "/live"), request("POST", "/a?x=1")} {
		if p.replayed(httptest.NewRecorder(), r) {
			t.Fatalf("%s %s is answered before anybody has answered", r.Method, r.URL)
		}
		response := &http.Response{
			Request: r, StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{"kind":"Status"}`)),
		}
		if err := p.keep(response); err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(response.Body); string(body) != `{"kind":"Status"}` || err != nil {
			t.Errorf("the first answer to %s %s is %q, %v", r.Method, r.URL, body, err)
		}
	}
	for _, tc := range []struct {
		request *http.Request
		want    bool
	}{{request("GET", "/a?x=1"), true}, {request("GET", "/a?x=2"), false}, {request("GET", "/live"), false}, {request("POST", "/a?x=1"), false}} {
		answer := httptest.NewRecorder()
		if got := p.replayed(answer, tc.request); got != tc.want {
			t.Errorf("%s %s is answered: %t, want %t", tc.request.Method, tc.request.URL, got, tc.want)
		}
		if tc.want && (answer.Code != http.StatusNotFound || answer.Body.String() != `{"kind":"Status"}` || answer.Header().Get("Content-Type") != "application/json") {
			t.Errorf("answer %d %q %v", answer.Code, answer.Body, answer.Header())
		}
	}
	p.Replay(nil)
	if p.replayed(httptest.NewRecorder(), request("GET", "/a?x=1")) {
		t.Error("it is answered when nothing is to be")
	}
}
