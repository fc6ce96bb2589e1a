package checker

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/test/builders"
)

func TestPodDifference(t *testing.T) {
	base := func() *builders.Template { return builders.MakeTemplate(ns, "python") }
	contained := func(key string, value any) *builders.Template {
		return base().PodSpec([]any{map[string]any{"name": "c", "image": "sandbox:v1", key: value}}, "containers")
	}
	fromSecrets := func(names ...string) (list []any) {
		for _, name := range names {
			list = append(list, map[string]any{"secretRef": map[string]any{"name": name}})
		}
		return list
	}
	secretVolume := func(name string) map[string]any {
		return map[string]any{"name": name, "secret": map[string]any{"secretName": name}}
	}
	spread := func(keys ...string) (list []any) {
		for _, key := range keys {
			list = append(list, map[string]any{"topologyKey": key, "maxSkew": int64(1), "whenUnsatisfiable": "ScheduleAnyway"})
		}
		return list
	}
	fieldRef := func(ref map[string]any) map[string]any {
		ref["fieldPath"] = "metadata.name"
		return map[string]any{"fieldRef": ref}
	}
	affinity := func(term map[string]any) map[string]any {
		term["topologyKey"] = "zone"
		return map[string]any{"podAntiAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": []any{term}}}
	}
	probe := func(host string) map[string]any {
		return map[string]any{"httpGet": map[string]any{"host": host, "port": int64(1)}}
	}
	twoMounts := func(places ...string) *builders.Template {
		var mounts []any
		for _, place := range places {
			mounts = append(mounts, map[string]any{"name": "data", "mountPath": place})
		}
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
			want: "containers[0].volumeMounts[1] is not in the Pod, containers[0].volumeMounts /c is in the Pod and not in the template"},
		"a tightened security context": {runs: contained("securityContext", map[string]any{"runAsUser": 1, "privileged": true}),
			asked: contained("securityContext", map[string]any{"runAsUser": 1}),
			want:  "containers[0].securityContext.privileged is in the Pod and not in the template"},
		"a tightened security context of the Pod": {
			runs:  base().PodSpec(map[string]any{"runAsUser": 1, "sysctls": []any{map[string]any{"name": "a", "value": "1"}}}, "securityContext"),
			asked: base().PodSpec(map[string]any{"runAsUser": 1}, "securityContext"),
			want:  "securityContext.sysctls is in the Pod and not in the template"},
		"a variable whose value was removed": {runs: base().Env("A", "secret"), asked: base().Env("A", ""),
			want: "containers[0].env[0].value is in the Pod and not in the template"},
		"one of two sources of variables removed": {runs: contained("envFrom", fromSecrets("a", "b")), asked: contained("envFrom", fromSecrets("b")),
			want: "containers[0].envFrom[1] is in the Pod and not in the template"},
		"a prefix of variables that was removed": {
			runs:  contained("envFrom", []any{map[string]any{"prefix": "P_", "secretRef": map[string]any{"name": "a"}}}),
			asked: contained("envFrom", fromSecrets("a")),
			want:  "containers[0].envFrom[0].prefix is in the Pod and not in the template"},
		"a hook that was removed": {runs: contained("lifecycle", map[string]any{"preStop": map[string]any{"sleep": map[string]any{"seconds": 1}}}), asked: base(),
			want: "containers[0].lifecycle is in the Pod and not in the template"},
		"spreading that was removed": {runs: base().PodSpec(spread("a"), "topologySpreadConstraints"), asked: base(),
			want: "topologySpreadConstraints is in the Pod and not in the template"},
		"one of two ways of spreading removed": {runs: base().PodSpec(spread("a", "b"), "topologySpreadConstraints"),
			asked: base().PodSpec(spread("a"), "topologySpreadConstraints"), want: "topologySpreadConstraints[1] is in the Pod and not in the template"},
		"what the API server adds to spreading": {
			runs: base().PodSpec(spread("a"), "topologySpreadConstraints"), asked: base().PodSpec(spread("a"), "topologySpreadConstraints"),
			pod: func(p *builders.Pod) {
				with := spread("a")
				with[0].(map[string]any)["labelSelector"] = map[string]any{"matchExpressions": []any{}, "matchLabels": map[string]any{"a": "b"}}
				p.Set(with, "spec", "topologySpreadConstraints")
			}},
		"a volume that was removed": {runs: base().PodSpec([]any{secretVolume("token")}, "volumes"), asked: base(),
			want: "volumes is in the Pod and not in the template"},
		"one of two volumes removed": {runs: base().PodSpec([]any{secretVolume("a"), secretVolume("token")}, "volumes"),
			asked: base().PodSpec([]any{secretVolume("a")}, "volumes"), want: "volumes token is in the Pod and not in the template"},
		"one of two mounts removed": {runs: twoMounts("/a", "/b"), asked: twoMounts("/a"),
			want: "containers[0].volumeMounts /b is in the Pod and not in the template"},
		"a mount that is writable no more": {runs: contained("volumeMounts", []any{map[string]any{"name": "v", "mountPath": "/a"}}),
			asked: contained("volumeMounts", []any{map[string]any{"name": "v", "mountPath": "/a", "readOnly": true}}),
			want:  "containers[0].volumeMounts[0].readOnly is missing"},
		"a mount that was read-only": {runs: contained("volumeMounts", []any{map[string]any{"name": "v", "mountPath": "/a", "readOnly": true}}),
			asked: contained("volumeMounts", []any{map[string]any{"name": "v", "mountPath": "/a"}}),
			want:  "containers[0].volumeMounts[0].readOnly is in the Pod and not in the template"},
		"what the API server adds to what the template says": {
			runs: contained("livenessProbe", probe("a")), asked: contained("livenessProbe", probe("a")),
			pod: func(p *builders.Pod) {
				p.Set(map[string]any{}, "spec", "securityContext")
				p.Set([]any{map[string]any{"name": "kube-api-access-x", "projected": map[string]any{"defaultMode": int64(420)}}}, "spec", "volumes")
				with := probe("a")
				with["timeoutSeconds"], with["periodSeconds"], with["successThreshold"], with["failureThreshold"] = int64(1), int64(10), int64(1), int64(3)
				get := with["httpGet"].(map[string]any)
				get["path"], get["scheme"], get["protocol"] = "/", "HTTP", "HTTP1"
				p.Set([]any{map[string]any{"name": "c", "image": "sandbox:v1", "livenessProbe": with, "volumeMounts": []any{
					map[string]any{"name": "kube-api-access-x", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true}}}},
					"spec", "containers")
			}},
		"what the API server adds to a probe of gRPC": {
			runs:  contained("livenessProbe", map[string]any{"grpc": map[string]any{"port": int64(1), "service": ""}}),
			asked: contained("livenessProbe", map[string]any{"grpc": map[string]any{"port": int64(1)}})},
		"what the API server adds to a variable": {
			runs:  contained("env", []any{map[string]any{"name": "A", "valueFrom": fieldRef(map[string]any{"apiVersion": "v1"})}}),
			asked: contained("env", []any{map[string]any{"name": "A", "valueFrom": fieldRef(map[string]any{})}})},
		"what the API server adds to a variable from a file": {
			runs:  contained("env", []any{map[string]any{"name": "A", "valueFrom": map[string]any{"fileKeyRef": map[string]any{"key": "k", "optional": false}}}}),
			asked: contained("env", []any{map[string]any{"name": "A", "valueFrom": map[string]any{"fileKeyRef": map[string]any{"key": "k"}}}})},
		"what the API server adds to affinity": {
			runs:  base().PodSpec(affinity(map[string]any{"labelSelector": map[string]any{"matchLabels": map[string]any{"a": "b"}}}), "affinity"),
			asked: base().PodSpec(affinity(map[string]any{}), "affinity")},
		"what the template said where the API server has a default": {
			runs:  contained("livenessProbe", map[string]any{"exec": map[string]any{"command": []any{"x"}}, "periodSeconds": 30}),
			asked: contained("livenessProbe", map[string]any{"exec": map[string]any{"command": []any{"x"}}}),
			want:  "containers[0].livenessProbe.periodSeconds is in the Pod and not in the template"},
		"what the API server adds to a volume": {
			runs: base().PodSpec([]any{secretVolume("a")}, "volumes"), asked: base().PodSpec([]any{secretVolume("a")}, "volumes"),
			pod: func(p *builders.Pod) {
				p.Set([]any{map[string]any{"name": "a", "secret": map[string]any{"secretName": "a", "defaultMode": int64(420)}},
					map[string]any{"name": "kube-api-access-x"}}, "spec", "volumes")
			}},
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
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := differenceOf(t, tc.runs, tc.asked, tc.pod)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("difference (-want,+got):\n%s", diff)
			}
		})
	}
}

