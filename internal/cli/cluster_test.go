package cli_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/freshbind/freshbind/internal/cli"
)

type answer struct{ date string }

func (a answer) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Header: http.Header{"Date": {a.date}}, Body: http.NoBody}, nil
}

// The clock of whoever runs this does not matter.
func TestServerClock(t *testing.T) {
	ahead := time.Now().Add(10 * time.Hour).UTC().Format(http.TimeFormat)
	cases := map[string]struct {
		dates []string
		ahead bool
	}{
		"no answer yet":    {},
		"an answer":        {[]string{ahead}, true},
		"one without date": {[]string{ahead, "", "yesterday"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clock := &cli.ServerClock{}
			for _, date := range tc.dates {
				answer, err := clock.Wrap(answer{date}).RoundTrip(&http.Request{})
				if err != nil {
					t.Fatal(err)
				}
				if err := answer.Body.Close(); err != nil || answer.Header.Get("Date") != date {
					t.Fatalf("answer %v, error %v", answer, err)
				}
			}
			if got := time.Until(clock.Now()) > time.Hour; got != tc.ahead {
				t.Errorf("ahead by hours: %v, want %v", got, tc.ahead)
			}
		})
	}
}
