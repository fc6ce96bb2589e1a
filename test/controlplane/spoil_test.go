package controlplane

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestSpoiledAnswers(t *testing.T) {
	const body = "0123456789"
	for name, tc := range map[string]struct {
		spoil  Spoil
		length int64
		// answered, without the API server, with this status.
		answered int
		want     string
		cut      bool
	}{
		"as it is":               {SpoilNot, int64(len(body)), 0, body, false},
		"busy":                   {SpoilBusy, 0, http.StatusTooManyRequests, "", false},
		"fails":                  {SpoilFails, 0, http.StatusInternalServerError, "", false},
		"cut":                    {SpoilCuts, int64(len(body)), 0, "01234", true},
		"cut, of unknown length": {SpoilCuts, -1, 0, strings.Repeat("x", cutAfter), true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Proxy{}
			p.SpoilAnswers(func(*http.Request) Spoil { return tc.spoil })
			answer := httptest.NewRecorder()
			request, answered := p.spoiled(answer, httptest.NewRequest(http.MethodGet, "/api", nil))
			if answered != (tc.answered != 0) || answered && answer.Code != tc.answered {
				t.Fatalf("answered = %t with %d, want %d", answered, answer.Code, tc.answered)
			}
			if answered {
				return
			}
			whole := body
			if tc.length < 0 {
				whole = strings.Repeat("x", 2*cutAfter)
			}
			response := &http.Response{Request: request, ContentLength: tc.length, Body: io.NopCloser(strings.NewReader(whole))}
			halve(response)
			got, err := io.ReadAll(response.Body)
			if string(got) != tc.want || errors.Is(err, io.ErrUnexpectedEOF) != tc.cut {
				t.Errorf("read %q and %v, want %q, cut: %t", got, err, tc.want, tc.cut)
			}
		})
	}
}

// A watch that is open ends; one that begins later does not.
func TestPaceCuts(t *testing.T) {
	open := newTap(t, false)
	open.pace.change(configMaps, func(r *rule) { r.cuts++ })
	open.read()
	if err := <-open.end; !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an open watch ends with %v, want an unexpected end", err)
	}
	later := newTap(t, false)
	later.pace.change(configMaps, func(r *rule) { r.cuts++ })
	cut, err := framingOf("application/json")
	if err != nil {
		t.Fatal(err)
	}
	s := newStream(&http.Response{Body: io.NopCloser(strings.NewReader(bookmark))}, cut, later.pace, configMaps, false)
	got, err := io.ReadAll(s)
	if string(got) != bookmark || err != nil {
		t.Errorf("a later watch reads %q and %v", got, err)
	}
}
