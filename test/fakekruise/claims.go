package fakekruise

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// retryClaim is how long a SandboxClaim waits after any error.
	retryClaim = 2 * time.Second

	phaseClaiming  = "Claiming"
	phaseCompleted = "Completed"
)

// claimController serves SandboxClaims.
type claimController struct {
	taker
	queue queue
	// expected are the statuses that the cache has to show before a claim is looked at again.
	expected *seen
}

func (c *claimController) reconcile(ctx context.Context, key string) (time.Duration, error) {
	claim := c.get(Claims, key)
	if claim == nil || claim.GetDeletionTimestamp() != nil {
		return 0, nil
	}
	if !c.expected.satisfied(claim) {
		return c.options.wait(CacheTimeout), nil
	}
	phase, had := text(claim, "status", "phase"), number(claim, "status", "claimedReplicas")
	if phase == phaseCompleted {
		return 0, nil
	}
	set := c.get(Sets, claim.GetNamespace()+"/"+text(claim, "spec", "templateName"))
	if set == nil {
		return 0, c.say(ctx, claim, phaseCompleted, had, "SandboxSet not found or deleted")
	}
	if phase == "" {
		return 0, c.say(ctx, claim, phaseClaiming, 0, "")
	}
	wants := 1
	if n, is, _ := unstructured.NestedInt64(claim.Object, "spec", "replicas"); is {
		wants = int(n)
	}
	has := max(had, len(c.boxes(byOwner, string(claim.GetUID()))))
	switch {
	case has >= wants:
		return 0, c.say(ctx, claim, phaseCompleted, has, fmt.Sprintf("Successfully claimed %d sandboxes", has))
	case c.ended(claim):
		return 0, c.say(ctx, claim, phaseCompleted, has, fmt.Sprintf("Timeout reached, claimed %d/%d sandboxes", has, wants))
	}
	got := c.takeFor(ctx, claim, wants-has)
	if got == 0 {
		return c.options.wait(retryClaim), c.say(ctx, claim, phaseClaiming, has, fmt.Sprintf("Claiming sandboxes: %d/%d claimed", has, wants))
	}
	return time.Millisecond, c.say(ctx, claim, phaseClaiming, has+got, fmt.Sprintf("Claiming sandboxes: %d/%d claimed", has+got, wants))
}

// takeFor takes members until one try fails.
func (c *claimController) takeFor(ctx context.Context, claim *unstructured.Unstructured, n int) (got int) {
	labels, _, _ := unstructured.NestedStringMap(claim.Object, "spec", "labels")
	annotations, _, _ := unstructured.NestedStringMap(claim.Object, "spec", "annotations")
	creates, found, _ := unstructured.NestedBool(claim.Object, "spec", "createOnNoStock")
	r := Request{
		Namespace: claim.GetNamespace(), Set: text(claim, "spec", "templateName"), User: string(claim.GetUID()), Claim: claim.GetName(),
		Labels: labels, Annotations: annotations, Image: text(claim, "spec", "inplaceUpdate", "image"), OnlyStock: found && !creates,
	}
	for range n {
		if _, _, err := c.take(ctx, r); err != nil {
			return got
		}
		got++
	}
	return got
}

func (c *claimController) ended(claim *unstructured.Unstructured) bool {
	timeout := patience
	if d, err := time.ParseDuration(text(claim, "spec", "claimTimeout")); err == nil {
		timeout = d
	}
	start, err := time.Parse(time.RFC3339, text(claim, "status", "claimStartTime"))
	return err == nil && time.Since(start) >= c.options.wait(timeout)
}

// say writes the status, where it says something new.
func (c *claimController) say(ctx context.Context, claim *unstructured.Unstructured, phase string, has int, message string) error {
	if text(claim, "status", "phase") == phase && number(claim, "status", "claimedReplicas") == has && text(claim, "status", "message") == message {
		return nil
	}
	status := map[string]any{"phase": phase, "claimedReplicas": has, "message": message, "observedGeneration": claim.GetGeneration()}
	now := time.Now().UTC().Format(time.RFC3339)
	if text(claim, "status", "claimStartTime") == "" {
		status["claimStartTime"] = now
	}
	if phase == phaseCompleted {
		status["completionTime"] = now
	}
	raw, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	stored, err := c.in(Claims, claim.GetNamespace()).Patch(ctx, claim.GetName(), types.MergePatchType, raw, metav1.PatchOptions{}, "status")
	if err == nil {
		c.expected.expect(stored, false, c.options.wait(CacheTimeout))
	}
	return ignoreNotFound(err)
}
