package liveread

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConsistent(t *testing.T) {
	cases := map[string]struct{ method, query, want string }{
		"a list of any version":    {query: "limit=500&resourceVersion=0", want: "limit=500"},
		"its match goes with it":   {query: "resourceVersion=0&resourceVersionMatch=NotOlderThan", want: ""},
		"a list of some version":   {query: "limit=500&resourceVersion=7", want: "limit=500&resourceVersion=7"},
		"a consistent list":        {query: "limit=500", want: "limit=500"},
		"a watch from any version": {query: "resourceVersion=0&watch=true", want: "resourceVersion=0&watch=true"},
		"not a read":               {method: http.MethodDelete, query: "resourceVersion=0", want: "resourceVersion=0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got string
			transport := consistent(roundTripper(func(r *http.Request) (*http.Response, error) {
				got = r.URL.RawQuery
				return nil, http.ErrServerClosed
			}))
			r, err := http.NewRequestWithContext(t.Context(), tc.method, "https://server/api/v1/pods?"+tc.query, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := transport.RoundTrip(r)
			if err == nil {
				_ = response.Body.Close()
				t.Fatal("the request has not come to the next transport")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("query (-want,+got):\n%s", diff)
			}
			if r.URL.RawQuery != tc.query {
				t.Errorf("the request itself was changed to %q", r.URL.RawQuery)
			}
		})
	}
}
