package checker

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/randfill"

	"github.com/freshbind/freshbind/test/builders"
)

func randomPodSpec(seed int64) map[string]any {
	var spec corev1.PodSpec
	randfill.NewWithSeed(seed).NilChance(0.6).NumElements(1, 2).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(1000), resource.DecimalSI)
		},
		func(v *intstr.IntOrString, c randfill.Continue) { *v = intstr.FromInt32(c.Int31()) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString("{}") },
		func(m *metav1.Time, c randfill.Continue) { *m = metav1.Unix(c.Int63n(1e9), 0) },
		func(s *string, c randfill.Continue) { *s = string(rune('a' + c.Intn(26))) },
	).Fill(&spec)
	raw, err := json.Marshal(spec)
	if err != nil {
		panic(err)
	}
	var out map[string]any
	if err := utiljson.Unmarshal(raw, &out); err != nil {
		panic(err)
	}
	return out
}

// mutate changes one leaf, or removes or empties one field, somewhere in the tree.
func mutate(r *rand.Rand, value any) any {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			return nil
		}
		keys := sortedKeys(v)
		key := keys[r.IntN(len(keys))]
		switch r.IntN(8) {
		case 0:
			delete(v, key)
		case 1:
			if _, ok := v[key].([]any); ok {
				v[key] = []any{}
			}
		default:
			v[key] = mutate(r, v[key])
		}
		return v
	case []any:
		if len(v) == 0 {
			return v
		}
		i := r.IntN(len(v))
		if r.IntN(8) == 0 {
			return append(v[:i:i], v[i+1:]...)
		}
		v[i] = mutate(r, v[i])
		return v
	case string:
		return v + "0"
	case bool:
		return !v
	case int64:
		return v + 1
	}
	return value
}

func templateOf(spec map[string]any) *unstructured.Unstructured {
	return builders.MakeTemplate(ns, "t").Set(spec, "spec", "podTemplate", "spec").Obj()
}

func checkEquality(t *testing.T, seed uint64) {
	t.Helper()
	a := randomPodSpec(int64(seed))
	b := (&unstructured.Unstructured{Object: a}).DeepCopy().Object
	r := rand.New(rand.NewPCG(seed, 1))
	for range r.IntN(3) {
		mutate(r, b)
	}
	left, errA := decodeBlueprint(templateOf(a))
	right, errB := decodeBlueprint(templateOf(b))
	var typedA, typedB corev1.PodSpec
	wantA, wantB := decode(any(a), &typedA, "a"), decode(any(b), &typedB, "b")
	if (errA == nil) != (wantA == nil) || (errB == nil) != (wantB == nil) {
		t.Fatalf("seed %d: the judge decodes (%v, %v), the types (%v, %v)", seed, errA, errB, wantA, wantB)
	}
	if errA != nil || errB != nil {
		return
	}
	want := equality.Semantic.DeepEqual(typedA, typedB)
	if got := left.equal(right); got != want {
		t.Fatalf("seed %d: the judge says %v, equality of the API types says %v:\n%s", seed, got, want, cmp.Diff(a, b))
	}
	x, errA := newContent(left)
	y, errB := newContent(right)
	if errA != nil || errB != nil {
		t.Fatalf("seed %d: digest: %v, %v", seed, errA, errB)
	}
	if want != (x.sum == y.sum) {
		t.Fatalf("seed %d: equal %v, but digests %s and %s, difference %q", seed, want, x.digest, y.digest, difference(left, right))
	}
	if diff := difference(left, right); (diff == "") != want {
		t.Fatalf("seed %d: equal %v, but the difference in words is %q", seed, want, diff)
	}
}

func TestEqualityIsThatOfTheAPITypes(t *testing.T) {
	for seed := range uint64(300) {
		checkEquality(t, seed)
	}
}

func FuzzEquality(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkEquality(t, seed) })
}

