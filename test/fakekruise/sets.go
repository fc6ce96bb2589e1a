package fakekruise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// setController keeps SandboxSets as large as they are to be, and their members of the
// revision in force.
type setController struct {
	*view
	queue queue

	mu sync.Mutex
	// made and gone are the names of members, by the UID of their SandboxSet, whose creation
	// or deletion the cache has not shown.
	made, gone map[types.UID]map[string]bool
}

func (c *setController) setChanged(_, set *unstructured.Unstructured) { c.queue.Add(keyOf(set)) }

// boxChanged wakes the SandboxSet that has a Sandbox, and the one that had it. What was made
// is seen even if it is gone before anybody looks.
func (c *setController) boxChanged(old, box *unstructured.Unstructured) {
	for _, u := range []*unstructured.Unstructured{old, box} {
		if u == nil {
			continue
		}
		if ref := metav1.GetControllerOfNoCopy(u); ref != nil && ref.Kind == "SandboxSet" {
			c.mu.Lock()
			delete(c.made[ref.UID], u.GetName())
			c.mu.Unlock()
			c.queue.Add(u.GetNamespace() + "/" + ref.Name)
		}
	}
}

// members are those of a SandboxSet, by what they count as.
type members struct{ creating, available, dead []*unstructured.Unstructured }

func (c *setController) reconcile(ctx context.Context, key string) (time.Duration, error) {
	set := c.get(Sets, key)
	if set == nil || set.GetDeletionTimestamp() != nil {
		return 0, nil
	}
	template, err := c.template(set)
	if err != nil {
		return 0, err
	}
	hash, err := revision(set, template)
	if err != nil {
		return 0, err
	}
	m := c.membersOf(set)
	born, leaving := c.unseen(set)
	total := len(m.creating) + len(m.available) + born
	delta := number(set, "spec", "replicas") - total

	var errs []error
	switch {
	case delta > 0:
		for range delta {
			errs = append(errs, c.birth(ctx, set, template, hash))
		}
	case delta < 0 && born == 0 && leaving == 0:
		errs = append(errs, c.end(ctx, set, c.excess(m, hash, -delta)...))
	}
	errs = append(errs, c.bury(ctx, m.dead))
	if delta == 0 && born == 0 && leaving == 0 && !c.options.WithoutRolling {
		errs = append(errs, c.roll(ctx, set, m, hash))
	}
	errs = append(errs, c.status(ctx, set, hash, total, m))
	return 0, errors.Join(errs...)
}

// bury deletes what has ended.
func (c *setController) bury(ctx context.Context, dead []*unstructured.Unstructured) error {
	var errs []error
	for _, box := range dead {
		if box.GetDeletionTimestamp() == nil {
			errs = append(errs, ignoreNotFound(c.in(Sandboxes, box.GetNamespace()).Delete(ctx, box.GetName(), metav1.DeleteOptions{})))
		}
	}
	return errors.Join(errs...)
}

func (c *setController) membersOf(set *unstructured.Unstructured) members {
	var m members
	now := time.Now()
	for _, box := range c.boxes(byController, string(set.GetUID())) {
		switch stateOf(box, now) {
		case available:
			m.available = append(m.available, box)
		case creating:
			m.creating = append(m.creating, box)
		case dead, running:
			m.dead = append(m.dead, box)
		}
	}
	return m
}

// unseen counts the births and deletions that the cache does not show.
func (c *setController) unseen(set *unstructured.Unstructured) (born, leaving int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.made[set.GetUID()] {
		if c.get(Sandboxes, set.GetNamespace()+"/"+name) != nil {
			delete(c.made[set.GetUID()], name)
		}
	}
	for name := range c.gone[set.GetUID()] {
		if box := c.get(Sandboxes, set.GetNamespace()+"/"+name); box == nil || box.GetDeletionTimestamp() != nil {
			delete(c.gone[set.GetUID()], name)
		}
	}
	return len(c.made[set.GetUID()]), len(c.gone[set.GetUID()])
}

func note(of map[types.UID]map[string]bool, set *unstructured.Unstructured, name string) {
	if of[set.GetUID()] == nil {
		of[set.GetUID()] = map[string]bool{}
	}
	of[set.GetUID()][name] = true
}

