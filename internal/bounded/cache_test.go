package bounded

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCache(t *testing.T) {
	const unit, two = 1000 - entryOverhead, 2000 - entryOverhead // ten units fill the cache
	type add struct {
		key   string
		bytes int
	}
	cases := map[string]struct {
		adds   []add
		get    string // used again before the last one is added
		remove string
		want   []string
		bytes  int
	}{
		"all fit":                              {[]add{{"a", unit}, {"b", unit}}, "", "", []string{"a", "b"}, 2000},
		"the one not used for longest goes":    {[]add{{"a", unit}, {"b", two}, {"c", two}, {"d", two}, {"e", two}, {"f", two}}, "", "", []string{"b", "c", "d", "e", "f"}, 10_000},
		"one that is used stays":               {[]add{{"a", unit}, {"b", two}, {"c", two}, {"d", two}, {"e", two}, {"f", two}}, "a", "", []string{"a", "c", "d", "e", "f"}, 9000},
		"as many go as there has to be room":   {[]add{{"a", unit}, {"b", unit}, {"c", two}, {"d", two}, {"e", two}, {"f", two}, {"g", two}}, "", "", []string{"c", "d", "e", "f", "g"}, 10_000},
		"what would take a quarter and more":   {[]add{{"a", unit}, {"b", 2501 - entryOverhead}}, "", "", []string{"a"}, 1000},
		"a quarter":                            {[]add{{"a", unit}, {"b", 2500 - entryOverhead}}, "", "", []string{"a", "b"}, 3500},
		"the same key counts once":             {[]add{{"a", unit}, {"a", two}}, "", "", []string{"a"}, 2000},
		"one that grew too large is forgotten": {[]add{{"a", unit}, {"a", 3 * two}}, "", "", nil, 0},
		"removed":                              {[]add{{"a", unit}, {"b", unit}}, "", "a", []string{"b"}, 1000},
		"removed, and was not there":           {[]add{{"a", unit}}, "", "b", []string{"a"}, 1000},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := NewCache[string, string](10_000)
			for i, a := range tc.adds {
				if i == len(tc.adds)-1 && tc.get != "" {
					c.Get(tc.get)
				}
				c.Add(a.key, a.key, a.bytes)
			}
			c.Remove(tc.remove)
			var got []string
			for _, a := range tc.adds {
				if v, found := c.Get(a.key); found && !slices.Contains(got, v) {
					got = append(got, v)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("kept (-want,+got):\n%s", diff)
			}
			if c.Bytes() != tc.bytes || c.Len() != len(tc.want) {
				t.Errorf("%d entries of %d bytes, want %d of %d", c.Len(), c.Bytes(), len(tc.want), tc.bytes)
			}
		})
	}
}
