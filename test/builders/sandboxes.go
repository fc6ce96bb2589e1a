package builders

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Sandbox builds a Sandbox: a pool's member, a cold start, or one made from another.
type Sandbox struct{ Builder[*Sandbox] }

// SandboxFrom continues from an existing Sandbox.
func SandboxFrom(u *unstructured.Unstructured) *Sandbox {
	s := &Sandbox{Builder[*Sandbox]{u: u.DeepCopy()}}
	s.self = s
	return s
}

// MakeMember is the CREATE of the pool controller, in the API version of the pool. It carries generateName and no name:
// give it one with Name, or let the API server do it.
func MakeMember(pool, template *unstructured.Unstructured) *Sandbox {
	s := sandboxOf(pool, template, "", "", "Managed")
	s.u.SetGenerateName(pool.GetName() + "-")
	s.u.SetOwnerReferences([]metav1.OwnerReference{ControllerRef(pool)})
	labels := map[string]string{
		LabelPool:            NameHash(pool.GetName()),
		LabelTemplateRef:     NameHash(template.GetName()),
		LabelPodTemplateHash: PodTemplateHash(template),
	}
	if !s.alpha() {
		labels[LabelTemplateHash] = BlueprintHash(template)
	}
	s.mergePodMetadata("labels", maps.Clone(labels))
	if s.alpha() {
		s.u.SetLabels(labels)
		return s
	}
	labels[LabelLaunchType] = "warm"
	labels[LabelCreatedBy] = "controller"
	s.u.SetLabels(labels)
	if _, ok, _ := unstructured.NestedString(s.u.Object, "spec", "podTemplate", "metadata", "annotations", annotationEvict); !ok {
		s.mergePodMetadata("annotations", map[string]string{annotationEvict: "true"})
	}
	return s
}

// MakeColdStart is the CREATE of a Sandbox directly for a claim without env and volumeClaimTemplates of its own. A template
// that does not say who manages its network policy is one of v0.1.1, which adds nothing about DNS.
func MakeColdStart(claim, template *unstructured.Unstructured) *Sandbox {
	s := sandboxOf(claim, template, claim.GetName(), "Managed")
	s.u.SetOwnerReferences([]metav1.OwnerReference{ControllerRef(claim)})
	labels := map[string]string{LabelClaimUID: string(claim.GetUID())}
	if !s.alpha() {
		labels[LabelTemplateRef] = NameHash(template.GetName())
	}
	s.mergePodMetadata("labels", map[string]string{LabelClaimUID: string(claim.GetUID()), LabelTemplateRef: NameHash(template.GetName())})
	if !s.alpha() {
		labels[LabelLaunchType] = "cold"
	}
	s.u.SetLabels(labels)
	return s
}

// Bound is the member after the patch that hands it to the claim. Its generation rises, as that patch rewrites
// spec.podTemplate.metadata from the template that the claim controller knows.
func Bound(member, claim, template *unstructured.Unstructured) *Sandbox {
	s := SandboxFrom(member)
	labels := s.u.GetLabels()
	for _, key := range []string{LabelPool, LabelPodTemplateHash, LabelTemplateHash, LabelCreatedBy} {
		delete(labels, key)
	}
	labels = with(labels, LabelClaimUID, string(claim.GetUID()))
	if s.alpha() {
		delete(labels, LabelTemplateRef)
	} else {
		labels[LabelLaunchType] = "warm"
	}
	s.u.SetLabels(labels)
	s.u.SetOwnerReferences([]metav1.OwnerReference{ControllerRef(claim)})
	s.Unset("spec", "podTemplate", "metadata")
	if meta, ok, _ := unstructured.NestedMap(template.Object, "spec", "podTemplate", "metadata"); ok {
		s.Set(meta, "spec", "podTemplate", "metadata")
	}
	s.mergePodMetadata("labels", map[string]string{LabelClaimUID: string(claim.GetUID()), LabelTemplateRef: NameHash(template.GetName())})
	return s.Generation(member.GetGeneration() + 1)
}

