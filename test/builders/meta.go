// Package builders makes test objects as agent-sandbox v1.0.3 stores them (v0.4.6 for v1alpha1): labels, owner references,
// injected fields and all. Every builder ends with Obj, which returns an independent copy.
//
// UIDs are derived from kind, namespace and name, so objects can refer to one another without an API server; a real one
// replaces them on CREATE, and its answers are then what the next builder has to be given.
package builders

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// API groups and versions of agent-sandbox.
const (
	GroupCore       = "agents.x-k8s.io"
	GroupExtensions = "extensions.agents.x-k8s.io"
	V1Beta1         = "v1beta1"
	V1Alpha1        = "v1alpha1"
)

// Keys that agent-sandbox writes.
const (
	LabelPool            = "agents.x-k8s.io/warm-pool-sandbox"
	LabelTemplateRef     = "agents.x-k8s.io/sandbox-template-ref-hash"
	LabelTemplateHash    = "agents.x-k8s.io/sandbox-template-hash"
	LabelPodTemplateHash = "agents.x-k8s.io/sandbox-pod-template-hash"
	LabelLaunchType      = "agents.x-k8s.io/launch-type"
	LabelCreatedBy       = "agents.x-k8s.io/created-by"
	LabelClaimUID        = "agents.x-k8s.io/claim-uid"
	LabelNameHash        = "agents.x-k8s.io/sandbox-name-hash"
	SandboxName          = "agents.x-k8s.io/sandbox-name"
	AnnotationTemplate   = "agents.x-k8s.io/sandbox-template-ref"
	AnnotationPodName    = "agents.x-k8s.io/pod-name"
	annotationEvict      = "cluster-autoscaler.kubernetes.io/safe-to-evict"
)

// Builder holds what all kinds share; T is the builder that embeds it.
type Builder[T any] struct {
	u    *unstructured.Unstructured
	self T
}

func newObject(group, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
	u.SetAPIVersion(apiVersion(group, V1Beta1))
	u.SetKind(kind)
	u.SetNamespace(namespace)
	if name != "" {
		u.SetName(name)
	}
	u.SetGeneration(1)
	u.SetUID(uidOf(kind, namespace, name))
	return u
}

func apiVersion(group, version string) string {
	if group == "" {
		return "v1"
	}
	return group + "/" + version
}

// Obj returns a copy of what was built.
func (b *Builder[T]) Obj() *unstructured.Unstructured { return b.u.DeepCopy() }

// Name sets the name, and the UID that follows from it.
func (b *Builder[T]) Name(name string) T {
	b.u.SetName(name)
	b.u.SetUID(uidOf(b.u.GetKind(), b.u.GetNamespace(), name))
	return b.self
}

// UID sets metadata.uid.
func (b *Builder[T]) UID(uid string) T {
	_ = unstructured.SetNestedField(b.u.Object, uid, "metadata", "uid")
	return b.self
}

// RV sets metadata.resourceVersion.
func (b *Builder[T]) RV(rv int64) T {
	b.u.SetResourceVersion(fmt.Sprint(rv))
	return b.self
}

// Generation sets metadata.generation.
func (b *Builder[T]) Generation(g int64) T {
	b.u.SetGeneration(g)
	return b.self
}

// Label sets a label.
func (b *Builder[T]) Label(key, value string) T {
	b.u.SetLabels(with(b.u.GetLabels(), key, value))
	return b.self
}

// Annotation sets an annotation.
func (b *Builder[T]) Annotation(key, value string) T {
	b.u.SetAnnotations(with(b.u.GetAnnotations(), key, value))
	return b.self
}

// NoLabel removes a label.
func (b *Builder[T]) NoLabel(key string) T {
	labels := b.u.GetLabels()
	delete(labels, key)
	b.u.SetLabels(labels)
	return b.self
}

// Created sets metadata.creationTimestamp.
func (b *Builder[T]) Created(at time.Time) T {
	b.u.SetCreationTimestamp(metav1.NewTime(at))
	return b.self
}

// Deleting sets metadata.deletionTimestamp.
func (b *Builder[T]) Deleting(at time.Time) T {
	t := metav1.NewTime(at)
	b.u.SetDeletionTimestamp(&t)
	return b.self
}

// Owners replaces all owner references.
func (b *Builder[T]) Owners(refs ...metav1.OwnerReference) T {
	b.u.SetOwnerReferences(refs)
	return b.self
}

// Set sets any field; value may be any type that encodes to JSON.
func (b *Builder[T]) Set(value any, path ...string) T {
	setAt(b.u, value, path...)
	return b.self
}

// Unset removes a field.
func (b *Builder[T]) Unset(path ...string) T {
	unstructured.RemoveNestedField(b.u.Object, path...)
	return b.self
}

// Ready sets the condition Ready.
func (b *Builder[T]) Ready(ready bool) T {
	status := string(metav1.ConditionFalse)
	if ready {
		status = string(metav1.ConditionTrue)
	}
	setAt(b.u, []any{map[string]any{"type": "Ready", "status": status, "reason": "DependenciesReady"}}, "status", "conditions")
	return b.self
}

// ControllerRef is the controlling owner reference that agent-sandbox writes for this owner.
func ControllerRef(owner *unstructured.Unstructured) metav1.OwnerReference {
	return *metav1.NewControllerRef(owner, owner.GroupVersionKind())
}

func uidOf(kind, namespace, name string) types.UID {
	return types.UID(strings.ToLower(fmt.Sprintf("uid-%s-%s-%s", kind, namespace, name)))
}

func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// setAt panics on a value that JSON cannot carry: the mistake is in the test that passed it.
func setAt(u *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(u.Object, plain(value), path...); err != nil {
		panic(fmt.Sprintf("set %s: %v", strings.Join(path, "."), err))
	}
}

// plain turns a typed value into what an unstructured object holds (int64, not int).
func plain(value any) any {
	raw, err := json.Marshal(map[string]any{"v": value})
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", value, err))
	}
	var out map[string]any
	if err := utiljson.Unmarshal(raw, &out); err != nil {
		panic(fmt.Sprintf("decode %T: %v", value, err))
	}
	return out["v"]
}
