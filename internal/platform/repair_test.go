package platform

import "testing"

func TestParseRepaired(t *testing.T) {
	cases := map[string]struct {
		note     string
		from, to string
		want     bool
	}{
		"what Note writes": {Repair{From: "v1-a", To: "v1-b"}.Note(), "v1-a", "v1-b", true},
		"nothing":          {"", "", "", false},
		"no arrow":         {"v1-a", "", "", false},
		"no origin":        {" -> v1-b", "", "", false},
		"no outcome":       {"v1-a -> ", "", "", false},
		"to itself":        {"v1-a -> v1-a", "", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			from, to, ok := ParseRepaired(tc.note)
			if ok != tc.want || ok && (from != tc.from || to != tc.to) || IsRepaired(tc.note) != tc.want {
				t.Errorf("ParseRepaired(%q) = %q, %q, %t; want %q, %q, %t", tc.note, from, to, ok, tc.from, tc.to, tc.want)
			}
		})
	}
}
