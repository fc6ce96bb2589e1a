package webhooks

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Whatever comes is understood, and answered, as controller-runtime does.
func TestReviewsAnswersAsControllerRuntime(t *testing.T) {
	const (
		head    = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":`
		request = `{"uid":"u-1","kind":{"group":"g","version":"v1","kind":"K"},"resource":{"group":"g","version":"v1","resource":"ks"},"name":"n","namespace":"ns",` +
			`"operation":"UPDATE","userInfo":{"username":"me","groups":["a"],"extra":{"x":["y"]}},"object":{"a":1,"b":"\u003c"},"oldObject":{"a":[0]},"dryRun":true,"options":{"kind":"UpdateOptions"}}`
	)
	cases := map[string]struct {
		body, contentType string
		// quick reviews are read in one pass.
		quick bool
	}{
		"a review":                  {body: head + request + `}`, quick: true},
		"with blanks":               {body: " " + head + " " + request + " }\n", quick: true},
		"a create":                  {body: head + strings.Replace(request, `{"a":[0]}`, "null", 1) + `}`, quick: true},
		"without an object":         {body: head + `{"uid":"u-2","operation":"CREATE"}}`, quick: true},
		"of v1beta1":                {body: strings.Replace(head, "/v1", "/v1beta1", 1) + request + `}`},
		"of another kind":           {body: strings.Replace(head, "AdmissionReview", "Pod", 1) + request + `}`},
		"without a kind":            {body: `{"request":` + request + `}`},
		"without a request":         {body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`},
		"cut off":                   {body: (head + request)[:300]},
		"a wrong type":              {body: head + strings.Replace(request, `"name":"n"`, `"name":1`, 1) + `}`},
		"an object that has errors": {body: head + strings.Replace(request, `[0]`, `[0,]`, 1) + `}`},
		"no JSON":                   {body: "x"},
		"nothing":                   {},
		"another media type":        {body: head + request + `}`, contentType: "text/plain"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, quick := decodeReview([]byte(tc.body)); quick != (tc.quick || tc.contentType != "") {
				t.Errorf("decodeReview() = %t, want %t", quick, tc.quick)
			}
			answer := func(with func(admission.Handler) http.Handler) (got []any) {
				handler := with(admission.HandlerFunc(func(_ context.Context, req admission.Request) admission.Response {
					got = append(got, req)
					return admission.Denied("no").WithWarnings("w")
				}))
				r := httptest.NewRequest(http.MethodPost, "/bind", strings.NewReader(tc.body))
				r.Header.Set("Content-Type", "application/json")
				if tc.contentType != "" {
					r.Header.Set("Content-Type", tc.contentType)
				}
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				return append(got, w.Code, w.Body.String())
			}
			want := answer(func(h admission.Handler) http.Handler { return &admission.Webhook{Handler: h} })
			got := answer(func(h admission.Handler) http.Handler { return NewReviews(h) })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// A body that breaks off is no review.
func TestReviewsOfABodyThatBreaksOff(t *testing.T) {
	asked := false
	e := NewReviews(admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		asked = true
		return admission.Allowed("")
	}))
	r := httptest.NewRequest(http.MethodPost, "/bind", io.MultiReader(strings.NewReader(`{"kind":`), brokenOff{}))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	if asked || !strings.Contains(w.Body.String(), io.ErrUnexpectedEOF.Error()) {
		t.Errorf("asked: %t, answer %q", asked, w.Body)
	}
}

type brokenOff struct{}

func (brokenOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