func TestEqualityByHand(t *testing.T) {
	base := func() *builders.Template { return builders.MakeTemplate(ns, "t") }
	limits := func(cpu string) []any {
		return []any{map[string]any{"name": "c", "image": "i", "resources": map[string]any{"limits": map[string]any{"cpu": cpu}}}}
	}
	affinity := func(term map[string]any) map[string]any {
		term["topologyKey"] = "zone"
		return map[string]any{"podAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": []any{term}}}
	}
	cases := map[string]struct {
		a, b *builders.Template
		want bool
	}{
		"quantities":                  {a: base().PodSpec(limits("1"), "containers"), b: base().PodSpec(limits("1000m"), "containers"), want: true},
		"other quantities":            {a: base().PodSpec(limits("1"), "containers"), b: base().PodSpec(limits("1001m"), "containers")},
		"an env value is no quantity": {a: base().Env("A", "1"), b: base().Env("A", "1000m")},
		"absent and null":             {a: base(), b: base().PodSpec(nil, "nodeSelector"), want: true},
		"absent and empty map":        {a: base(), b: base().PodSpec(map[string]any{}, "nodeSelector"), want: true},
		"absent and empty list":       {a: base(), b: base().PodSpec([]any{}, "tolerations"), want: true},
		"absent and empty selector": {a: base().PodSpec(affinity(map[string]any{}), "affinity"),
			b: base().PodSpec(affinity(map[string]any{"namespaceSelector": map[string]any{}}), "affinity")},
		"absent and false":         {a: base(), b: base().PodSpec(false, "hostNetwork"), want: true},
		"absent and false pointer": {a: base(), b: base().PodSpec(false, "shareProcessNamespace")},
		"order of containers":      {a: base().Container("d", "x"), b: base().PodSpec([]any{map[string]any{"name": "d", "image": "x"}, map[string]any{"name": "c", "image": "sandbox:v1"}}, "containers")},
		"unknown leaf":             {a: base(), b: base().PodSpec("x", "new")},
		"same unknown leaf":        {a: base().PodSpec("x", "new"), b: base().PodSpec("x", "new"), want: true},
		"other unknown leaf":       {a: base().PodSpec("x", "new"), b: base().PodSpec("y", "new")},
		"unknown null":             {a: base(), b: base().PodSpec(nil, "new"), want: true},
		"volume size":              {a: base().VolumeClaim("v", "1Gi"), b: base().VolumeClaim("v", "1024Mi"), want: true},
		"volume name":              {a: base().VolumeClaim("v", "1Gi"), b: base().VolumeClaim("w", "1Gi")},
		"order of volumes":         {a: base().VolumeClaim("v", "1Gi").VolumeClaim("w", "1Gi"), b: base().VolumeClaim("w", "1Gi").VolumeClaim("v", "1Gi")},
		"service unset and false":  {a: base(), b: base().Service(false)},
		"pod metadata is left out": {a: base(), b: base().Set("b", "spec", "podTemplate", "metadata", "labels", "a"), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, errA := decodeBlueprint(tc.a.Obj())
			b, errB := decodeBlueprint(tc.b.Obj())
			if errA != nil || errB != nil {
				t.Fatalf("decode: %v, %v", errA, errB)
			}
			if got := a.equal(b); got != tc.want {
				t.Errorf("equal: got %v, want %v: %s", got, tc.want, difference(a, b))
			}
		})
	}
}

func TestVolumesInEveryDetail(t *testing.T) {
	claim := func(labels, spec map[string]any) *unstructured.Unstructured {
		return builders.MakeTemplate(ns, "t").Set([]any{map[string]any{"metadata": map[string]any{"name": "v", "labels": labels},
			"spec": spec}}, "spec", "volumeClaimTemplates").Obj()
	}
	base, err := decodeBlueprint(claim(map[string]any{"a": "b"}, map[string]any{}))
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]*unstructured.Unstructured{
		"labels":           claim(map[string]any{"a": "c"}, map[string]any{}),
		"an unknown field": claim(map[string]any{"a": "b"}, map[string]any{"fieldOfTomorrow": true}),
	} {
		b, err := decodeBlueprint(other)
		if err != nil || base.equal(b) {
			t.Errorf("%s: want another content, got an equal one (%v)", name, err)
		}
	}
}

func TestUnknownLeaves(t *testing.T) {
	raw := map[string]any{
		"nodeSelector": map[string]any{"any": "key"},
		"future":       map[string]any{"a": int64(1)},
		"nothing":      nil,
		"containers": []any{map[string]any{"name": "c", "resources": map[string]any{"limits": map[string]any{"cpu": "1"}, "later": true},
			"volumeMounts": []any{map[string]any{"name": "v", "soon": "x"}}}},
		"volumes": []any{map[string]any{"name": "v", "emptyDir": map[string]any{"unheard": int64(2)}}},
	}
	want := map[string]any{
		"future":                             map[string]any{"a": int64(1)},
		"containers[0].resources.later":      true,
		"containers[0].volumeMounts[0].soon": "x",
		"volumes[0].emptyDir.unheard":        int64(2),
	}
	if diff := cmp.Diff(want, unknownLeaves(raw, reflect.TypeFor[corev1.PodSpec]())); diff != "" {
		t.Errorf("unknown leaves (-want,+got):\n%s", diff)
	}
}

