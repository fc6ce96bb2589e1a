package revision

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/randfill"
)

// choices turns the bytes of a fuzz input into decisions, so that the fuzzer can change one of them. When they are used up, every
// decision is the first.
type choices struct {
	data []byte
}

// below returns a number from 0 to n-1.
func (c *choices) below(n int) int {
	if len(c.data) == 0 || n < 2 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % n
}

func pick[T any](c *choices, values ...T) T { return values[c.below(len(values))] }

func (c *choices) random() *rand.Rand {
	var seed uint64
	for range 4 {
		seed = seed<<8 | uint64(c.below(256))
	}
	return rand.New(rand.NewPCG(seed, 1))
}

func (c *choices) quantity() resource.Quantity {
	return resource.MustParse(pick(c, "0", "1", "1000m", "1k", "1000", "1Ki", "1024", "1Gi", "1073741824", "0.5", "500m", "1e3", "-1", "1n", "3e18", "3E", "12345678901234567.5", "1e40"))
}

func (c *choices) time() metav1.Time {
	zone := pick(c, time.UTC, time.FixedZone("", 3600), time.FixedZone("", -5400))
	return metav1.Time{Time: time.Unix(pick(c, int64(0), 1, 1767323045), 0).In(zone)}
}

func (c *choices) intOrString() intstr.IntOrString {
	return pick(c, intstr.FromInt32(0), intstr.FromInt32(80), intstr.FromString(""), intstr.FromString("80"), intstr.FromString("http"))
}

func (c *choices) text() string {
	return pick(c, "", "a", "b", "1", "1000m", "null", "a.b/c", "é\n\"\\")
}

// podSpec fills a PodSpec from the bytes of a fuzz input.
func podSpec(data []byte) *corev1.PodSpec {
	c := &choices{data: data}
	spec := &corev1.PodSpec{}
	randfill.NewFromGoFuzz(data).NilChance(0.75).NumElements(1, 2).MaxDepth(12).Funcs(
		func(q *resource.Quantity, _ randfill.Continue) { *q = c.quantity() },
		func(at *metav1.Time, _ randfill.Continue) { *at = c.time() },
		func(v *intstr.IntOrString, _ randfill.Continue) { *v = c.intOrString() },
		func(v *metav1.FieldsV1, _ randfill.Continue) { v.SetRawBytes([]byte(pick(c, `{"a":1}`, `{}`))) },
		func(s *string, _ randfill.Continue) { *s = c.text() },
	).Fill(spec)
	return spec
}

// mutate changes one thing in v.
func mutate(v reflect.Value, c *choices) {
	switch at := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*at = c.quantity()
		return
	case *metav1.Time:
		*at = c.time()
		return
	case *intstr.IntOrString:
		*at = c.intOrString()
		return
	case *metav1.FieldsV1:
		at.SetRawBytes([]byte(pick(c, `{"b":1}`, `{}`)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		mutate(v.Field(c.below(v.NumField())), c)
	case reflect.Pointer:
		mutatePointer(v, c)
	case reflect.Slice:
		mutateSlice(v, c)
	case reflect.Map:
		mutateMap(v, c)
	case reflect.String:
		v.SetString(c.text())
	case reflect.Bool:
		v.SetBool(!v.Bool())
	default:
		v.SetInt(int64(pick(c, 0, 1, -1, 1<<31-1)))
	}
}

func mutatePointer(v reflect.Value, c *choices) {
	deeper := c.below(4) > 0
	if !v.IsNil() && !deeper {
		v.SetZero()
		return
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	if deeper {
		mutate(v.Elem(), c)
	}
}

func mutateSlice(v reflect.Value, c *choices) {
	n := v.Len()
	switch c.below(5) {
	case 0:
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
	case 1:
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
			return
		}
		v.SetLen(max(n-1, 0))
	case 2:
		if n > 1 {
			swap := reflect.Swapper(v.Interface())
			swap(0, n-1)
		}
	default:
		if n == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			n = 1
		}
		mutate(v.Index(c.below(n)), c)
	}
}

func mutateMap(v reflect.Value, c *choices) {
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	key := reflect.ValueOf(c.text()).Convert(v.Type().Key())
	if c.below(4) == 0 {
		v.SetMapIndex(key, reflect.Value{})
		return
	}
	value := reflect.New(v.Type().Elem()).Elem()
	mutate(value, c)
	v.SetMapIndex(key, value)
}

// encode returns spec as Go's encoder writes it.
func encode(t *testing.T, spec *corev1.PodSpec) map[string]any {
	t.Helper()
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatalf("decode: %v", err)
	}
	return out
}

// restyle writes v, a value of type info, in another way: fields that are not there become null or zero, quantities and numbers get
// another format. Some of it changes what v means. It is for the API types to say so.
func restyle(info *typeInfo, v any, r *rand.Rand) any {
	switch info.kind {
	case kindStruct:
		m, ok := v.(map[string]any)
		if !ok {
			return v
		}
		for name, field := range info.fields {
			if inner, found := m[name]; found {
				m[name] = restyle(field, inner, r)
			} else if r.IntN(8) == 0 {
				m[name] = absentOr(field, r)
			}
		}
	case kindMap:
		m, _ := v.(map[string]any)
		for name, inner := range m {
			m[name] = restyle(info.elem, inner, r)
		}
	case kindList:
		items, _ := v.([]any)
		for i := range items {
			items[i] = restyle(info.elem, items[i], r)
		}
	case kindQuantity:
		return restyleQuantity(v, r)
	case kindInt:
		if n, ok := v.(int64); ok && r.IntN(4) == 0 && n < 1<<40 && n > -1<<40 {
			return float64(n)
		}
	}
	return v
}

func absentOr(info *typeInfo, r *rand.Rand) any {
	if info.pointer && r.IntN(50) > 0 || r.IntN(2) == 0 || info.kind == kindTime || info.kind == kindRaw {
		return nil
	}
	switch info.kind {
	case kindStruct, kindMap:
		return map[string]any{}
	case kindList:
		return []any{}
	default:
		return zeroValue(info)
	}
}

func restyleQuantity(v any, r *rand.Rand) any {
	s, ok := v.(string)
	if !ok {
		return v
	}
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return v
	}
	switch r.IntN(5) {
	case 0:
		q.Format = resource.BinarySI
	case 1:
		q.Format = resource.DecimalExponent
	case 2:
		q.Format = resource.DecimalSI
	case 3:
		if n, ok := q.AsInt64(); ok && n < 1<<40 && n > -1<<40 {
			return n
		}
	}
	if text := q.String(); len(text) > 0 && r.IntN(4) > 0 {
		if again, err := resource.ParseQuantity(text); err == nil && again.Cmp(q) == 0 {
			return text
		}
	}
	return v
}
