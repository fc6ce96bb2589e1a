package advice

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/internal/settings"
)

func annotated(pairs ...string) Inputs {
	in := Inputs{Annotations: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		in.Annotations[settings.Prefix+pairs[i]] = pairs[i+1]
	}
	return in
}

func TestRefusals(t *testing.T) {
	at := func(key string) string { return "metadata.annotations[freshbind.dev/" + key + "]: " }
	recreated := func(in Inputs) Inputs { in.Strategy = "Recreate"; return in }
	pod := func(labels, annotations string) Inputs {
		return Inputs{PodLabels: map[string]string{labels: "x"}, PodAnnotations: map[string]string{annotations: "y"}}
	}
	const podHint = "Forbidden: keys of freshbind.dev/ are Freshbind's own on sandboxes and pods: remove it, or set it in metadata.annotations where it is an input"
	const contradiction = `Invalid value: "RollingUpdate": spec.updateStrategy.type is Recreate, so the platform itself deletes all stale members at once: set that to OnReplenish first`
	cases := map[string]struct {
		before, after Inputs
		want          []string
	}{
		"nothing": {},
		"all inputs, all right": {after: annotated("enforcement", "enforce", "rollout-strategy", "RollingUpdate", "max-unavailable", "25%",
			"min-ready-seconds", "0", "progress-deadline", "1h30m", "paused", "true", "restarted-at", "2026-01-31T23:59:00+01:00",
			"injected-paths", "podTemplate.spec.containers[*].env, service", "claims", "by-name")},
		"all of them wrong": {
			after: annotated("enforcement", "Enforce", "rollout-strategy", "Rolling", "max-unavailable", "a quarter", "min-ready-seconds", "10s",
				"progress-deadline", "600", "paused", "yes", "restarted-at", "yesterday", "injected-paths", "spec.containers", "claims", "all"),
			want: []string{
				at("claims") + `Unsupported value: "all": supported values: "by-name"`,
				at("enforcement") + `Unsupported value: "Enforce": supported values: "audit", "enforce"`,
				at("injected-paths") + `Invalid value: "spec.containers": path "spec.containers": accepted are paths that begin with podTemplate.spec.<field>, volumeClaimTemplates or service; did you mean "podTemplate.spec.containers"?`,
				at("max-unavailable") + `Invalid value: "a quarter": must be a number of members, 1 or more, or a percentage from 1% to 100%`,
				at("min-ready-seconds") + `Invalid value: "10s": must be a whole number of seconds, 0 or more`,
				at("paused") + `Unsupported value: "yes": supported values: "true", "false"`,
				at("progress-deadline") + `Invalid value: "600": must be a duration above 0, such as 90s, 10m or 1h30m`,
				at("restarted-at") + `Invalid value: "yesterday": must be a time as in RFC 3339, such as 2026-01-31T23:59:00Z`,
				at("rollout-strategy") + `Unsupported value: "Rolling": supported values: "Recreate", "RollingUpdate", "OnReplenish"`,
			},
		},
		"empty is not set":              {after: annotated("enforcement", "", "max-unavailable", "", "paused", "")},
		"a number":                      {after: annotated("max-unavailable", "3")},
		"nothing may be unavailable":    {after: annotated("max-unavailable", "0"), want: []string{at("max-unavailable") + `Invalid value: "0": must be a number of members, 1 or more, or a percentage from 1% to 100%`}},
		"more than all":                 {after: annotated("max-unavailable", "101%"), want: []string{at("max-unavailable") + `Invalid value: "101%": must be a number of members, 1 or more, or a percentage from 1% to 100%`}},
		"negative seconds":              {after: annotated("min-ready-seconds", "-1"), want: []string{at("min-ready-seconds") + `Invalid value: "-1": must be a whole number of seconds, 0 or more`}},
		"no time at all":                {after: annotated("progress-deadline", "0s"), want: []string{at("progress-deadline") + `Invalid value: "0s": must be a duration above 0, such as 90s, 10m or 1h30m`}},
		"a bad value that was there":    {before: annotated("paused", "yes"), after: annotated("paused", "yes", "claims", "by-name")},
		"another bad value":             {before: annotated("paused", "yes"), after: annotated("paused", "oui"), want: []string{at("paused") + `Unsupported value: "oui": supported values: "true", "false"`}},
		"a bad value mended":            {before: annotated("paused", "yes"), after: annotated("paused", "true")},
		"a bad value removed":           {before: annotated("paused", "yes")},
		"somebody else's key":           {after: Inputs{Annotations: map[string]string{"example.com/paused": "yes", "freshbind.device/paused": "yes"}}},
		"contradicts the spec":          {after: recreated(annotated("rollout-strategy", "RollingUpdate")), want: []string{at("rollout-strategy") + contradiction}},
		"the spec contradicts later":    {before: annotated("rollout-strategy", "RollingUpdate"), after: recreated(annotated("rollout-strategy", "RollingUpdate")), want: []string{at("rollout-strategy") + contradiction}},
		"contradicted before":           {before: recreated(annotated("rollout-strategy", "RollingUpdate")), after: recreated(annotated("rollout-strategy", "RollingUpdate", "paused", "true"))},
		"both Recreate":                 {after: recreated(annotated("rollout-strategy", "Recreate"))},
		"stricter by the platform":      {after: recreated(annotated("rollout-strategy", "OnReplenish"))},
		"namespace":                     {after: Inputs{Labels: map[string]string{settings.EnforcementKey: "enforce"}}},
		"namespace, wrong":              {after: Inputs{Labels: map[string]string{settings.EnforcementKey: "on"}}, want: []string{`metadata.labels[freshbind.dev/enforcement]: Unsupported value: "on": supported values: "audit", "enforce"`}},
		"namespace, wrong for long":     {before: Inputs{Labels: map[string]string{settings.EnforcementKey: "on"}}, after: Inputs{Labels: map[string]string{settings.EnforcementKey: "on", "a": "b"}}},
		"keys of ours on pods":          {after: pod("freshbind.dev/template-spec-hash", "freshbind.dev/paused"), want: []string{"spec.podTemplate.metadata.labels[freshbind.dev/template-spec-hash]: " + podHint, "spec.podTemplate.metadata.annotations[freshbind.dev/paused]: " + podHint}},
		"keys of ours on pods for long": {before: pod("freshbind.dev/a", "b"), after: pod("freshbind.dev/a", "c")},
		"keys of others on pods":        {after: pod("app", "example.com/freshbind.dev")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range Refusals(tc.before, tc.after) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Refusals() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestIgnored(t *testing.T) {
	const known = " has no effect: it is not one of claims, enforcement, injected-paths, max-unavailable, min-ready-seconds, paused, progress-deadline, repair, restarted-at, rollout-strategy"
	cases := map[string]struct {
		before, after Inputs
		want          []string
	}{
		"inputs":            {after: annotated("paused", "true")},
		"outputs":           {after: annotated("rollout-state", "Complete", "admit", "any")},
		"misspelt":          {after: annotated("rollout-stratgy", "Recreate"), want: []string{"metadata.annotations[freshbind.dev/rollout-stratgy]" + known}},
		"misspelt for long": {before: annotated("rollout-stratgy", "Recreate"), after: annotated("rollout-stratgy", "Recreate")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Ignored(tc.before, tc.after)); diff != "" {
				t.Errorf("Ignored() (-want,+got):\n%s", diff)
			}
		})
	}
}

// FuzzRefusals: whatever is stored can be left alone, and what is refused names
// its field.
func FuzzRefusals(f *testing.F) {
	for _, key := range settings.Inputs() {
		f.Add(strings.TrimPrefix(key, settings.Prefix), "10%", "Recreate")
	}
	f.Fuzz(func(t *testing.T, key, value, strategy string) {
		in := annotated(key, value)
		in.Strategy = strategy
		in.Labels, in.PodLabels, in.PodAnnotations = in.Annotations, in.Annotations, in.Annotations
		for _, err := range Refusals(Inputs{}, in) {
			if !strings.Contains(err.Field, key) && !strings.Contains(err.Field, "rollout-strategy") {
				t.Errorf("%v does not name %q", err, key)
			}
		}
		if errs := Refusals(in, in); len(errs) > 0 {
			t.Errorf("an object is locked: %v", errs)
		}
	})
}

// A list that is too long is refused where it is written, with what to do, and
// without repeating all of it.
func TestALongListOfPathsIsRefused(t *testing.T) {
	list := strings.Repeat("podTemplate.spec.nodeName,", 7000)
	errs := Refusals(Inputs{}, Inputs{Annotations: map[string]string{settings.InjectedPathsKey: list}})
	if len(errs) != 1 {
		t.Fatalf("Refusals() = %v, want one", errs)
	}
	text := errs[0].Error()
	for _, want := range []string{"metadata.annotations[freshbind.dev/injected-paths]", "at most 8192", "write [*] for every element"} {
		if !strings.Contains(text, want) {
			t.Errorf("Refusals() = %s, want %q in it", text, want)
		}
	}
	if len(text) > 2000 {
		t.Errorf("the refusal has %d bytes", len(text))
	}
	if errs := Refusals(Inputs{Annotations: map[string]string{settings.InjectedPathsKey: list}}, Inputs{Annotations: map[string]string{settings.InjectedPathsKey: list}}); len(errs) != 0 {
		t.Errorf("what was there before is refused: %v", errs)
	}
}
