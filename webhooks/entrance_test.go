package webhooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freshbind/freshbind/internal/fair"
)

// review is an AdmissionReview as the API server writes it, of at least so many
// bytes.
func review(t *testing.T, namespace string, size int) []byte {
	t.Helper()
	object, err := json.Marshal(map[string]any{"request": map[string]any{"namespace": "not-this-one"}, "padding": strings.Repeat("x", size)})
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "u", Kind: metav1.GroupVersionKind{Kind: "Sandbox"}, Name: "s", Namespace: namespace, Operation: admissionv1.Update,
			Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: object},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestNamespaceOfAReview(t *testing.T) {
	cases := map[string]struct {
		head []byte
		want string
	}{
		"a review":                     {review(t, "ns", 10), "ns"},
		"its beginning":                {review(t, "ns", 100_000)[:headBytes], "ns"},
		"of nothing namespaced":        {review(t, "", 10), ""},
		"cut too early":                {review(t, "ns", 10)[:60], ""},
		"no review":                    {[]byte(`{"namespace":"ns"}`), ""},
		"another type":                 {[]byte(`{"request":{"namespace":5}}`), ""},
		"not an object":                {[]byte(`[]`), ""},
		"nothing":                      {nil, ""},
		"inside of something else":     {[]byte(`{"other":{"request":{"namespace":"x"}},"request":{"kind":{"namespace":"y"},"namespace":"ns"}}`), "ns"},
		"a list that looks like one":   {[]byte(`["request",{"namespace":"ns"}]`), ""},
		"a key that is no string":      {[]byte(`{1 "request":{"namespace":"ns"}}`), ""},
		"the request is not an object": {[]byte(`{"request":"namespace"}`), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := namespaceOf(tc.head); got != tc.want {
				t.Errorf("namespaceOf() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOnlyTheAPIServerIsAnswered(t *testing.T) {
	verified := func(name string) *tls.ConnectionState {
		return &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: name}}}}}
	}
	unverified := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Subject: pkix.Name{CommonName: "front-proxy-client"}}}}
	cases := map[string]struct {
		require bool
		names   []string
		tls     *tls.ConnectionState
		want    int
	}{
		"nobody asks for a certificate": {false, nil, nil, 200},
		"no TLS":                        {true, nil, nil, 403},
		"no certificate":                {true, nil, &tls.ConnectionState{}, 403},
		"one that nobody verified":      {true, nil, unverified, 403},
		"one of the CA":                 {true, nil, verified("anybody"), 200},
		"one of the CA, another name":   {true, []string{"front-proxy-client"}, verified("anybody"), 403},
		"one of the CA, of that name":   {true, []string{"x", "front-proxy-client"}, verified("front-proxy-client"), 200},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := NewEntrance(prometheus.NewRegistry(), nil)
			e.RequireCertificate, e.Names = tc.require, tc.names
			asked := false
			r := httptest.NewRequest(http.MethodPost, "/bind", bytes.NewReader(review(t, "ns", 10)))
			r.TLS = tc.tls
			w := httptest.NewRecorder()
			e.Before(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true })).ServeHTTP(w, r)
			if w.Code != tc.want || asked != (tc.want == 200) {
				t.Errorf("answered %d, asked %t, want %d", w.Code, asked, tc.want)
			}
			if got := testutil.ToFloat64(e.turnedAway.WithLabelValues(turnedAwayClient)); (got == 1) != (tc.want == 403) {
				t.Errorf("counted %v", got)
			}
		})
	}
}

func TestRequestsAreBounded(t *testing.T) {
	cases := map[string]struct {
		size    int
		chunked bool
		want    int
	}{
		"small":                    {100, false, 200},
		"large":                    {1 << 20, false, 200},
		"large, of unknown length": {1 << 20, true, 200},
		"too large":                {4 << 20, false, 413},
		"too large, not announced": {4 << 20, true, 413},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := NewEntrance(prometheus.NewRegistry(), fair.NewTurns(1, 1))
			body := review(t, "ns", tc.size)
			r := httptest.NewRequest(http.MethodPost, "/bind", bytes.NewReader(body))
			if tc.chunked {
				r.ContentLength = -1
			}
			var got []byte
			w := httptest.NewRecorder()
			e.Before(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, _ = io.ReadAll(r.Body) })).ServeHTTP(w, r)
			if w.Code != tc.want || (tc.want == 200) != bytes.Equal(got, body) {
				t.Errorf("answered %d, %d of %d bytes arrived, want %d", w.Code, len(got), len(body), tc.want)
			}
			if len(e.held) != 0 || e.total != 0 {
				t.Errorf("%v, %d bytes are held in the end", e.held, e.total)
			}
		})
	}
}

// One namespace's large requests are held in memory up to a bound, and wait for
// each other; nobody else waits for them, and small requests not at all.
func TestOneNamespaceTakesNoRoomFromOthers(t *testing.T) {
	// Who waits for ever is found at once.
	synctest.Test(t, func(t *testing.T) {
		e := NewEntrance(prometheus.NewRegistry(), fair.NewTurns(2, 1))
		release := make(chan struct{})
		arrived := make(chan string, 100)
		served := e.Before(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			namespace := namespaceOf(body)
			arrived <- namespace
			if namespace == "hostile" && len(body) > largeBody {
				<-release
			}
		}))
		codes := make(chan int, 100)
		ask := func(body []byte) int {
			w := httptest.NewRecorder()
			served.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/bind", bytes.NewReader(body)))
			return w.Code
		}
		const hostile = 12
		large := review(t, "hostile", 1<<20)
		for range hostile {
			go func() { codes <- ask(large) }()
		}
		// Those of two megabytes and more that there is room for are held, the others
		// are turned away.
		const held = maxNamespaceBytes / (2<<20 + 1000)
		answers := map[int]int{}
		for range hostile - held {
			answers[<-codes]++
		}
		if got := <-arrived; got != "hostile" {
			t.Errorf("%s arrived", got)
		}
		if got := ask(review(t, "a", 1<<20)); got != 200 {
			t.Errorf("a large request of another namespace: %d", got)
		}
		if got := ask(review(t, "hostile", 10)); got != 200 {
			t.Errorf("a small request: %d", got)
		}
		close(release)
		for range held {
			answers[<-codes]++
		}
		if diff := cmp.Diff(map[int]int{503: hostile - held, 200: held}, answers); diff != "" {
			t.Errorf("answers (-want,+got):\n%s", diff)
		}
	})
}