func (c *setController) birth(ctx context.Context, set, template *unstructured.Unstructured, hash string) error {
	box := newBox(set, template)
	label(box, labelHash, hash)
	box.SetOwnerReferences(controlledBy(set))
	c.mu.Lock()
	defer c.mu.Unlock()
	stored, err := c.in(Sandboxes, set.GetNamespace()).Create(ctx, box, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create member of %s: %w", set.GetName(), err)
	}
	note(c.made, set, stored.GetName())
	return nil
}

// excess are as many members as are too many: those that are not ready first, then old ones.
func (c *setController) excess(m members, hash string, n int) []*unstructured.Unstructured {
	all := slices.Concat(m.creating, m.available)
	rank := func(box *unstructured.Unstructured) int {
		switch {
		case box.GetLabels()[labelHash] != hash:
			return 0
		case !isReady(box):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	return all[:min(n, len(all))]
}

// roll deletes older members: all that are not ready, and of the others the oldest, as many
// as may be missing.
func (c *setController) roll(ctx context.Context, set *unstructured.Unstructured, m members, hash string) error {
	_, oldCreating := split(m.creating, hash)
	_, old := split(m.available, hash)
	missing := len(m.creating) - len(oldCreating)
	allowed := max(mayMiss(set)-missing, 0)
	slices.SortStableFunc(old, func(a, b *unstructured.Unstructured) int {
		return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
	})
	return c.end(ctx, set, slices.Concat(oldCreating, old[:min(allowed, len(old))])...)
}

// mayMiss is spec.updateStrategy.maxUnavailable in members, rounded up; a fifth by default.
func mayMiss(set *unstructured.Unstructured) int {
	replicas := number(set, "spec", "replicas")
	value, _, _ := unstructured.NestedFieldNoCopy(set.Object, "spec", "updateStrategy", "maxUnavailable")
	switch value := value.(type) {
	case int64:
		return int(value)
	case string:
		percent, _ := strconv.Atoi(strings.TrimSuffix(value, "%"))
		return int(math.Ceil(float64(percent*replicas) / 100))
	}
	return int(math.Ceil(float64(replicas) / 5))
}

// end locks members, and then deletes them by name alone. What somebody has locked ends
// the round.
func (c *setController) end(ctx context.Context, set *unstructured.Unstructured, boxes ...*unstructured.Unstructured) error {
	key := string(uuid.NewUUID())
	for _, box := range boxes {
		if annotations := box.GetAnnotations(); annotations[keyLock] != "" && annotations[keyOwner] != scaleDown {
			return fmt.Errorf("sandbox %s is claimed", box.GetName())
		}
		box = box.DeepCopy()
		lock(box, key, scaleDown)
		if _, err := c.in(Sandboxes, box.GetNamespace()).Update(ctx, box, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("lock sandbox %s: %w", box.GetName(), err)
		}
		c.mu.Lock()
		note(c.gone, set, box.GetName())
		c.mu.Unlock()
		if err := c.in(Sandboxes, box.GetNamespace()).Delete(ctx, box.GetName(), metav1.DeleteOptions{}); ignoreNotFound(err) != nil {
			return fmt.Errorf("delete sandbox %s: %w", box.GetName(), err)
		}
	}
	return nil
}

func (c *setController) status(ctx context.Context, set *unstructured.Unstructured, hash string, total int, m members) error {
	status, _, _ := unstructured.NestedMap(set.Object, "status")
	now := map[string]any{
		"replicas": int64(total), "availableReplicas": int64(len(m.available)), "updateRevision": hash, "observedGeneration": set.GetGeneration(),
	}
	changed := false
	for k, v := range now {
		changed = changed || status[k] != v
	}
	if !changed {
		return nil
	}
	raw, err := json.Marshal(map[string]any{"status": maps.Clone(now)})
	if err != nil {
		return err
	}
	_, err = c.in(Sets, set.GetNamespace()).Patch(ctx, set.GetName(), types.MergePatchType, raw, metav1.PatchOptions{}, "status")
	return ignoreNotFound(err)
}
