package revision

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNumber(t *testing.T) {
	cases := map[string]struct {
		in, want any
	}{
		"an integral float":             {2.0, int64(2)},
		"a fraction":                    {2.5, 2.5},
		"the least integer":             {float64(math.MinInt64), int64(math.MinInt64)},
		"less than that":                {-1e19, -1e19},
		"more than the greatest":        {float64(math.MaxInt64), float64(math.MaxInt64)},
		"infinite":                      {math.Inf(1), nil},
		"infinite, negative":            {math.Inf(-1), nil},
		"no number":                     {math.NaN(), nil},
		"a literal that no float holds": {json.Number("9007199254740993"), int64(9007199254740993)},
		"a literal of a fraction":       {json.Number("2.5"), 2.5},
		"a literal out of range":        {json.Number("1e999"), nil},
		"a literal that is no number":   {json.Number("x"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := number(tc.in)
			if ok != (tc.want != nil) || got != tc.want {
				t.Errorf("number() = %v, %t, want %v", got, ok, tc.want)
			}
		})
	}
}

func TestIntegersFit(t *testing.T) {
	for in, want := range map[int64]bool{math.MaxInt32: true, math.MaxInt32 + 1: false, math.MinInt32: true, math.MinInt32 - 1: false} {
		if _, err := canonicalInt(in, 32); (err == nil) != want {
			t.Errorf("%d in 32 bits: %v, want it to fit: %t", in, err, want)
		}
		if _, err := canonicalInt(in, 64); err != nil {
			t.Errorf("%d in 64 bits: %v", in, err)
		}
	}
}

func TestTimesThatAreStored(t *testing.T) {
	for in, want := range map[string]any{
		"0000-01-01T00:00:00Z":      "0000-01-01T00:00:00Z",
		"0000-01-01T00:00:00+01:00": nil,
		"9999-12-31T23:59:59Z":      "9999-12-31T23:59:59Z",
		"9999-12-31T23:59:59-01:00": nil,
		"yesterday":                 nil,
	} {
		if got, err := canonicalTime(in); got != want || (err == nil) != (want != nil) {
			t.Errorf("canonicalTime(%q) = %v, %v, want %v", in, got, err, want)
		}
	}
}

// Each form is what apimachinery reads the same value from.
func TestQuantityText(t *testing.T) {
	for in, want := range map[string]string{
		"0":                     "0",
		strings.Repeat("0", 30): "0",
		"0Ei":                   "0",
		"0.00Ei":                "0",
		"1000":                  "1000",
		"1Mi":                   "1Mi",
		"1048577":               "1048577",
		"1024Mi":                "1Gi",
		"1Ei":                   "1Ei",
		"4Ei":                   "4Ei",
		"9223372036854775807":   "9223372036854775807",
		"99999999999999999999":  "99999999999999999999e0",
		"1e19":                  "1e19",
		"0.001":                 "1m",
		"0.01":                  "10m",
		"0.000001":              "1u",
		"0.00001":               "10u",
		"0.000000001":           "1n",
		"0.00000001":            "10n",
		"1.5":                   "1500m",
	} {
		got, err := canonicalQuantity(in)
		if err != nil {
			t.Errorf("canonicalQuantity(%q): %v", in, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("canonicalQuantity(%q) (-want,+got):\n%s", in, diff)
		}
		if again, err := canonicalQuantity(got); err != nil || again != got {
			t.Errorf("%q is read as %v, %v", got, again, err)
		}
	}
}

func TestQuantitiesAreBounded(t *testing.T) {
	for in, want := range map[string]bool{
		strings.Repeat("1", maxQuantityLength):   true,
		strings.Repeat("1", maxQuantityLength+1): false,
		"1e" + itoa(maxQuantityExponent):         true,
		"1e" + itoa(maxQuantityExponent+1):       false,
		"1e-" + itoa(maxQuantityExponent+1):      false,
		"1e99999999999":                          false,
	} {
		if _, err := canonicalQuantity(in); (err == nil) != want {
			t.Errorf("canonicalQuantity(%.40q): %v, want it to be read: %t", in, err, want)
		}
	}
}

func itoa(n int) string {
	raw, _ := json.Marshal(n)
	return string(raw)
}
