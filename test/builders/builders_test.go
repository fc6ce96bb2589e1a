package builders

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/google/go-cmp/cmp"
)

// The values are those that agent-sandbox's own code gives for these inputs.
func TestHashes(t *testing.T) {
	template := MakeTemplate("ns", "my-template").PodSpec([]corev1.Container{{Name: "c", Image: "nginx"}}, "containers").Obj()
	got := map[string]string{
		"pool":        NameHash("pool"),
		"my-template": NameHash("my-template"),
		"podTemplate": PodTemplateHash(template),
		"blueprint":   BlueprintHash(template),
	}
	want := map[string]string{"pool": "91dd7983", "my-template": "aeae83fc", "podTemplate": "124cbb55", "blueprint": "6283f9ec"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hashes (-want,+got):\n%s", diff)
	}
}

func TestObjIsIndependent(t *testing.T) {
	b := MakeTemplate("ns", "t")
	first := b.Obj()
	b.Image("sandbox:v2").Label("a", "b")
	if diff := cmp.Diff(MakeTemplate("ns", "t").Obj(), first); diff != "" {
		t.Errorf("an object that was handed out has changed (-want,+got):\n%s", diff)
	}
}

func TestMemberOfV1Beta1(t *testing.T) {
	template := MakeTemplate("ns", "python").Obj()
	got := MakeMember(MakePool("ns", "pool").Obj(), template).Name("pool-x").Obj()
	hashes := map[string]any{
		LabelPool: "91dd7983", LabelTemplateRef: NameHash("python"),
		LabelPodTemplateHash: PodTemplateHash(template), LabelTemplateHash: BlueprintHash(template),
	}
	labels := map[string]any{LabelLaunchType: "warm", LabelCreatedBy: "controller"}
	for k, v := range hashes {
		labels[k] = v
	}
	want := map[string]any{
		"apiVersion": "agents.x-k8s.io/v1beta1",
		"kind":       "Sandbox",
		"metadata": map[string]any{
			"generateName": "pool-", "name": "pool-x", "namespace": "ns", "uid": "uid-sandbox-ns-pool-x", "generation": int64(1),
			"labels": labels, "annotations": map[string]any{AnnotationTemplate: "python"},
			"ownerReferences": []any{map[string]any{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool",
				"name": "pool", "uid": "uid-sandboxwarmpool-ns-pool", "controller": true, "blockOwnerDeletion": true}},
		},
		"spec": map[string]any{
			"operatingMode": "Running",
			"podTemplate": map[string]any{
				"metadata": map[string]any{"labels": hashes, "annotations": map[string]any{annotationEvict: "true"}},
				"spec": map[string]any{
					"automountServiceAccountToken": false, "dnsPolicy": "None",
					"dnsConfig":  map[string]any{"nameservers": []any{"8.8.8.8", "1.1.1.1"}},
					"containers": []any{map[string]any{"name": "c", "image": "sandbox:v1", "resources": map[string]any{}}},
				},
			},
		},
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("member (-want,+got):\n%s", diff)
	}
}
