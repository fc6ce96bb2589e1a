package platform

import (
	"testing"
	"time"
)

func TestPast(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	for name, tc := range map[string]struct {
		at   string
		want bool
	}{
		"long ago":                     {at(-time.Hour), true},
		"now":                          {at(0), true},
		"by a clock that is ahead":     {at(ExpiryMargin), true},
		"by a clock that is far ahead": {at(ExpiryMargin + time.Second), false},
		"never":                        {"", false},
		"whenever that is":             {"yesterday", false},
	} {
		if got := Past(tc.at, now); got != tc.want {
			t.Errorf("%s: Past(%q) = %t, want %t", name, tc.at, got, tc.want)
		}
	}
}
