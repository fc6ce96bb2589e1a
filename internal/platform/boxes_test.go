package platform

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/revision"
)

const (
	boxDomain = "example.com"
	// podNameKey names the Pod of a Box, boxKey the Box of a Pod, and templateKey what a
	// Box was built from. refersKey is on one that says no more of its Pod.
	podNameKey, boxKey, templateKey, refersKey = boxDomain + "/pod-name", boxDomain + "/box", boxDomain + "/template", boxDomain + "/refers"

	v1, v2, v3 = "sandbox:v1", "sandbox:v2", "sandbox:v3"
)

var (
	errAway = errors.New("etcd is away")
	born    = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// boxes are a platform whose members are Boxes: a Pod spec, and no more.
type boxes struct {
	// stored and failed are what is found of a Box when it is read.
	stored map[string]*unstructured.Unstructured
	failed error
	// read and computed are how often a Box is read, and its content made of it.
	read, computed int
}

func newBoxes(stored ...*unstructured.Unstructured) *boxes {
	b := &boxes{stored: map[string]*unstructured.Unstructured{}}
	for _, o := range stored {
		b.stored[o.GetName()] = o
	}
	return b
}

func (b *boxes) DescribeMember(box *unstructured.Unstructured) Description {
	annotations := OwnKeys(box.GetAnnotations(), boxDomain)
	return Description{
		MemberTraits: MemberTraits{
			Controller: freshness.Owner{Kind: freshness.OwnedByPool, Name: "pool", UID: "uid-pool"}, Template: annotations[templateKey],
			ByReference: annotations[refersKey] != "",
		},
		Labels: OwnKeys(box.GetLabels(), boxDomain), Annotations: annotations, PodName: annotations[podNameKey], PodNameKey: podNameKey,
	}
}

func (b *boxes) ContentOf(box *unstructured.Unstructured) (revision.Blueprint, error) {
	b.computed++
	return contentOfBox(box)
}

func contentOfBox(box *unstructured.Unstructured) (revision.Blueprint, error) {
	spec, _, err := unstructured.NestedMap(box.Object, "spec")
	if err != nil {
		return revision.Blueprint{}, err
	}
	return revision.FromPodSpec(spec)
}

func (b *boxes) DescribePod(pod *unstructured.Unstructured) (box string, runs *freshness.Pod, err error) {
	runs, err = ReadPod(pod)
	return pod.GetAnnotations()[boxKey], runs, err
}

func (b *boxes) StoredMember(_ context.Context, _, name string) (*unstructured.Unstructured, error) {
	b.read++
	return b.stored[name], b.failed
}

func (b *boxes) AsMember(box *unstructured.Unstructured) (freshness.Member, error) {
	content, err := contentOfBox(box)
	return freshness.Member{
		Name: box.GetName(), UID: string(box.GetUID()), Controller: freshness.Owner{Kind: freshness.OwnedByPool, Name: "pool", UID: "uid-pool"},
		Content: content, Created: box.GetCreationTimestamp().Time,
	}, err
}

func (b *boxes) AsPod(pod *unstructured.Unstructured) (*freshness.Pod, error) { return ReadPod(pod) }

// referring are boxes that may say no more of their Pods than what they refer to.
type referring struct{ *boxes }

func (referring) ContentOfPod(pod *unstructured.Unstructured) (revision.Blueprint, error) {
	runs, err := ReadPod(pod)
	if err != nil {
		return revision.Blueprint{}, err
	}
	return runs.Content, nil
}

// changed is a copy of an object that was changed.
type changed = func(*unstructured.Unstructured)

func makeBox(name, image string, changes ...changed) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": boxDomain + "/v1", "kind": "Box", "spec": podSpec(image)}}
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetUID(types.UID("uid-" + name))
	u.SetResourceVersion("7")
	u.SetGeneration(1)
	u.SetCreationTimestamp(metav1.NewTime(born))
	for _, change := range changes {
		change(u)
	}
	return u
}

// makePod is the Pod of a Box, as it runs.
func makePod(box, image string, changes ...changed) *unstructured.Unstructured {
	u := makeBox(box, image)
	u.SetAPIVersion("v1")
	u.SetKind("Pod")
	u.SetUID(types.UID("uid-pod-" + box))
	u.SetAnnotations(map[string]string{boxKey: box})
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(makeBox(box, image), makeBox(box, image).GroupVersionKind())})
	for _, change := range changes {
		change(u)
	}
	return u
}

func podSpec(image string) map[string]any {
	return map[string]any{"containers": []any{map[string]any{"name": "c", "image": image}}}
}

func set(value any, path ...string) changed {
	return func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

func annotated(key, value string) changed { return set(value, "metadata", "annotations", key) }

var (
	nonsense = set("nonsense", "spec")
	debugged = set([]any{map[string]any{"name": "d", "image": "busybox"}}, "spec", "ephemeralContainers")
	deleting = set("2026-01-01T13:00:00Z", "metadata", "deletionTimestamp")
)

func content(t testing.TB, image string) revision.Blueprint {
	t.Helper()
	b, err := revision.FromPodSpec(podSpec(image))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// inForce are facts of a pool whose template has this image, and had v1 before.
func inForce(t testing.TB, image string) freshness.Snapshot {
	t.Helper()
	live, old := content(t, image), content(t, v1)
	return freshness.Snapshot{
		Operation: freshness.Stored, Pool: &freshness.Pool{Name: "pool", UID: "uid-pool", Template: "t", Strategy: freshness.Recreate},
		Template: &freshness.Template{Name: "t", Hash: live.Hash(), Content: live}, Known: []freshness.Known{{Hash: old.Hash(), Content: old}},
	}
}

// inspection is of inForce, changed.
func (b *boxes) inspection(t testing.TB, image string, changes ...func(*freshness.Snapshot)) *Inspection {
	t.Helper()
	facts := inForce(t, image)
	for _, change := range changes {
		change(&facts)
	}
	return NewInspection(b, facts, "")
}

// full is a reducer that has no room for another content.
func full(b *boxes) *Reducer {
	r := NewReducer(b)
	r.kept.Store(MaxContents)
	return r
}
