package webhooks

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// fakeRevisions says by kind what it was asked for.
type fakeRevisions struct {
	enforcement string
	sendable    bool
	repaired    string
	boundTo     string
	repair      *platform.Repair
	refused     *freshness.Verdict
	question    platform.Question
	err         error
	// named: it knew the revision before it failed.
	named bool
}

func (f fakeRevisions) NewSandbox(context.Context, *unstructured.Unstructured) (platform.Stamp, error) {
	stamp, err := f.stamp("v1-sandbox")
	stamp.Repaired, stamp.Repair, stamp.BoundTo = f.repaired, f.repair, f.boundTo
	stamp.Refused, stamp.Question = f.refused, f.question
	return stamp, err
}

func (f fakeRevisions) PodRevision(context.Context, *unstructured.Unstructured) (platform.Stamp, error) {
	return f.stamp("v1-pod")
}

func (f fakeRevisions) stamp(hash string) (platform.Stamp, error) {
	if f.err != nil && !f.named {
		return platform.Stamp{}, f.err
	}
	return platform.Stamp{Hash: hash, Enforcement: f.enforcement, Sendable: f.sendable}, f.err
}

func TestStamp(t *testing.T) {
	const path = "/metadata/labels/freshbind.dev~1template-spec-hash"
	add := func(v string) []jsonpatch.JsonPatchOperation {
		return []jsonpatch.JsonPatchOperation{{Operation: "add", Path: path, Value: v}}
	}
	created := func(op string, value any) jsonpatch.JsonPatchOperation {
		return jsonpatch.JsonPatchOperation{Operation: op, Path: "/metadata/annotations/freshbind.dev~1created-by", Value: value}
	}
	noted := func(note string) jsonpatch.JsonPatchOperation {
		return jsonpatch.NewOperation("add", "/metadata/annotations/freshbind.dev~1repaired", note)
	}
	pod, cold := builders.MakePod(member), builders.MakeColdStart(claim, template).Obj()
	repair := &platform.Repair{From: "v1-old", To: "v1-sandbox", Fields: []platform.Field{
		{Path: []string{"spec", "podTemplate", "spec"}, Value: map[string]any{"a": "b"}}, {Path: []string{"spec", "service"}},
		{Path: []string{"metadata", "labels", "example.com/hash"}, Value: "x"},
	}}
	cases := map[string]struct {
		obj  *unstructured.Unstructured
		rev  fakeRevisions
		mode settings.Mode
		// birth: by one of the pool controllers.
		birth bool
		want  []jsonpatch.JsonPatchOperation
	}{
		"a member":                    {obj: member, mode: settings.Enforce, want: add("v1-sandbox")},
		"a pod":                       {obj: pod.Obj(), mode: settings.Enforce, want: add("v1-pod")},
		"a pod that says who made it": {obj: builders.PodFrom(pod.Obj()).Annotation(settings.CreatedByKey, "x").Obj(), mode: settings.Enforce, want: add("v1-pod")},
		"without labels":              {obj: builders.SandboxFrom(member).Unset("metadata", "labels").Obj(), mode: settings.Enforce, want: []jsonpatch.JsonPatchOperation{{Operation: "add", Path: "/metadata/labels", Value: map[string]any{settings.StampKey: "v1-sandbox"}}}},
		"forged":                      {obj: builders.SandboxFrom(member).Label(settings.StampKey, "v1-forged").Obj(), mode: settings.Enforce, want: add("v1-sandbox")},
		"stamped already":             {obj: builders.SandboxFrom(member).Label(settings.StampKey, "v1-sandbox").Obj(), mode: settings.Enforce},
		"audit":                       {obj: member, mode: settings.Audit},
		"tightened": {obj: member, mode: settings.Audit, rev: fakeRevisions{enforcement: "enforce"}, want: append(
			[]jsonpatch.JsonPatchOperation{{Operation: "add", Path: "/metadata/labels/freshbind.dev~1enforcement", Value: "enforce"}}, add("v1-sandbox")...)},
		"says what no pool asked for": {
			obj: builders.SandboxFrom(member).Label(settings.EnforcementKey, "enforce").Obj(), mode: settings.Enforce,
			want: append([]jsonpatch.JsonPatchOperation{{Operation: "remove", Path: "/metadata/labels/freshbind.dev~1enforcement"}}, add("v1-sandbox")...),
		},
		"born of a pool's controller": {obj: member, mode: settings.Enforce, birth: true, want: append(add("v1-sandbox"), created("add", settings.CreatedByPool))},
		"its birth forged": {
			obj: builders.SandboxFrom(member).Annotation(settings.CreatedByKey, settings.CreatedByPool).Obj(), mode: settings.Enforce,
			want: append(add("v1-sandbox"), created("remove", nil)),
		},
		"repaired": {
			obj: cold, mode: settings.Enforce, rev: fakeRevisions{repaired: "v1-old -> v1-sandbox", repair: repair},
			want: append(add("v1-sandbox"), noted("v1-old -> v1-sandbox"),
				jsonpatch.NewOperation("add", "/spec/podTemplate/spec", map[string]any{"a": "b"}), jsonpatch.NewOperation("remove", "/spec/service", nil),
				jsonpatch.NewOperation("add", "/metadata/labels/example.com~1hash", "x")),
		},
		"repaired already": {
			obj: builders.SandboxFrom(cold).Annotation(settings.RepairedKey, "v1-old -> v1-sandbox").Obj(), mode: settings.Enforce,
			rev: fakeRevisions{repaired: "v1-old -> v1-sandbox"}, want: add("v1-sandbox"),
		},
		"never repaired": {
			obj: builders.SandboxFrom(cold).Annotation(settings.RepairedKey, "v1-old -> v1-sandbox").Obj(), mode: settings.Enforce,
			want: append(add("v1-sandbox"), jsonpatch.NewOperation("remove", "/metadata/annotations/freshbind.dev~1repaired", nil)),
		},
		"for a claim": {
			obj: cold, mode: settings.Enforce, rev: fakeRevisions{boundTo: "u"},
			want: append(add("v1-sandbox"), jsonpatch.NewOperation("add", "/metadata/annotations/freshbind.dev~1bound-to", "u")),
		},
		"for a claim, audit": {obj: cold, mode: settings.Audit, rev: fakeRevisions{boundTo: "u"}},
		"says whose it is, and is not": {
			obj: builders.SandboxFrom(member).Annotation(settings.BoundToKey, "u").Obj(), mode: settings.Enforce,
			want: append(add("v1-sandbox"), jsonpatch.NewOperation("remove", "/metadata/annotations/freshbind.dev~1bound-to", nil)),
		},
		"to be repaired, audit":      {obj: cold, mode: settings.Audit, rev: fakeRevisions{repaired: "v1-old -> v1-sandbox", repair: repair}},
		"cannot be found":            {obj: member, mode: settings.Enforce, rev: fakeRevisions{err: errors.New("etcd is away")}},
		"named, and no repair found": {obj: cold, mode: settings.Enforce, rev: fakeRevisions{err: errors.New("out of time"), named: true}},
		"forged, not found": {
			obj: builders.SandboxFrom(member).Label(settings.StampKey, "v1-forged").Obj(), mode: settings.Enforce,
			rev: fakeRevisions{err: errors.New("etcd is away")}, want: []jsonpatch.JsonPatchOperation{{Operation: "remove", Path: path}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &Stamp{Revisions: tc.rev, Modes: modes(t, tc.mode, nil), Timeout: time.Minute, Birth: tc.birth}
			resp := s.Handle(t.Context(), request(t, admissionv1.Create, nil, tc.obj))
			if !resp.Allowed {
				t.Fatalf("denied: %v", resp.Result)
			}
			if diff := cmp.Diff(tc.want, resp.Patches); diff != "" {
				t.Errorf("patches (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestStampPatchIsEmptyTheSecondTime(t *testing.T) {
	cases := map[string]struct {
		labels map[string]string
		hash   string
		want   map[string]string
	}{
		"set":      {map[string]string{"a": "b"}, "v1-x", map[string]string{"a": "b", settings.StampKey: "v1-x"}},
		"replaced": {map[string]string{settings.StampKey: "v1-y"}, "v1-x", map[string]string{settings.StampKey: "v1-x"}},
		"removed":  {map[string]string{settings.StampKey: "v1-y"}, "", map[string]string{}},
		"nothing":  {nil, "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if first := stampPatch(tc.labels, tc.hash); len(first) > 1 {
				t.Errorf("stampPatch() = %v, want one operation at most", first)
			}
			if again := stampPatch(tc.want, tc.hash); len(again) > 0 {
				t.Errorf("stampPatch() of its own outcome = %v, want nothing", again)
			}
		})
	}
}

// Only the Pod of a member that nobody else sent anywhere goes to the second
// scheduler.
func TestStampSendsPodsToTheSecondScheduler(t *testing.T) {
	pod := func(scheduler string) *unstructured.Unstructured {
		b := builders.MakePod(member).Label(settings.StampKey, "v1-pod")
		if scheduler != "" {
			b.Set(scheduler, "spec", "schedulerName")
		}
		return b.Obj()
	}
	sent := []jsonpatch.JsonPatchOperation{{Operation: "add", Path: "/spec/schedulerName", Value: "second"}}
	cases := map[string]struct {
		obj    *unstructured.Unstructured
		rev    fakeRevisions
		mode   settings.Mode
		second string
		want   []jsonpatch.JsonPatchOperation
	}{
		"a member's":            {pod("default-scheduler"), fakeRevisions{sendable: true}, settings.Enforce, "second", sent},
		"named by nobody":       {pod(""), fakeRevisions{sendable: true}, settings.Enforce, "second", sent},
		"sent already":          {pod("second"), fakeRevisions{sendable: true}, settings.Enforce, "second", nil},
		"another's":             {pod("mine"), fakeRevisions{sendable: true}, settings.Enforce, "second", nil},
		"its template says who": {pod("default-scheduler"), fakeRevisions{}, settings.Enforce, "second", nil},
		"no second scheduler":   {pod("default-scheduler"), fakeRevisions{sendable: true}, settings.Enforce, "", nil},
		"audit":                 {pod("default-scheduler"), fakeRevisions{sendable: true}, settings.Audit, "second", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &Stamp{Revisions: tc.rev, Modes: modes(t, tc.mode, nil), Timeout: time.Minute, SchedulerName: tc.second}
			resp := s.Handle(t.Context(), request(t, admissionv1.Create, nil, tc.obj))
			if diff := cmp.Diff(tc.want, resp.Patches); diff != "" {
				t.Errorf("patches (-want,+got):\n%s", diff)
			}
		})
	}
}
