package revision

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseReadsWhatJSONWrote(t *testing.T) {
	for name, b := range map[string]Blueprint{
		"zero value": {},
		"empty":      mustSpec(t, "{}"),
		"full":       mustSpec(t, threeContainers),
		"redacted":   mustSpec(t, threeContainers).Redact(),
		"pod of it":  mustSpec(t, threeContainers).PodOnly(),
		"unknown":    mustSpec(t, "{podTemplate: {spec: {a: [null, {b: [1.5, true]}]}}}"),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(b.JSON())
			if err != nil {
				t.Fatalf("Parse: %v", err)
			}
			if diff := cmp.Diff(string(b.JSON()), string(got.JSON())); diff != "" {
				t.Errorf("JSON (-want,+got):\n%s", diff)
			}
			if got.Hash() != b.Hash() || got.PodOnly().Hash() != b.PodOnly().Hash() {
				t.Errorf("hashes: got %s and %s, want %s and %s", got.Hash(), got.PodOnly().Hash(), b.Hash(), b.PodOnly().Hash())
			}
			if !b.Equal(got) || got.IsZero() != b.IsZero() {
				t.Errorf("Equal: %v, IsZero: got %v, want %v", b.Equal(got), got.IsZero(), b.IsZero())
			}
		})
	}
}

