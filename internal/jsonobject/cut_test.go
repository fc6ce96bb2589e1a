package jsonobject

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCut(t *testing.T) {
	type found struct {
		Left   string
		Values map[string]string
	}
	cases := map[string]struct {
		text string
		want *found
	}{
		"both": {
			`{"kind":"R","request":{"uid":"u","object":{"a":[1,"}"]},"n":1,"old": null }}`,
			&found{`{"kind":"R","request":{"uid":"u","object":null,"n":1,"old": null }}`, map[string]string{"object": `{"a":[1,"}"]}`, "old": "null"}},
		},
		"with blanks":        {` { "request" : { "object" : 1 , "b" : 2 } } `, &found{` { "request" : { "object" : null , "b" : 2 } } `, map[string]string{"object": "1"}}},
		"neither":            {`{"request":{"uid":"u"},"object":1}`, &found{`{"request":{"uid":"u"},"object":1}`, map[string]string{}}},
		"empty":              {`{"request":{}}`, &found{`{"request":{}}`, map[string]string{}}},
		"elsewhere":          {`{"response":{"object":1},"request":{"a":{"object":2}}}`, &found{`{"response":{"object":1},"request":{"a":{"object":2}}}`, map[string]string{}}},
		"no such object":     {`{"response":{"object":1}}`, nil},
		"twice":              {`{"request":{},"request":{"object":1}}`, nil},
		"a value twice":      {`{"request":{"object":1,"object":2}}`, nil},
		"no object":          {`{"request":null}`, nil},
		"a list":             {`{"request":[{"object":1}]}`, nil},
		"written otherwise":  {`{"request":{"\u006fbject":1}}`, &found{`{"request":{"\u006fbject":null}}`, map[string]string{"object": "1"}}},
		"so is the other":    {`{"\u0072equest":{"object":1}}`, &found{`{"\u0072equest":{"object":null}}`, map[string]string{"object": "1"}}},
		"cut off":            {`{"request":{"object":{"a":1}}`, nil},
		"cut off in a value": {`{"request":{"object":{"a":1`, nil},
		"more behind":        {`{"request":{"object":1}}}`, nil},
		"a value is none":    {`{"request":{"object":{"a":tru}}}`, nil},
		"another is none":    {`{"a":tru,"request":{"object":1}}`, nil},
		"no comma":           {`{"request":{"object":1 "old":2}}`, nil},
		"no colon":           {`{"request" {"object":1}}`, nil},
		"no key":             {`{"request":{1:2}}`, nil},
		"nothing":            {``, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			left, values, ok := Cut([]byte(tc.text), "request", "object", "old")
			var got *found
			if ok {
				got = &found{string(left), map[string]string{}}
				for key, value := range values {
					got.Values[key] = string(value)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Cut() (-want,+got):\n%s", diff)
			}
		})
	}
}

// What is cut and what is left say together what the text says, however it is spoiled.
func FuzzCut(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(`{"request":{"object":` + text + `,"old":` + text + `}}`))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		left, values, ok := Cut(text, "request", "object", "old")
		if !ok {
			return
		}
		want, err := plainly(text)
		if err != nil {
			t.Fatalf("Cut(%q), which is no JSON: %v", text, err)
		}
		got, err := plainly(left)
		if err != nil {
			t.Fatalf("Cut(%q) left %q: %v", text, left, err)
		}
		request, _ := got["request"].(map[string]any)
		for key, value := range values {
			var v any
			if err := exactly(value, &v); err != nil || request[key] != nil {
				t.Fatalf("Cut(%q) of %s = %q (%v), and left %v", text, key, value, err, request[key])
			}
			request[key] = v
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Cut(%q) (-want,+got):\n%s", text, diff)
		}
	})
}

func plainly(text []byte) (object map[string]any, err error) {
	err = exactly(text, &object)
	return object, err
}

// exactly takes numbers as they are written: what one stands for is no matter of ours.
func exactly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}
