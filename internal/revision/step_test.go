package revision

import "testing"

func TestWhatPathsQuote(t *testing.T) {
	for in, want := range map[string]string{
		"az": "az", "AZ": "AZ", "09": "09", "a_b": "a_b", "a-b": "a-b", "": `[""]`,
		"a{": `["a{"]`, "a`": "[\"a`\"]", "A[": `["A["]`, "A@": `["A@"]`, "9:": `["9:"]`, "0/": `["0/"]`,
	} {
		if got := fieldSegment(in); got != want {
			t.Errorf("fieldSegment(%q) = %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{"a!~/": "a!~/", "": `""`, "a b": `"a b"`, "a\x7f": "\"a\x7f\"", "a,b": `"a,b"`} {
		if got := valueText(in); got != want {
			t.Errorf("valueText(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestTruncate(t *testing.T) {
	for in, want := range map[string]string{"äbcd": "äbcd", "äbcde": "äbc…", "": ""} {
		if got := Truncate(in, 4); got != want {
			t.Errorf("Truncate(%q, 4) = %q, want %q", in, got, want)
		}
	}
}