func TestParseMakesCanonical(t *testing.T) {
	got, err := Parse([]byte(`{"service": true, "podTemplate": {"spec": {"overhead": {"cpu": "1000m"}, "hostname": "", "volumes": null}}}`))
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	want := `{"podTemplate":{"spec":{"overhead":{"cpu":"1"}}},"service":true}`
	if diff := cmp.Diff(want, string(got.JSON())); diff != "" {
		t.Errorf("JSON (-want,+got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	cases := map[string]struct {
		in   string
		want string
	}{
		"no JSON":            {`{"service":true}}`, `parse blueprint: invalid character '}' after top-level value`},
		"null":               {`null`, `parse blueprint: must be a JSON object, is null`},
		"a field more":       {`{"replicas":1}`, `parse blueprint: replicas: is unknown: accepted are podTemplate, volumeClaimTemplates and service`},
		"pod metadata":       {`{"podTemplate":{"metadata":{}}}`, `parse blueprint: podTemplate.metadata: is unknown: accepted is spec`},
		"a wrong type":       {`{"podTemplate":{"spec":{"containers":1}}}`, `parse blueprint: podTemplate.spec.containers: must be a list, is an integer`},
		"no original hash":   {`{"redacted":{}}`, `parse blueprint: redacted: must have a hash and a podHash that begin with v1-`},
		"another scheme":     {`{"redacted":{"hash":"v2-0123456789abcdef","podHash":"v2-0123456789abcdef"}}`, `parse blueprint: redacted: must have a hash and a podHash that begin with v1-`},
		"half redacted":      {`{"redacted":{"hash":"v1-0123456789abcdef","podHash":"v1-0123456789abcdef"},"podTemplate":{"spec":{"hostname":"a"}}}`, `parse blueprint: podTemplate.spec.hostname: must be a digest (sha256: and 16 hex digits), because the blueprint is redacted; is a string`},
		"unknown unredacted": {`{"redacted":{"hash":"v1-0123456789abcdef","podHash":"v1-0123456789abcdef"},"podTemplate":{"spec":{"x":[5]}}}`, `parse blueprint: podTemplate.spec.x[0]: must be a digest (sha256: and 16 hex digits), because the blueprint is redacted; is an integer`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, err := Parse([]byte(tc.in))
			if err == nil {
				t.Fatalf("no error, but %s", b.JSON())
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestPodOnly(t *testing.T) {
	spec := fromYAML(t, threeContainers)
	b, err := FromSpec(spec)
	if err != nil {
		t.Fatalf("FromSpec: %v", err)
	}
	podSpec, _ := spec["podTemplate"].(map[string]any)["spec"].(map[string]any)
	pod, err := FromPodSpec(podSpec)
	if err != nil {
		t.Fatalf("FromPodSpec: %v", err)
	}
	if diff := cmp.Diff(string(pod.JSON()), string(b.PodOnly().JSON())); diff != "" {
		t.Errorf("JSON of the Pod's blueprint (-want,+got):\n%s", diff)
	}
	if b.PodOnly().Hash() == b.Hash() {
		t.Errorf("the hash of the pod alone must differ from %s", b.Hash())
	}
	if got := mustSpec(t, "{service: true}").PodOnly(); !got.IsZero() {
		t.Errorf("a blueprint without a pod has the pod %s", got.JSON())
	}
}

func TestBlueprintsDoNotChange(t *testing.T) {
	spec := fromYAML(t, threeContainers)
	b, err := FromSpec(spec)
	if err != nil {
		t.Fatalf("FromSpec: %v", err)
	}
	before := string(b.JSON())
	spec["service"] = false
	spec["podTemplate"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["image"] = "other"
	clear(b.JSON())
	if diff := cmp.Diff(before, string(b.JSON())); diff != "" {
		t.Errorf("JSON after its source and a copy changed (-want,+got):\n%s", diff)
	}
}

func TestFormattingHidesTheContent(t *testing.T) {
	b := mustSpec(t, threeContainers)
	for _, format := range []string{"%v", "%+v", "%s"} {
		if got := fmt.Sprintf(format, b); got != b.Hash() {
			t.Errorf("%s: got %s, want %s", format, got, b.Hash())
		}
	}
}

func BenchmarkFromSpec(b *testing.B) {
	spec := fromYAML(b, threeContainers)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := FromSpec(spec); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEqualWithInjections(b *testing.B) {
	want := mustSpec(b, threeContainers)
	spec := fromYAML(b, threeContainers)
	podSpec := spec["podTemplate"].(map[string]any)["spec"].(map[string]any)
	podSpec["enableServiceLinks"] = true
	podSpec["terminationGracePeriodSeconds"] = int64(30)
	got, err := FromSpec(spec)
	if err != nil {
		b.Fatal(err)
	}
	allowed := mustPaths(b, "podTemplate.spec.volumes[name=kube-api-access-*]", "podTemplate.spec.terminationGracePeriodSeconds=30", "podTemplate.spec.enableServiceLinks=true")
	b.ReportAllocs()
	for b.Loop() {
		if !Equal(want, got, allowed) {
			b.Fatal("not equal")
		}
	}
}

func TestWithPodOf(t *testing.T) {
	const claims = "volumeClaimTemplates: [{metadata: {name: data}}]"
	pod := "podTemplate: {spec: {hostname: h}}"
	for name, tc := range map[string]struct{ of, with, want string }{
		"of one without":       {"{" + claims + "}", pod, claims + "\n" + pod},
		"of one with another":  {claims + "\npodTemplate: {spec: {hostname: other}}", pod, claims + "\n" + pod},
		"none":                 {claims + "\n" + pod, "{service: true}", claims},
		"nothing but a pod":    {"{}", claims + "\n" + pod, pod},
		"of an empty one, too": {pod, "{}", "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			of := mustSpec(t, tc.of)
			before := string(of.JSON())
			got, want := of.WithPodOf(mustSpec(t, tc.with)), mustSpec(t, tc.want)
			if diff := cmp.Diff(string(want.JSON()), string(got.JSON())); diff != "" || !got.Equal(want) || got.Hash() != want.Hash() {
				t.Errorf("JSON (-want,+got):\n%s", diff)
			}
			if after := string(of.JSON()); after != before {
				t.Errorf("it has changed from %s to %s", before, after)
			}
		})
	}
	if got := (Blueprint{}).WithPodOf(Blueprint{}); !got.IsZero() {
		t.Errorf("of nothing comes %s", got.JSON())
	}
}
