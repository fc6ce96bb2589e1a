package fakekruise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// boxController gives Sandboxes their Pods, and says how these are. Its patches name no
// version.
type boxController struct {
	*view
	queue queue
	// expected are the statuses that the cache has to show before a Sandbox is looked at again.
	expected *seen
}

func (c *boxController) changed(_, obj *unstructured.Unstructured) { c.queue.Add(keyOf(obj)) }

func (c *boxController) reconcile(ctx context.Context, key string) (time.Duration, error) {
	box, pod := c.get(Sandboxes, key), c.get(pods, key)
	if box == nil {
		return 0, c.orphaned(ctx, pod)
	}
	if !c.expected.satisfied(box) {
		return c.options.wait(CacheTimeout), nil
	}
	if box.GetDeletionTimestamp() != nil {
		return 0, nil
	}
	if pod != nil && !metav1.IsControlledBy(pod, box) {
		return 0, nil
	}
	switch phase := text(box, "status", "phase"); phase {
	case "", phasePending:
		if pod == nil {
			return 0, c.makePod(ctx, box)
		}
		return 0, c.show(ctx, box, pod, phasePending)
	case phaseRunning:
		if pod == nil || pod.GetDeletionTimestamp() != nil {
			return 0, c.patchStatus(ctx, box, map[string]any{"phase": phaseFailed})
		}
		if asksForCleanup(box) {
			return 0, c.patchStatus(ctx, box, map[string]any{"phase": phaseRecycling})
		}
		return 0, errors.Join(c.labelPod(ctx, box, pod), c.show(ctx, box, pod, phaseRunning))
	case phaseRecycling:
		return 0, c.recycle(ctx, box)
	}
	return 0, nil
}

// orphaned deletes the Pod of a Sandbox that is gone, as the garbage collector does.
func (c *boxController) orphaned(ctx context.Context, pod *unstructured.Unstructured) error {
	if pod == nil || pod.GetDeletionTimestamp() != nil {
		return nil
	}
	if ref := metav1.GetControllerOfNoCopy(pod); ref == nil || ref.Kind != "Sandbox" {
		return nil
	}
	uid := pod.GetUID()
	err := c.in(pods, pod.GetNamespace()).Delete(ctx, pod.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsConflict(err) {
		return nil
	}
	return ignoreNotFound(err)
}

// makePod builds the Pod from the Sandbox, or from what it refers to as the cache shows it
// now.
func (c *boxController) makePod(ctx context.Context, box *unstructured.Unstructured) error {
	template, err := c.template(box)
	if err != nil {
		return err
	}
	if template == nil {
		template = box
	}
	spec, _, _ := unstructured.NestedMap(template.Object, "spec", "template", "spec")
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": spec}}
	pod.SetNamespace(box.GetNamespace())
	pod.SetName(box.GetName())
	labels, _, _ := unstructured.NestedStringMap(template.Object, "spec", "template", "metadata", "labels")
	annotations, _, _ := unstructured.NestedStringMap(template.Object, "spec", "template", "metadata", "annotations")
	labels, annotations = maps.Clone(labels), maps.Clone(annotations)
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[labelCreated], annotations[labelCreated] = "sandbox", "sandbox"
	pod.SetLabels(labels)
	pod.SetAnnotations(annotations)
	pod.SetOwnerReferences(controlledBy(box))
	_, err = c.in(pods, box.GetNamespace()).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create pod %s: %w", pod.GetName(), err)
	}
	return nil
}

// labelPod carries what a claim wrote onto the template of the Pod over to the Pod.
func (c *boxController) labelPod(ctx context.Context, box, pod *unstructured.Unstructured) error {
	wanted, _, _ := unstructured.NestedStringMap(box.Object, "spec", "template", "metadata", "labels")
	missing := map[string]string{}
	for k, v := range wanted {
		if pod.GetLabels()[k] != v {
			missing[k] = v
		}
	}
	if len(missing) == 0 {
		return nil
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": missing}})
	if err != nil {
		return err
	}
	_, err = c.in(pods, pod.GetNamespace()).Patch(ctx, pod.GetName(), types.MergePatchType, raw, metav1.PatchOptions{})
	return ignoreNotFound(err)
}

// show brings the status up to what the Pod says.
func (c *boxController) show(ctx context.Context, box, pod *unstructured.Unstructured, phase string) error {
	ready, since := "False", time.Now().UTC().Format(time.RFC3339)
	switch text(pod, "status", "phase") {
	case "Running":
		phase = phaseRunning
		if isReady(pod) {
			ready = "True"
		}
	case "Failed", "Succeeded":
		phase = text(pod, "status", "phase")
	}
	if text(box, "status", "phase") == phase && isReady(box) == (ready == "True") && text(box, "status", "podInfo", "podUID") == string(pod.GetUID()) &&
		text(box, "status", "podInfo", "podIP") == text(pod, "status", "podIP") {
		return nil
	}
	return c.patchStatus(ctx, box, map[string]any{
		"phase": phase, "observedGeneration": box.GetGeneration(),
		"podInfo": map[string]any{
			"podUID": string(pod.GetUID()), "podIP": text(pod, "status", "podIP"), "nodeName": text(pod, "spec", "nodeName"),
		},
		"conditions": []any{map[string]any{"type": "Ready", "status": ready, "reason": "Pod" + ready, "message": "", "lastTransitionTime": since}},
	})
}

func (c *boxController) patchStatus(ctx context.Context, box *unstructured.Unstructured, status map[string]any) error {
	raw, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	stored, err := c.in(Sandboxes, box.GetNamespace()).Patch(ctx, box.GetName(), types.MergePatchType, raw, metav1.PatchOptions{}, "status")
	if err == nil {
		c.expected.expect(stored, false, c.options.wait(CacheTimeout))
	}
	return ignoreNotFound(err)
}

func asksForCleanup(box *unstructured.Unstructured) bool {
	return box.GetAnnotations()[keyCleanup] == yes && box.GetAnnotations()[keyCleanupEnabled] == yes
}

// recycle gives a used Sandbox back to its pool, with all that its user left in it: first
// its metadata, and its phase in a second write. Between the two it can be claimed again,
// and if the second one fails, the next pass takes it from whoever claimed it.
func (c *boxController) recycle(ctx context.Context, box *unstructured.Unstructured) error {
	set := c.get(Sets, box.GetNamespace()+"/"+box.GetLabels()[labelPool])
	if set == nil {
		return ignoreNotFound(c.in(Sandboxes, box.GetNamespace()).Delete(ctx, box.GetName(), metav1.DeleteOptions{}))
	}
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"ownerReferences": controlledBy(set),
			"labels":          map[string]any{labelClaimed: no, labelClaim: nil},
			"annotations":     map[string]any{keyLock: nil, keyOwner: nil, keyClaimedAt: nil, keyCleanup: nil},
		},
		"spec": map[string]any{"shutdownTime": nil, "pauseTime": nil},
	})
	if err != nil {
		return err
	}
	if _, err := c.in(Sandboxes, box.GetNamespace()).Patch(ctx, box.GetName(), types.MergePatchType, raw, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("give sandbox %s back: %w", box.GetName(), err)
	}
	return c.patchStatus(ctx, box, map[string]any{"phase": phaseRunning, "recycledCount": number(box, "status", "recycledCount") + 1})
}
