package fakekruise

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// candidates is how many available members are looked at.
const candidates = 100

// Request is what somebody wants.
type Request struct {
	Namespace string
	// Set names the SandboxSet.
	Set string
	// User is the UID of a SandboxClaim, or the id of a user of E2B.
	User string
	// Claim names the SandboxClaim; empty for users of E2B.
	Claim string
	// Labels and Annotations are the claim's own.
	Labels, Annotations map[string]string
	// Image is what the first container is to run from now on; empty for what it runs.
	Image string
	// OnlyStock: nothing is created when there is nothing to take.
	OnlyStock bool
}

// againError is an error after which the next try may do.
type againError struct{ error }

func (e againError) Unwrap() error { return e.error }

// taker takes members, or creates what is missing. It is one process.
type taker struct {
	*view
	seen   *seen
	picked sync.Map
}

// take tries once. It returns what is stored, and whether that was created.
func (t *taker) take(ctx context.Context, r Request) (box *unstructured.Unstructured, created bool, err error) {
	box, err = t.pick(r)
	if err == nil {
		defer t.picked.Delete(box.GetUID())
		box, err = t.put(ctx, box, r)
		return box, false, err
	}
	if r.OnlyStock {
		return nil, false, againError{err}
	}
	box, err = t.create(ctx, r)
	return box, true, err
}

// pick chooses among the members that the cache shows: those of the revision in force, as
// the cache shows that, and else older ones.
func (t *taker) pick(r Request) (*unstructured.Unstructured, error) {
	now := time.Now()
	var found []*unstructured.Unstructured
	for _, box := range t.boxes(byPick, r.Namespace+"/"+r.Set) {
		if len(found) >= candidates {
			break
		}
		if t.seen.satisfied(box) && box.GetAnnotations()[keyLock] == "" && stateOf(box, now) == available &&
			text(box, "status", "podInfo", "podIP") != "" {
			found = append(found, box)
		}
	}
	current, older := found, []*unstructured.Unstructured(nil)
	if set := t.get(Sets, r.Namespace+"/"+r.Set); set != nil {
		if revision := text(set, "status", "updateRevision"); revision != "" {
			current, older = split(found, revision)
		}
	}
	for _, from := range [][]*unstructured.Unstructured{current, older} {
		if box := t.anyOf(from); box != nil {
			return box.DeepCopy(), nil
		}
	}
	return nil, fmt.Errorf("no stock: sandboxset %s has no available sandbox", r.Set)
}

func split(boxes []*unstructured.Unstructured, revision string) (current, older []*unstructured.Unstructured) {
	for _, box := range boxes {
		if box.GetLabels()[labelHash] == revision {
			current = append(current, box)
		} else {
			older = append(older, box)
		}
	}
	return current, older
}

// anyOf begins anywhere, and passes over what another request of this process has.
func (t *taker) anyOf(boxes []*unstructured.Unstructured) *unstructured.Unstructured {
	if len(boxes) == 0 {
		return nil
	}
	start := rand.IntN(len(boxes))
	for i := range boxes {
		box := boxes[(start+i)%len(boxes)]
		if _, taken := t.picked.LoadOrStore(box.GetUID(), true); taken {
			continue
		}
		if t.seen.satisfied(box) {
			return box
		}
		t.picked.Delete(box.GetUID())
	}
	return nil
}

// put is the bind: one PUT with the version of the cache. Nothing but a conflict lets the
// next try take another.
func (t *taker) put(ctx context.Context, box *unstructured.Unstructured, r Request) (*unstructured.Unstructured, error) {
	give(box, r)
	stored, err := t.in(Sandboxes, r.Namespace).Update(ctx, box, metav1.UpdateOptions{})
	switch {
	case err == nil:
		t.seen.expect(stored, false, t.options.wait(CacheTimeout))
		return stored, nil
	case apierrors.IsConflict(err):
		t.seen.expect(box, true, t.options.remembers())
		return nil, againError{fmt.Errorf("take sandbox %s: %w", box.GetName(), err)}
	}
	return nil, fmt.Errorf("take sandbox %s: %w", box.GetName(), err)
}

// create makes a Sandbox from the SandboxSet, and the template, as the cache shows them.
// No error lets another try follow.
func (t *taker) create(ctx context.Context, r Request) (*unstructured.Unstructured, error) {
	set := t.get(Sets, r.Namespace+"/"+r.Set)
	if set == nil {
		return nil, againError{fmt.Errorf("no stock: sandboxset %s is not in the cache", r.Set)}
	}
	template, err := t.template(set)
	if err != nil {
		return nil, againError{fmt.Errorf("no stock: %w", err)}
	}
	box := newBox(set, template)
	annotate(box, keyPriority, "100")
	give(box, r)
	stored, err := t.in(Sandboxes, r.Namespace).Create(ctx, box, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create sandbox: %w", err)
	}
	return stored, nil
}

// give makes a Sandbox somebody's.
func give(box *unstructured.Unstructured, r Request) {
	for k, v := range r.Annotations {
		annotate(box, k, v)
	}
	if r.Claim != "" {
		label(box, labelClaim, r.Claim)
	}
	for k, v := range r.Labels {
		label(box, k, v)
	}
	if r.Image != "" {
		runImage(box, r.Image)
	}
	box.SetOwnerReferences(nil)
	label(box, labelClaimed, yes)
	annotate(box, keyClaimedAt, time.Now().Format(time.RFC3339))
	lock(box, string(uuid.NewUUID()), r.User)
	if template, is, _ := unstructured.NestedMap(box.Object, "spec", "template"); is && template != nil {
		_ = unstructured.SetNestedField(box.Object, r.User, "spec", "template", "metadata", "labels", keyOwner)
	}
}

func runImage(box *unstructured.Unstructured, image string) {
	containers, _, _ := unstructured.NestedSlice(box.Object, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return
	}
	if first, is := containers[0].(map[string]any); is {
		first["image"] = image
		_ = unstructured.SetNestedSlice(box.Object, containers, "spec", "template", "spec", "containers")
	}
}

// again reports whether another try may follow an error.
func again(err error) bool {
	var a againError
	return errors.As(err, &a)
}