// differenceOf is that of a member's Pod, built from one template and then changed, to another template.
func differenceOf(t *testing.T, runs, asked *builders.Template, change func(p *builders.Pod)) string {
	t.Helper()
	pod := builders.MakePod(builders.MakeMember(builders.MakePool(ns, "python").Obj(), runs.Obj()).Name("m1").Obj()).Stored("node")
	if change != nil {
		change(pod)
	}
	state, err := podOf(pod.Obj())
	if err != nil {
		t.Fatal(err)
	}
	template := NewHistory(Options{}).templateOf(asked.Obj())
	if template.err != nil {
		t.Fatal(template.err)
	}
	got, err := podDifference(state, "m1", template.member, injected{})
	if err != nil {
		t.Fatal(err)
	}
	return got
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

// Elements without a name are found in any order, but in lists that are so long that it would take a tenant's template to
// keep the auditor busy.
func TestElementsWithoutIdentity(t *testing.T) {
	tolerations := func(n int) (list []any) {
		for i := range n {
			list = append(list, map[string]any{"key": strconv.Itoa(i)})
		}
		return list
	}
	turned := func(list []any) []any {
		out := slices.Clone(list)
		slices.Reverse(out)
		return out
	}
	for name, tc := range map[string]struct {
		want, have []any
		all        bool
		first      string
	}{
		"in order":                {tolerations(maxUnordered + 1), append(tolerations(maxUnordered+1), map[string]any{"key": "added"}), true, "0"},
		"in another order":        {tolerations(maxUnordered), turned(tolerations(maxUnordered)), true, "0"},
		"too many for any order":  {tolerations(maxUnordered + 1), turned(tolerations(maxUnordered + 1)), false, strconv.Itoa(maxUnordered)},
		"one is another":          {tolerations(3), tolerations(2), false, "0"},
		"more than anybody needs": {tolerations(maxUnordered + 2), tolerations(maxUnordered + 1), false, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			var parts []string
			contained(tc.want, tc.have, "tolerations", &parts)
			if (len(parts) == 0) != tc.all {
				t.Errorf("%d are not there: %v", len(parts), parts[:min(3, len(parts))])
			}
			if got := counterpart(tc.want[0], 0, tc.have, nil).(map[string]any)["key"]; got != tc.first {
				t.Errorf("%v stands for the first one, want %s", got, tc.first)
			}
		})
	}
}
