package revision

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	zeroQuantity = "0"
	zeroTime     = "0001-01-01T00:00:00Z"
)

// Quantities have bounds because apimachinery computes their powers of ten: 1e-10000000 takes it a second.
const (
	maxQuantityExponent = 999
	maxQuantityLength   = 999
)

// number returns the int64 or float64 that in stands for: an integral float is the integer.
func number(in any) (any, bool) {
	switch v := in.(type) {
	case int64:
		return in, true
	case int:
		return int64(v), true
	case int32:
		return int64(v), true
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, false
		}
		if v == math.Trunc(v) && v >= math.MinInt64 && v < math.MaxInt64 {
			return int64(v), true
		}
		return in, true
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, true
		}
		f, err := v.Float64()
		if err != nil {
			return nil, false
		}
		return number(f)
	default:
		return nil, false
	}
}

func canonicalInt(in any, bits int) (any, error) {
	v, _ := number(in)
	n, ok := v.(int64)
	if !ok {
		return nil, wrongType(in, "an integer")
	}
	if bits == 32 && (n < math.MinInt32 || n > math.MaxInt32) {
		return nil, problemf("does not fit into 32 bits")
	}
	return v, nil
}

func canonicalIntOrString(in any) (any, error) {
	if _, ok := in.(string); ok {
		return canonicalString(in)
	}
	v, _ := number(in)
	if _, ok := v.(int64); !ok {
		return nil, wrongType(in, "an integer or a string")
	}
	return canonicalInt(v, 32)
}

func canonicalTime(in any) (any, error) {
	s, ok := in.(string)
	if !ok {
		return nil, wrongType(in, "a time")
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return nil, problemf("must be a time (RFC 3339)")
	}
	t = t.UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		return nil, problemf("must be a time within the years 0 to 9999 (UTC)")
	}
	return t.Format(time.RFC3339Nano), nil
}

func canonicalQuantity(in any) (any, error) {
	s, ok := in.(string)
	if !ok {
		v, ok := number(in)
		if !ok {
			return nil, wrongType(in, "a quantity")
		}
		s = compact(v)
	}
	s = strings.TrimSpace(s)
	if len(s) > maxQuantityLength || exponentTooLarge(s) {
		return nil, outOfRange()
	}
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return nil, problemf("must be a quantity")
	}
	text := quantityText(q)
	if exponentTooLarge(text) {
		return nil, outOfRange()
	}
	return text, nil
}

func outOfRange() *fieldError {
	return problemf("must be a quantity of at most %d characters with an exponent of at most %d", maxQuantityLength, maxQuantityExponent)
}

// exponentTooLarge looks at what follows the last e or E, which can also be the suffix for 10^18 or, as Ei, for 2^60.
func exponentTooLarge(s string) bool {
	i := strings.LastIndexAny(s, "eE")
	if i < 0 {
		return false
	}
	n, err := strconv.ParseInt(s[i+1:], 10, 32)
	return errors.Is(err, strconv.ErrRange) || n > maxQuantityExponent || n < -maxQuantityExponent
}

// quantityText writes equal quantities alike, in a form that people read and apimachinery parses: binary suffixes for whole
// multiples of 1Mi, plain digits for other whole numbers, n, u and m for fractions.
func quantityText(q resource.Quantity) string {
	if n, ok := q.AsInt64(); ok {
		return wholeQuantityText(n)
	}
	dec := q.AsDec()
	digits := dec.UnscaledBig().String()
	if digits == "0" {
		return zeroQuantity
	}
	significant := strings.TrimRight(digits, "0")
	exponent := len(digits) - len(significant) - int(dec.Scale())
	if exponent >= 0 {
		if exponent <= 18 {
			if n, err := strconv.ParseInt(significant+strings.Repeat("0", exponent), 10, 64); err == nil {
				return wholeQuantityText(n)
			}
		}
		return significant + "e" + strconv.Itoa(exponent)
	}
	switch {
	case exponent >= -3:
		return significant + strings.Repeat("0", 3+exponent) + "m"
	case exponent >= -6:
		return significant + strings.Repeat("0", 6+exponent) + "u"
	default:
		return significant + strings.Repeat("0", 9+exponent) + "n"
	}
}

func wholeQuantityText(n int64) string {
	const mebi = 1 << 20
	if n == 0 || n%mebi != 0 {
		return strconv.FormatInt(n, 10)
	}
	n /= mebi
	suffix := 0
	for n%1024 == 0 && suffix < len("MGTPE")-1 {
		n /= 1024
		suffix++
	}
	return strconv.FormatInt(n, 10) + "MGTPE"[suffix:suffix+1] + "i"
}

// wrongType names types only: the value may be a secret.
func wrongType(in any, want string) *fieldError {
	return problemf("must be %s, is %s", want, typeName(in))
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case int64, int, int32:
		return "an integer"
	case float64, json.Number:
		return "a number"
	default:
		return fmt.Sprintf("of the Go type %T, which is not JSON", v)
	}
}
