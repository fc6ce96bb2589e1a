package scheduler

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

func ask(e *Extender, method, path string, body io.Reader) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	e.Handlers()[path].ServeHTTP(w, httptest.NewRequest(method, path, body))
	return w
}

func TestRequests(t *testing.T) {
	e := newExtender(members{dispositions: known})
	cases := map[string]struct {
		method, path, body string
		want               int
		says               string
	}{
		"filter":           {http.MethodPost, FilterPath, `{"Pod":{"metadata":{"name":"stale"}},"NodeNames":["a1"]}`, http.StatusOK, `"NodeNames":[]`},
		"filter, no nodes": {http.MethodPost, FilterPath, `{}`, http.StatusOK, `"NodeNames":null`},
		"preempt":          {http.MethodPost, PreemptPath, `{"Pod":{"metadata":{"name":"stale"}},"NodeNameToMetaVictims":{"a1":{"Pods":[]}}}`, http.StatusOK, `"NodeNameToMetaVictims":{}`},
		"prioritize":       {http.MethodPost, PrioritizePath, `{"NodeNames":["a1"]}`, http.StatusOK, `[{"Host":"a1","Score":0}]`},
		"null":             {http.MethodPost, FilterPath, `null`, http.StatusOK, ``},
		"another method":   {http.MethodGet, FilterPath, ``, http.StatusMethodNotAllowed, "use POST"},
		"no body":          {http.MethodPost, FilterPath, ``, http.StatusBadRequest, "body"},
		"another type":     {http.MethodPost, FilterPath, `{"NodeNames":"a1"}`, http.StatusBadRequest, "NodeNames"},
		"half a body":      {http.MethodPost, FilterPath, `{"NodeNames":[`, http.StatusBadRequest, "body"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := ask(e, tc.method, tc.path, strings.NewReader(tc.body))
			if w.Code != tc.want || !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("answer %d %s, want %d and %q", w.Code, w.Body, tc.want, tc.says)
			}
		})
	}
}

// endless is a body that never ends.
type endless struct{ begun bool }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	if !e.begun {
		e.begun = true
		p[0] = '['
	}
	return len(p), nil
}

func TestBodiesAreBounded(t *testing.T) {
	w := ask(newExtender(members{}), http.MethodPost, FilterPath, &endless{})
	if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "nodeCacheCapable") {
		t.Errorf("answer %d %s, want %d and what to do", w.Code, w.Body, http.StatusRequestEntityTooLarge)
	}
}

// Whatever comes is answered as encoding/json alone would have it answered, nothing panics, what is JSON is never answered 5xx, and a list
// of nodes goes out in every form that it came in.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"Pod":null,"NodeNames":null}`,
		`{"Pod":{"metadata":{"name":"stale"}},"NodeNames":["a1","a1",""]}`,
		`{"Pod":{"metadata":{"name":"fresh","uid":"u"},"spec":{"containers":[{"image":""}]}},"Nodes":{"items":[{"metadata":{"name":"leaving"}}]},"NodeNames":["b1"]}`,
		`{"Pod":{"metadata":{"name":"fresh"}},"NodeNameToVictims":{"a1":null,"b1":{"Pods":[null]}},"NodeNameToMetaVictims":{"leaving":null,"":{"Pods":[null]}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		e := newExtender(members{dispositions: known})
		for _, path := range []string{FilterPath, PreemptPath, PrioritizePath} {
			w := ask(e, http.MethodPost, path, bytes.NewReader(body))
			if json.Valid(body) && w.Code >= http.StatusInternalServerError {
				t.Errorf("%s answers %d %s", path, w.Code, w.Body)
			}
			if path == FilterPath && w.Code == http.StatusOK {
				checkForms(t, body, w.Body.Bytes())
			}
			checkAnswer(t, newExtender(members{dispositions: known}), newExtender(members{dispositions: known}), path, body)
		}
	})
}

func checkForms(t *testing.T, request, answer []byte) {
	t.Helper()
	var args extenderv1.ExtenderArgs
	var result extenderv1.ExtenderFilterResult
	if err := json.NewDecoder(bytes.NewReader(request)).Decode(&args); err != nil {
		t.Fatalf("a request that was answered: %v", err)
	}
	if err := json.Unmarshal(answer, &result); err != nil {
		t.Fatalf("the answer: %v", err)
	}
	if (args.NodeNames == nil) != (result.NodeNames == nil) || (args.Nodes == nil) != (result.Nodes == nil) {
		t.Errorf("request %s is answered in other forms: %s", request, answer)
	}
	if args.NodeNames != nil && len(*result.NodeNames) < len(*args.NodeNames) && len(result.FailedAndUnresolvableNodes) == 0 {
		t.Errorf("request %s: nodes are left out without a reason: %s", request, answer)
	}
}