func withHeader(value string) []any {
	header := map[string]any{"name": "Authorization", "value": value}
	probe := map[string]any{"httpGet": map[string]any{"port": int64(80), "httpHeaders": []any{header}}}
	return []any{map[string]any{"name": "c", "image": "i", "livenessProbe": probe}}
}

// A canary at every leaf with a string: of what may hold a secret, only the path is printed.
func TestValuesStayOutOfReports(t *testing.T) {
	const canary = "hunter2"
	spec := func(v string) *builders.Template {
		text := func(key string) map[string]any { return map[string]any{key: v} }
		return builders.MakeTemplate(ns, "t").PodSpec([]any{map[string]any{
			"name": "c", "image": "i", "args": []any{v}, "command": []any{v}, "workingDir": v,
			"env": []any{map[string]any{"name": "A", "value": v}}, "lifecycle": map[string]any{"preStop": map[string]any{"exec": map[string]any{"command": []any{v}}}},
			"startupProbe": map[string]any{"httpGet": map[string]any{"path": v, "port": int64(1), "httpHeaders": []any{text("value")}}},
			"later":        v,
		}}, "containers").PodSpec([]any{map[string]any{"name": "v", "csi": map[string]any{"driver": "d", "volumeAttributes": text("k")}}}, "volumes").
			PodSpec([]any{map[string]any{"ip": "1.1.1.1", "hostnames": []any{v}}}, "hostAliases").PodSpec(text("k"), "nodeSelector").PodSpec(v, "hostname")
	}
	a, errA := decodeBlueprint(spec(canary).Obj())
	b, errB := decodeBlueprint(spec("other").Obj())
	if errA != nil || errB != nil {
		t.Fatalf("decode: %v, %v", errA, errB)
	}
	found, err := a.leaves()
	if err != nil {
		t.Fatal(err)
	}
	expected, err := b.leaves()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for path, value := range found {
		if value == canary {
			seen++
		}
		for _, line := range []string{leafDifference(path, value, expected[path]), leafDifference(path, value, nil), leafDifference(path, nil, value)} {
			if strings.Contains(line, canary) {
				t.Errorf("a report tells %q", line)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d leaves have the canary: %v", seen, found)
	}
}

func TestDifferenceInWords(t *testing.T) {
	base := func() *builders.Template { return builders.MakeTemplate(ns, "t") }
	cases := map[string]struct {
		a, b *builders.Template
		want string
	}{
		"image":         {a: base(), b: base().Image("sandbox:v2"), want: "containers[0].image sandbox:v1 -> sandbox:v2"},
		"removed field": {a: base().RuntimeClass("gvisor"), b: base(), want: "runtimeClassName gvisor -> <absent>"},
		"added service": {a: base(), b: base().Service(true), want: "service <absent> -> true"},
		"volume size":   {a: base().VolumeClaim("v", "1Gi"), b: base().VolumeClaim("v", "2Gi"), want: "volumeClaimTemplates[0].spec.resources.requests.storage 1Gi -> 2Gi"},
		"unknown leaf":  {a: base(), b: base().PodSpec(map[string]any{"a": "b"}, "new"), want: "new.a is missing"},
		"many": {a: base(), b: base().PodSpec("h", "hostname").PodSpec("s", "subdomain").PodSpec("n", "nodeName").PodSpec("x", "schedulerName"),
			want: "hostname is missing, nodeName is missing, schedulerName is missing, and 1 more"},
		"a value with spaces": {a: base(), b: base().RuntimeClass("a b"), want: `runtimeClassName <absent> -> "a b"`},
		"a removed value":     {a: base().PodSpec("h", "hostname"), b: base(), want: "hostname is there and not expected"},
		"a header": {a: base().PodSpec(withHeader("Bearer x"), "containers"), b: base().PodSpec(withHeader("Bearer y"), "containers"),
			want: "containers[0].livenessProbe.httpGet.httpHeaders[0].value differs (value not shown)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, errA := decodeBlueprint(tc.a.Obj())
			b, errB := decodeBlueprint(tc.b.Obj())
			if errA != nil || errB != nil {
				t.Fatalf("decode: %v, %v", errA, errB)
			}
			if diff := cmp.Diff(tc.want, difference(a, b)); diff != "" {
				t.Errorf("difference (-want,+got):\n%s", diff)
			}
		})
	}
}
