package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/upstream"
)

// Strategies of a pool's own spec.
const (
	Recreate    = "Recreate"
	OnReplenish = "OnReplenish"
)

// Pool is a warm pool with a template of its own.
type Pool struct {
	Name, Template string
	// Image is the one that the template starts with.
	Image    string
	Replicas int
	// Strategy is Recreate or OnReplenish; "" leaves the field out.
	Strategy string
}

// Conflicts is how a write is tried again after a Conflict: controllers write to the
// same objects, and on a busy machine often.
var Conflicts = wait.Backoff{Steps: 200, Duration: 50 * time.Millisecond}

// CreatePool stores the template and the pool.
func (n *Namespace) CreatePool(ctx context.Context, p Pool) error {
	template := builders.MakeTemplate(n.Name, p.Template).APIVersion(n.Version).Image(p.Image)
	pool := builders.MakePool(n.Name, p.Name).APIVersion(n.Version).Template(p.Template).Replicas(int64(p.Replicas))
	if p.Strategy != "" {
		pool.Strategy(p.Strategy)
	}
	return n.Create(ctx, template.Obj(), pool.Obj())
}

// SetImage changes the image of a template's first container in place and
// returns the template's new resourceVersion.
func (n *Namespace) SetImage(ctx context.Context, template, image string) (string, error) {
	var version string
	err := retry.RetryOnConflict(Conflicts, func() error {
		stored, err := n.Resource(upstream.SandboxTemplates).Get(ctx, template, metav1.GetOptions{})
		if err != nil {
			return err
		}
		changed := builders.TemplateFrom(stored).Image(image).Obj()
		updated, err := n.Resource(upstream.SandboxTemplates).Update(ctx, changed, metav1.UpdateOptions{})
		if err == nil {
			version = updated.GetResourceVersion()
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("set image of template %s/%s: %w", n.Name, template, err)
	}
	return version, nil
}

// Member is an unclaimed Sandbox of a pool.
type Member struct {
	Name string
	UID  types.UID
	// Image is that of its first container.
	Image string
	// Ready is its condition; Shown: it carries both labels without which
	// agent-sandbox passes it over (isAdoptable, sandboxclaim_controller.go).
	Ready, Shown bool
	Deleting     bool
}

// takeable: a claim can be given it, as far as its own state says.
func (m Member) takeable() bool { return m.Ready && m.Shown && !m.Deleting }

// Members lists the members of a pool.
func (n *Namespace) Members(ctx context.Context, pool string) ([]Member, error) {
	list, err := n.Resource(upstream.Sandboxes).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list sandboxes of %s: %w", n.Name, err)
	}
	var members []Member
	for i := range list.Items {
		if isMember(&list.Items[i], pool) {
			members = append(members, memberOf(&list.Items[i]))
		}
	}
	return members, nil
}

func isMember(sandbox *unstructured.Unstructured, pool string) bool {
	owner := metav1.GetControllerOf(sandbox)
	return owner != nil && owner.Kind == "SandboxWarmPool" && owner.Name == pool
}

func memberOf(sandbox *unstructured.Unstructured) Member {
	labels := sandbox.GetLabels()
	_, pooled := labels[builders.LabelPool]
	_, referred := labels[builders.LabelTemplateRef]
	return Member{
		Name: sandbox.GetName(), UID: sandbox.GetUID(), Image: ImageOf(sandbox), Ready: isReady(sandbox),
		Shown: pooled && referred, Deleting: sandbox.GetDeletionTimestamp() != nil,
	}
}

// PoolOf returns the UID of the pool that controls a Sandbox; "" when none does.
func PoolOf(sandbox *unstructured.Unstructured) string {
	owner := metav1.GetControllerOfNoCopy(sandbox)
	if owner == nil || owner.Kind != "SandboxWarmPool" {
		return ""
	}
	return string(owner.UID)
}

// ImageOf is the image of the first container of a Sandbox or a template; ""
// when it has none.
func ImageOf(o *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "podTemplate", "spec", "containers")
	if len(containers) == 0 {
		return ""
	}
	first, _ := containers[0].(map[string]any)
	image, _ := first["image"].(string)
	return image
}

// WaitPool waits until a pool is at rest: exactly as many members as it wants,
// all of them ready, shown and, unless image is "", of that image.
func (n *Namespace) WaitPool(ctx context.Context, p Pool, image string, within time.Duration) ([]Member, error) {
	list := func(ctx context.Context) ([]Member, error) { return n.Members(ctx, p.Name) }
	return WaitRest(ctx, n.Name+"/"+p.Name, list, p.Replicas, image, within)
}

// WaitRest does so for any pool whose members can be listed.
func WaitRest(
	ctx context.Context, pool string, list func(context.Context) ([]Member, error), replicas int, image string, within time.Duration,
) ([]Member, error) {
	var members []Member
	what := fmt.Sprintf("pool %s with %d ready members", pool, replicas)
	if image != "" {
		what += " of image " + image
	}
	err := until(ctx, within, what, func(ctx context.Context) (string, bool, error) {
		var err error
		if members, err = list(ctx); err != nil {
			return "", false, err
		}
		return describe(members), atRest(members, replicas, image), nil
	})
	if err != nil {
		return nil, err
	}
	return members, nil
}

// WaitSeen waits until agent-sandbox has seen every write to Sandboxes so far, which
// decides whether a claim finds a member: it has seen a Sandbox that is made now, and
// its watch delivers in order.
func (n *Namespace) WaitSeen(ctx context.Context, within time.Duration) error {
	const name = "freshbind-seen"
	probe := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"podTemplate": map[string]any{
		"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "probe"}}},
	}}}}
	probe.SetAPIVersion(builders.GroupCore + "/" + n.Version)
	probe.SetKind("Sandbox")
	probe.SetName(name)
	if err := n.Create(ctx, probe); err != nil {
		return err
	}
	err := until(ctx, within, "agent-sandbox to see a Sandbox in "+n.Name, func(ctx context.Context) (string, bool, error) {
		stored, err := n.Resource(upstream.Sandboxes).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", false, fmt.Errorf("get sandbox %s/%s: %w", n.Name, name, err)
		}
		_, seen := condition(stored)
		return "no condition", seen, nil
	})
	if deleted := n.Resource(upstream.Sandboxes).Delete(ctx, name, metav1.DeleteOptions{}); err == nil && deleted != nil {
		err = fmt.Errorf("delete sandbox %s/%s: %w", n.Name, name, deleted)
	}
	return err
}

func atRest(members []Member, replicas int, image string) bool {
	return len(members) == replicas && !slices.ContainsFunc(members, func(m Member) bool {
		return !m.takeable() || image != "" && m.Image != image
	})
}

// describe counts members by state, for errors.
func describe(members []Member) string {
	var ready, hidden, deleting int
	images := map[string]int{}
	for _, m := range members {
		images[m.Image]++
		switch {
		case m.Deleting:
			deleting++
		case !m.Shown:
			hidden++
		case m.Ready:
			ready++
		}
	}
	counts := make([]string, 0, len(images))
	for image, count := range images {
		counts = append(counts, fmt.Sprintf("%d of %s", count, image))
	}
	slices.Sort(counts)
	return fmt.Sprintf("%d members, %d ready, %d hidden, %d being deleted [%s]",
		len(members), ready, hidden, deleting, strings.Join(counts, ", "))
}