// sandboxOf copies the template's blueprint and applies the secure defaults: those of DNS where networkPolicyManagement is
// one of managed.
func sandboxOf(owner, template *unstructured.Unstructured, name string, managed ...string) *Sandbox {
	s := &Sandbox{Builder[*Sandbox]{u: newObject(GroupCore, "Sandbox", owner.GetNamespace(), name)}}
	s.self = s
	version := owner.GroupVersionKind().Version
	s.u.SetAPIVersion(apiVersion(GroupCore, version))
	s.Annotation(AnnotationTemplate, template.GetName())
	for _, key := range []string{"podTemplate", "volumeClaimTemplates", "service"} {
		if v, ok, _ := unstructured.NestedFieldCopy(template.Object, "spec", key); ok {
			s.Set(v, "spec", key)
		}
	}
	if s.alpha() {
		s.Set(int64(1), "spec", "replicas")
	} else {
		s.Set("Running", "spec", "operatingMode")
	}
	s.secureDefaults(template, managed)
	return s
}

func (s *Sandbox) alpha() bool { return s.u.GroupVersionKind().Version == V1Alpha1 }

func (s *Sandbox) secureDefaults(template *unstructured.Unstructured, managed []string) {
	spec := []string{"spec", "podTemplate", "spec"}
	if _, ok, _ := unstructured.NestedFieldNoCopy(s.u.Object, append(spec, "automountServiceAccountToken")...); !ok {
		s.Set(false, append(spec, "automountServiceAccountToken")...)
	}
	management, _, _ := unstructured.NestedString(template.Object, "spec", "networkPolicyManagement")
	_, hasPolicy, _ := unstructured.NestedFieldNoCopy(template.Object, "spec", "networkPolicy")
	dns, _, _ := unstructured.NestedString(s.u.Object, append(spec, "dnsPolicy")...)
	if slices.Contains(managed, management) && !hasPolicy && dns == "" {
		s.Set("None", append(spec, "dnsPolicy")...)
		s.Set(map[string]any{"nameservers": []any{"8.8.8.8", "1.1.1.1"}}, append(spec, "dnsConfig")...)
	}
}

func (s *Sandbox) mergePodMetadata(key string, add map[string]string) {
	have, _, _ := unstructured.NestedStringMap(s.u.Object, "spec", "podTemplate", "metadata", key)
	if have == nil {
		have = map[string]string{}
	}
	maps.Copy(have, add)
	s.Set(have, "spec", "podTemplate", "metadata", key)
}

// PodName sets the annotation that names the Sandbox's Pod where it is not the Sandbox's own name.
func (s *Sandbox) PodName(name string) *Sandbox { return s.Annotation(AnnotationPodName, name) }

// PodSpec sets a field below spec.podTemplate.spec.
func (s *Sandbox) PodSpec(value any, path ...string) *Sandbox {
	return s.Set(value, append([]string{"spec", "podTemplate", "spec"}, path...)...)
}

// Image sets the image of the first container.
func (s *Sandbox) Image(image string) *Sandbox {
	list, _, _ := unstructured.NestedSlice(s.u.Object, "spec", "podTemplate", "spec", "containers")
	first, _ := list[0].(map[string]any)
	first["image"] = image
	return s.PodSpec(list, "containers")
}

// Pod builds the Pod of a Sandbox.
type Pod struct{ Builder[*Pod] }

// MakePod is the CREATE of the Sandbox controller: the Sandbox's pod template, its volumes, and nothing that the API
// server adds (see Stored).
func MakePod(sandbox *unstructured.Unstructured) *Pod {
	p := &Pod{Builder[*Pod]{u: newObject("", "Pod", sandbox.GetNamespace(), sandbox.GetName())}}
	p.self = p
	p.u.SetOwnerReferences([]metav1.OwnerReference{ControllerRef(sandbox)})
	p.u.SetLabels(podLabels(sandbox))
	template, _, _ := unstructured.NestedStringMap(sandbox.Object, "spec", "podTemplate", "metadata", "annotations")
	if len(template) > 0 {
		keys := slices.Sorted(maps.Keys(template))
		template["agents.x-k8s.io/propagated-annotations"] = strings.Join(keys, ",")
		p.u.SetAnnotations(template)
	}
	spec, _, _ := unstructured.NestedMap(sandbox.Object, "spec", "podTemplate", "spec")
	claims, _, _ := unstructured.NestedSlice(sandbox.Object, "spec", "volumeClaimTemplates")
	p.Set(spec, "spec")
	for _, c := range claims {
		m, _ := c.(map[string]any)
		name, _, _ := unstructured.NestedString(m, "metadata", "name")
		p.volume(map[string]any{"name": name, "persistentVolumeClaim": map[string]any{"claimName": name + "-" + sandbox.GetName()}})
	}
	return p
}

