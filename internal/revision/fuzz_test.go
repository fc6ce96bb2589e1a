package revision

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/json"
)

// addSeeds gives a plain test run inputs of every size.
func addSeeds(f *testing.F, n int) {
	r := rand.New(rand.NewPCG(764, 1078))
	for i := range n {
		data := make([]byte, 8+i*4)
		for j := range data {
			data[j] = byte(r.UintN(256))
		}
		f.Add(data)
	}
}

// split separates what fills a spec from what is done to it.
func split(data []byte) (*corev1.PodSpec, *choices) {
	half := len(data) / 2
	return podSpec(data[half:]), &choices{data: data[:half]}
}

func FuzzHashEqualsSemantic(f *testing.F) {
	addSeeds(f, 300)
	f.Fuzz(func(t *testing.T, data []byte) {
		a, c := split(data)
		b := a.DeepCopy()
		for range c.below(4) {
			mutate(reflect.ValueOf(b).Elem(), c)
		}
		formA, formB := encode(t, a), encode(t, b)
		if c.below(4) > 0 {
			restyle(podSpecInfo(), formA, c.random())
		}
		if c.below(4) > 0 {
			restyle(podSpecInfo(), formB, c.random())
		}
		want := equality.Semantic.DeepEqual(decode(t, formA), decode(t, formB))
		blueprintA, errA := FromPodSpec(formA)
		blueprintB, errB := FromPodSpec(formB)
		if errA != nil || errB != nil {
			t.Fatalf("the API types can decode what FromPodSpec refuses: %v, %v", errA, errB)
		}
		if got := blueprintA.Hash() == blueprintB.Hash(); got != want {
			t.Errorf("equal in hash: %v; equal in the API types: %v\n%s\n%s", got, want, blueprintA.JSON(), blueprintB.JSON())
		}
		if got := len(Compare(blueprintA, blueprintB, PathSet{})) == 0; got != want {
			t.Errorf("Compare finds nothing: %v; equal in the API types: %v\n%s\n%s", got, want, blueprintA.JSON(), blueprintB.JSON())
		}
		if got := Equal(blueprintA.Redact(), blueprintB, PathSet{}); got != want {
			t.Errorf("equal when redacted: %v; equal in the API types: %v\n%s\n%s", got, want, blueprintA.JSON(), blueprintB.JSON())
		}
	})
}

func decode(t *testing.T, form map[string]any) *corev1.PodSpec {
	t.Helper()
	data, err := json.Marshal(form)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	out := &corev1.PodSpec{}
	if err := json.Unmarshal(data, out); err != nil {
		t.Fatalf("the API types cannot decode %s: %v", data, err)
	}
	return out
}

func FuzzFromSpec(f *testing.F) {
	f.Add([]byte(`{"podTemplate":{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1e-5","x":1.5}}}]}},"service":null}`))
	f.Add([]byte(`{"podTemplate":{"spec":{"x":[null,{"a":null,"b":[1e300,-0.0,9223372036854775808]}],"overhead":{"a":"123456789012345678901234567890.5","b":"100e998"}}}}`))
	f.Add([]byte(`{"volumeClaimTemplates":[null,{"metadata":{"name":"a"},"status":{"a":null}}],"podTemplate":{"spec":{"priority":1.0e0,"volumes":[null,{"name":""}]}}}`))
	f.Add([]byte(`{"podTemplate":{"spec":{"volumes":[{"ephemeral":{"volumeClaimTemplate":{"metadata":{"creationTimestamp":"0000-01-01T00:00:00+23:59"}}}}]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var spec map[string]any
		if json.Unmarshal(data, &spec) != nil {
			return
		}
		b, err := FromSpec(spec)
		checkAgainstTypes(t, spec, err)
		if err != nil {
			return
		}
		again, err := Parse(b.JSON())
		if err != nil {
			t.Fatalf("Parse refuses %s: %v", b.JSON(), err)
		}
		if !again.Equal(b) || again.Hash() != b.Hash() {
			t.Errorf("not idempotent: %s became %s", b.JSON(), again.JSON())
		}
		if diffs := Compare(b, again, PathSet{}); len(diffs) > 0 {
			t.Errorf("%s differs from itself: %v", b.JSON(), diffs)
		}
		redacted, err := Parse(b.Redact().JSON())
		if err != nil {
			t.Fatalf("Parse refuses %s: %v", b.Redact().JSON(), err)
		}
		if diffs := Compare(redacted, b, PathSet{}); len(diffs) > 0 || redacted.Hash() != b.Hash() {
			t.Errorf("%s differs when redacted: %v", b.JSON(), diffs)
		}
		for _, d := range Compare(Blueprint{}, b, PathSet{}) {
			if _, err := ParsePaths(d.Path, d.Root); err != nil {
				t.Errorf("a path of %s: %v", b.JSON(), err)
			}
		}
	})
}

// checkAgainstTypes demands an error exactly when the API types cannot decode spec, less the bounds that are FromSpec's own.
func checkAgainstTypes(t *testing.T, spec map[string]any, err error) {
	t.Helper()
	if err != nil && (strings.Contains(err.Error(), "quantity of at most") || strings.Contains(err.Error(), "within the years")) {
		return
	}
	known := maps.Clone(spec)
	if podTemplate, ok := spec[podTemplateKey].(map[string]any); ok {
		known[podTemplateKey] = map[string]any{specKey: podTemplate[specKey]}
	}
	data, encodeErr := json.Marshal(known)
	if encodeErr != nil {
		t.Fatalf("encode: %v", encodeErr)
	}
	typesErr := json.Unmarshal(data, &blueprintForm{})
	// White space that JSON escapes is part of a quantity for the types, and trimmed here.
	if (typesErr == nil) != (err == nil) && (typesErr == nil || !strings.Contains(typesErr.Error(), "quantit")) {
		t.Errorf("FromSpec: %v; the API types: %v\n%s", err, typesErr, data)
	}
}
