package testevents

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	const text = `{"Time":"2026-11-01T10:00:00Z","Action":"output","Package":"p","Test":"T","Output":"a line\n"}
{"Action":"attr","Package":"p","Test":"T","Key":"k","Value":"v"}
{"Action":"pass","Package":"p","Elapsed":1.5}
`
	enough := errors.New("enough")
	tests := map[string]struct {
		text  string
		until int
		want  []Event
		fails string
	}{
		"all": {text: text, want: []Event{
			{Time: time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC), Action: "output", Package: "p", Test: "T", Output: "a line\n"},
			{Action: "attr", Package: "p", Test: "T", Key: "k", Value: "v"},
			{Action: "pass", Package: "p", Elapsed: 1.5},
		}},
		"until an error":         {text: text, until: 1, fails: "enough", want: []Event{{Time: time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC), Action: "output", Package: "p", Test: "T", Output: "a line\n"}}},
		"nothing":                {},
		"what go test says else": {text: "# p\np.go:1: undefined: x\n", fails: ": # p"},
		"half an event":          {text: `{"Action":`, fails: `unexpected end of JSON input: {"Action":`},
		"a line without an end":  {text: strings.Repeat("x", longest+1), fails: "token too long"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []Event
			err := Read(strings.NewReader(tc.text), func(e Event) error {
				if got = append(got, e); len(got) == tc.until {
					return enough
				}
				return nil
			})
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("error is %v, want %q", err, tc.fails)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestEnded(t *testing.T) {
	for action, want := range map[string]bool{"pass": true, "fail": true, "skip": true, "run": false, "output": false, "attr": false, "pause": false} {
		if got := (Event{Action: action}).Ended(); got != want {
			t.Errorf("%s: got %t, want %t", action, got, want)
		}
	}
}