// PodFrom continues from an existing Pod.
func PodFrom(u *unstructured.Unstructured) *Pod {
	p := &Pod{Builder[*Pod]{u: u.DeepCopy()}}
	p.self = p
	return p
}

func podLabels(sandbox *unstructured.Unstructured) map[string]string {
	out := map[string]string{LabelNameHash: NameHash(sandbox.GetName())}
	own := sandbox.GetLabels()
	ref := metav1.GetControllerOf(sandbox)
	keys := []string{LabelTemplateRef, LabelCreatedBy}
	if ref != nil && ref.Kind == "SandboxWarmPool" {
		keys = append(keys, LabelPool)
	}
	if ref != nil && ref.Kind == "SandboxClaim" {
		keys = append(keys, LabelClaimUID)
	}
	for _, key := range keys {
		if v := own[key]; v != "" {
			out[key] = v
		}
	}
	return out
}

func (p *Pod) volume(v map[string]any) {
	list, _, _ := unstructured.NestedSlice(p.u.Object, "spec", "volumes")
	list = slices.DeleteFunc(list, func(have any) bool {
		m, _ := have.(map[string]any)
		return m["name"] == v["name"]
	})
	p.Set(append(list, v), "spec", "volumes")
}

// Stored adds what the API server and the scheduler add to a Pod that runs.
func (p *Pod) Stored(node string) *Pod {
	for key, value := range map[string]any{
		"nodeName": node, "restartPolicy": "Always", "schedulerName": "default-scheduler", "serviceAccountName": "default",
		"serviceAccount": "default", "terminationGracePeriodSeconds": 30, "priority": 0, "preemptionPolicy": "PreemptLowerPriority",
		"securityContext": map[string]any{}, "dnsPolicy": "ClusterFirst", "enableServiceLinks": true,
		"tolerations": []any{map[string]any{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}},
	} {
		if _, ok, _ := unstructured.NestedFieldNoCopy(p.u.Object, "spec", key); !ok {
			p.Set(value, "spec", key)
		}
	}
	for _, key := range []string{"containers", "initContainers"} {
		list, ok, _ := unstructured.NestedSlice(p.u.Object, "spec", key)
		for _, c := range list {
			m, _ := c.(map[string]any)
			for k, v := range map[string]any{"imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log",
				"terminationMessagePolicy": "File", "resources": map[string]any{}} {
				if _, have := m[k]; !have {
					m[k] = v
				}
			}
		}
		if ok {
			p.Set(list, "spec", key)
		}
	}
	return p.Phase(corev1.PodRunning)
}

// Phase sets status.phase.
func (p *Pod) Phase(phase corev1.PodPhase) *Pod { return p.Set(string(phase), "status", "phase") }

// NameHash is FNV-1a, 32 bit, as 8 hex digits: agent-sandbox's hash for names and templates.
func NameHash(s string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return fmt.Sprintf("%08x", h.Sum32())
}

type podTemplate struct {
	Spec     corev1.PodSpec `json:"spec"`
	Metadata struct {
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
}

type blueprint struct {
	PodTemplate          podTemplate `json:"podTemplate"`
	VolumeClaimTemplates []struct {
		Metadata struct {
			Name        string            `json:"name,omitempty"`
			Labels      map[string]string `json:"labels,omitempty"`
			Annotations map[string]string `json:"annotations,omitempty"`
		} `json:"metadata"`
		Spec corev1.PersistentVolumeClaimSpec `json:"spec"`
	} `json:"volumeClaimTemplates,omitempty"`
	Service *bool `json:"service,omitempty"`
}

// PodTemplateHash is the label sandbox-pod-template-hash of the template's members.
func PodTemplateHash(template *unstructured.Unstructured) string {
	return hashOf(blueprintOf(template).PodTemplate)
}

// BlueprintHash is the label sandbox-template-hash of the template's members (v0.5.6 and later).
func BlueprintHash(template *unstructured.Unstructured) string {
	return hashOf(blueprintOf(template))
}

func blueprintOf(template *unstructured.Unstructured) blueprint {
	var out blueprint
	spec, _, _ := unstructured.NestedMap(template.Object, "spec")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &out); err != nil {
		panic(fmt.Sprintf("template %s: %v", template.GetName(), err))
	}
	return out
}

func hashOf(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return NameHash(string(raw))
}