// All large requests together are held up to a bound, too, and each is given back.
func TestWhatIsHeldOfAllNamespacesIsBounded(t *testing.T) {
	e := NewEntrance(prometheus.NewRegistry(), fair.NewTurns(1, 1))
	if e.reserve("a", maxNamespaceBytes+1) {
		t.Error("more than a namespace may hold is held")
	}
	var held []string
	for room := int64(maxWaitingBytes); room > 0; room -= maxNamespaceBytes {
		name := fmt.Sprint("ns-", len(held))
		if !e.reserve(name, min(room, maxNamespaceBytes)) {
			t.Fatalf("no room for %s with %d bytes left", name, room)
		}
		held = append(held, name)
	}
	if e.reserve("one-more", 1) {
		t.Errorf("%d bytes are held, and there is room for more", e.total)
	}
	e.release(held[0], 1)
	if e.held[held[0]] != maxNamespaceBytes-1 || !e.reserve("one-more", 1) {
		t.Errorf("a byte that was given back is not there: %v", e.held)
	}
}

// Only what is larger than a large body waits for room, and what may be.
func TestTheLargestSmallBodyWaitsForNobody(t *testing.T) {
	for name, tc := range map[string]struct {
		size    int
		chunked bool
		want    int
	}{
		"the largest small one":      {largeBody, false, 200},
		"the smallest large one":     {largeBody + 1, false, 503},
		"a small one, not announced": {10, true, 503},
	} {
		t.Run(name, func(t *testing.T) {
			e := NewEntrance(prometheus.NewRegistry(), fair.NewTurns(1, 1))
			e.total = maxWaitingBytes
			r := httptest.NewRequest(http.MethodPost, "/bind", bytes.NewReader(make([]byte, tc.size)))
			if tc.chunked {
				r.ContentLength = -1
			}
			w := httptest.NewRecorder()
			e.Before(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
			if w.Code != tc.want {
				t.Errorf("answered %d, want %d", w.Code, tc.want)
			}
		})
	}
}

func TestWhoIsGoneTakesNoTurn(t *testing.T) {
	e := NewEntrance(prometheus.NewRegistry(), fair.NewTurns(1, 1))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	e.Before(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("asked") })).
		ServeHTTP(w, httptest.NewRequestWithContext(gone, http.MethodPost, "/bind", bytes.NewReader(make([]byte, largeBody+1))))
	if w.Code != http.StatusServiceUnavailable || e.total != 0 {
		t.Errorf("answered %d, %d bytes are held", w.Code, e.total)
	}
}

func TestTheLargestBodyIsServed(t *testing.T) {
	for name, tc := range map[string]struct {
		size    int
		chunked bool
		want    int
	}{
		"as large as may be":                {maxBody, false, 200},
		"as large as may be, not announced": {maxBody, true, 200},
		"larger":                            {maxBody + 1, false, 413},
		"larger, not announced":             {maxBody + 1, true, 413},
	} {
		t.Run(name, func(t *testing.T) {
			e := NewEntrance(prometheus.NewRegistry(), fair.NewTurns(1, 1))
			r := httptest.NewRequest(http.MethodPost, "/bind", bytes.NewReader(make([]byte, tc.size)))
			if tc.chunked {
				r.ContentLength = -1
			}
			w := httptest.NewRecorder()
			asked := false
			e.Before(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true })).ServeHTTP(w, r)
			if w.Code != tc.want || asked != (tc.want == 200) {
				t.Errorf("answered %d, asked %t, want %d", w.Code, asked, tc.want)
			}
		})
	}
}

// A caller that goes away in the middle is answered, and nothing is asked for it.
func TestABodyThatEndsEarlyIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		announced int64
		sent      int
		want      int
	}{
		"a small one":                    {1000, 10, http.StatusBadRequest},
		"a large one, at once":           {4 * largeBody, 0, http.StatusBadRequest},
		"a large one, behind its head":   {4 * largeBody, headBytes, http.StatusBadRequest},
		"a large one, later":             {4 * largeBody, headBytes + largeBody, http.StatusBadRequest},
		"one too large, which none read": {maxBody + 1, 0, http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			e := NewEntrance(prometheus.NewRegistry(), fair.NewTurns(1, 1))
			r := httptest.NewRequest(http.MethodPost, "/bind", io.MultiReader(bytes.NewReader(make([]byte, tc.sent)), iotest.ErrReader(io.ErrClosedPipe)))
			r.ContentLength = tc.announced
			w := httptest.NewRecorder()
			e.Before(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("asked") })).ServeHTTP(w, r)
			if w.Code != tc.want || e.total != 0 {
				t.Errorf("answered %d, want %d; %d bytes are held", w.Code, tc.want, e.total)
			}
		})
	}
}
