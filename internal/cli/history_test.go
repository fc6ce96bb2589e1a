package cli

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestInForceAt(t *testing.T) {
	begin := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	r := func(number int64, since int) Revision {
		return Revision{Number: number, Since: metav1.NewTime(at(since)), first: at(since)}
	}
	again := func(number int64, first, since int) Revision {
		return Revision{Number: number, Since: metav1.NewTime(at(since)), first: at(first), Again: true}
	}
	cases := map[string]struct {
		history  []Revision
		want     int64
		sure, ok bool
	}{
		"no history":                   {},
		"too young a history":          {history: []Revision{r(1, 101)}},
		"the last one before":          {history: []Revision{r(1, 0), r(2, 50), r(3, 101)}, want: 2, sure: true, ok: true},
		"the only one, in this second": {history: []Revision{r(1, 100), r(2, 101)}, want: 1, sure: true, ok: true},
		"within the second":            {history: []Revision{r(1, 0), r(2, 100)}, want: 2, ok: true},
		"two within an older second":   {history: []Revision{r(1, 0), r(2, 50), r(3, 50)}, want: 3, sure: true, ok: true},
		"may have been before":         {history: []Revision{r(2, 50), again(3, 10, 150)}, want: 2, ok: true},
		"came back before":             {history: []Revision{r(2, 50), again(3, 10, 90)}, want: 3, sure: true, ok: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, sure, ok := inForceAt(tc.history, at(100).Add(700*time.Millisecond))
			if got.Number != tc.want || sure != tc.sure || ok != tc.ok {
				t.Errorf("revision %d, sure %v, ok %v; want %d, %v, %v", got.Number, sure, ok, tc.want, tc.sure, tc.ok)
			}
		})
	}
}

func TestCompareInForce(t *testing.T) {
	begin := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	r := func(since time.Duration, inForce bool) Revision {
		return Revision{Since: metav1.NewTime(begin.Add(since)), InForce: inForce}
	}
	one, two := []Revision{r(0, true)}, []Revision{r(0, false), r(time.Minute, true)}
	cases := map[string]struct {
		first, second []Revision
		want          int
		earlier       bool
	}{
		"the first came later":         {two, one, 1, true},
		"the second came later":        {one, two, -1, false},
		"both came within a second":    {two, []Revision{r(time.Minute+time.Second/2, true)}, 0, true},
		"what it was before is later":  {[]Revision{r(time.Second, true), r(time.Hour, false)}, two, -1, true},
		"the first is not recorded":    {[]Revision{r(0, false)}, two, 1, true},
		"the second is not recorded":   {two, []Revision{r(time.Hour, false)}, -1, true},
		"none of them is recorded yet": {nil, nil, 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, earlier := CompareInForce(tc.first, tc.second), HasEarlier(tc.first); got != tc.want || earlier != tc.earlier {
				t.Errorf("compared %d, has earlier ones %t; want %d, %t", got, earlier, tc.want, tc.earlier)
			}
		})
	}
}
