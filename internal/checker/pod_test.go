package checker

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/test/builders"
)

func TestPodDifference(t *testing.T) {
	base := func() *builders.Template { return builders.MakeTemplate(ns, "python") }
	twoMounts := func(a, b string) *builders.Template {
		mounts := []any{map[string]any{"name": "data", "mountPath": a}, map[string]any{"name": "data", "mountPath": b}}
		return base().PodSpec([]any{map[string]any{"name": "c", "image": "i", "volumeMounts": mounts}}, "containers").
			PodSpec([]any{map[string]any{"name": "data", "emptyDir": map[string]any{}}}, "volumes")
	}
	cases := map[string]struct {
		runs, asked *builders.Template
		pod         func(p *builders.Pod)
		want        string
	}{
		"as rendered, with all that API server and scheduler add": {runs: base(), asked: base()},
		"another image": {runs: base(), asked: base().Image("sandbox:v2"), want: "containers[0].image sandbox:v1 -> sandbox:v2"},
		"a removed runtime class": {runs: base().RuntimeClass("gvisor"), asked: base(),
			want: "runtimeClassName is in the Pod and not in the template"},
		"an added runtime class": {runs: base(), asked: base().RuntimeClass("gvisor"), want: "runtimeClassName <absent> -> gvisor"},
		"removed env, and no value shown": {runs: base().Env("A", "secret"), asked: base(),
			want: "containers[0].env is in the Pod and not in the template"},
		"one of two env removed": {runs: base().Env("A", "1", "B", "2"), asked: base().Env("A", "1"),
			want: "containers[0].env B is in the Pod and not in the template"},
		"another env value, not shown": {runs: base().Env("A", "1"), asked: base().Env("A", "2"),
			want: "containers[0].env[0].value differs (value not shown)"},
		"a removed container": {runs: base().Container("d", "x"), asked: base(),
			want: "containers[1] (d) is in the Pod and not in the template"},
		"an added container": {runs: base(), asked: base().Container("d", "x"), want: "containers[1] is not in the Pod"},
		"an added toleration among those of the API server": {runs: base(),
			asked: base().PodSpec([]any{map[string]any{"key": "a", "operator": "Exists"}}, "tolerations"), want: "tolerations[0] is not in the Pod"},
		"a kept toleration": {runs: base().PodSpec([]any{map[string]any{"key": "a"}}, "tolerations"),
			asked: base().PodSpec([]any{map[string]any{"key": "a"}}, "tolerations"),
			pod: func(p *builders.Pod) {
				p.Set([]any{map[string]any{"key": "other"}, map[string]any{"key": "a"}}, "spec", "tolerations")
			}},
		"other arguments": {runs: base().PodSpec([]any{map[string]any{"name": "c", "image": "i", "args": []any{"a", "b"}}}, "containers"),
			asked: base().PodSpec([]any{map[string]any{"name": "c", "image": "i", "args": []any{"a"}}}, "containers"),
			want:  "containers[0].args differs (value not shown)"},
		"one volume in two places": {runs: twoMounts("/a", "/b"), asked: twoMounts("/a", "/b")},
		"one volume in another place": {runs: twoMounts("/a", "/c"), asked: twoMounts("/a", "/b"),
			want: "containers[0].volumeMounts[1] is not in the Pod"},
		"a variable that is set twice": {runs: base().Env("A", "1", "A", "2"), asked: base().Env("A", "1", "A", "2")},
		"a variable that is set twice, in another order": {runs: base().Env("A", "2", "A", "1"), asked: base().Env("A", "1", "A", "2"),
			want: "containers[0].env[0].value differs (value not shown), containers[0].env[1].value differs (value not shown)"},
		"a variable that was set twice": {runs: base().Env("A", "1", "A", "2"), asked: base().Env("A", "1"),
			want: "containers[0].env A is in the Pod and not in the template"},
		"a variable that is set once more": {runs: base().Env("A", "1"), asked: base().Env("A", "1", "A", "2"),
			want: "containers[0].env[1] is not in the Pod"},
		"volumes of volumeClaimTemplates": {runs: base().VolumeClaim("data", "1Gi"), asked: base().VolumeClaim("data", "1Gi")},
		"a volumeClaimTemplate replaces the volume of its name": {
			runs: base().VolumeClaim("data", "1Gi").PodSpec([]any{map[string]any{"name": "data", "emptyDir": map[string]any{}}}, "volumes"),
			asked: base().VolumeClaim("data", "1Gi").PodSpec([]any{map[string]any{"name": "data", "emptyDir": map[string]any{}}},
				"volumes")},
		"a missing volumeClaimTemplate": {runs: base(), asked: base().VolumeClaim("data", "1Gi"), want: "volumes[0] is not in the Pod"},
	}
	pool := builders.MakePool(ns, "python").Obj()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := NewHistory(Options{})
			pod := builders.MakePod(builders.MakeMember(pool, tc.runs.Obj()).Name("m1").Obj()).Stored("node")
			if tc.pod != nil {
				tc.pod(pod)
			}
			state, err := podOf(pod.Obj())
			if err != nil {
				t.Fatal(err)
			}
			asked := h.templateOf(tc.asked.Obj())
			if asked.err != nil {
				t.Fatal(asked.err)
			}
			got, err := podDifference(state, "m1", asked.member, injected{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("difference (-want,+got):\n%s", diff)
			}
		})
	}
}

// Volumes that are claimed have the sandbox's name, so that two members of one template have two Pods.
func TestPodsOfOneTemplateWithVolumes(t *testing.T) {
	h := NewHistory(Options{})
	template := builders.MakeTemplate(ns, "python").VolumeClaim("data", "1Gi").Obj()
	asked := h.templateOf(template)
	for _, member := range []string{"m1", "m2", "m1"} {
		pod := builders.MakePod(builders.MakeMember(builders.MakePool(ns, "python").Obj(), template).Name(member).Obj()).Stored("node")
		state, err := podOf(pod.Obj())
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range []string{"m1", "m2"} {
			got, err := podDifference(state, of, asked.member, injected{})
			if err != nil || (got == "") != (of == member) {
				t.Errorf("the Pod of %s differs from that of %s by %q, error %v", member, of, got, err)
			}
		}
	}
}

func TestPodThatCannotBeDecoded(t *testing.T) {
	h := NewHistory(Options{})
	if _, err := podDifference(podState{spec: `{"containers": 1}`}, "m1", h.templateOf(builders.MakeTemplate(ns, "t").Obj()).member, injected{}); err == nil {
		t.Error("want an error: what a Pod runs that cannot be decoded is not known")
	}
}
