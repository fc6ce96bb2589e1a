package agentsandbox

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
)

const (
	// WarmPoolLabel is on every Sandbox that was made for a pool, until it is
	// bound, with a hash of the pool's name.
	WarmPoolLabel = warmPoolLabel
	// PodSandboxLabel is on the Pod of every Sandbox, with a hash of its name.
	PodSandboxLabel = sandboxNameHashLabel
	// BarePodVersion is the only one that releases serve whose members are Pods.
	BarePodVersion = "v1alpha1"
)

// Inspection compares the members of one pool with what is in force for it,
// without a read for each of them.
type Inspection struct {
	facts freshness.Snapshot
}

// Inspect prepares for a pool and the template that it refers to, as stored;
// nil when that template does not exist.
func (p *Platform) Inspect(ctx context.Context, pool, template *unstructured.Unstructured) (*Inspection, error) {
	inForce, err := p.poolInForce(ctx, pool)
	if err != nil {
		return nil, err
	}
	f := platform.Facts{Snapshot: freshness.Snapshot{
		Operation: freshness.Stored, Pool: inForce, Injected: injectedPaths(pool),
	}}
	if template != nil {
		if err := p.renderInto(ctx, &f, stored{pool: pool, template: template}); err != nil {
			return nil, err
		}
	}
	return &Inspection{facts: f.Snapshot}, nil
}

// Revision is the one in force; "" when there is no template.
func (i *Inspection) Revision() string {
	if i.facts.Template == nil {
		return ""
	}
	return i.facts.Template.Hash
}

// Strategy is the pool's.
func (i *Inspection) Strategy() freshness.Strategy { return i.facts.Pool.Strategy }

// Restarted is when the pool asked for a restart; zero when it did not.
func (i *Inspection) Restarted() time.Time { return i.facts.Pool.Restarted }

// TemplateOf returns the name of the template that a pool refers to.
func TemplateOf(pool *unstructured.Unstructured) string {
	return str(pool.Object, "spec", "sandboxTemplateRef", "name")
}

// Member says what a member is. An error means that it cannot be read.
func (i *Inspection) Member(sandbox *unstructured.Unstructured) (freshness.Verdict, error) {
	s := i.facts
	var err error
	if s.Member, err = memberOf(platform.Write{Operation: freshness.Stored, New: sandbox}); err != nil {
		return freshness.Verdict{}, err
	}
	return freshness.Judge(s), nil
}

// Differences are the paths at which the member differs from what is in force.
func (i *Inspection) Differences(sandbox *unstructured.Unstructured) ([]string, error) {
	content, err := ContentOf(sandbox)
	if err != nil || i.facts.Template == nil {
		return nil, err
	}
	var paths []string
	for _, d := range revision.Compare(i.facts.Template.Content, content, i.facts.Injected) {
		paths = append(paths, d.Root)
	}
	return paths, nil
}

// ReadySince is when a Sandbox became ready; zero when it is not.
func ReadySince(sandbox *unstructured.Unstructured) time.Time {
	status, _ := sandbox.Object["status"].(map[string]any)
	for _, c := range objects(status, "conditions") {
		if str(c, "type") != "Ready" || str(c, "status") != "True" {
			continue
		}
		at, err := time.Parse(time.RFC3339, str(c, "lastTransitionTime"))
		if err != nil {
			return sandbox.GetCreationTimestamp().Time
		}
		return at
	}
	return time.Time{}
}

// Shown reports whether the claim controller does not pass the member over.
func Shown(sandbox *unstructured.Unstructured) bool {
	return sandbox.GetLabels()[TemplateRefHashLabel] != ""
}

// Recreates reports whether the platform itself replaces the pool's stale
// members; it then takes hidden ones for stale.
func Recreates(pool *unstructured.Unstructured) bool {
	return str(pool.Object, "spec", "updateStrategy", "type") == string(freshness.Recreate)
}

// Replicas is how many members the pool is to have; 1 where it does not say, as
// the CRD defaults it.
func Replicas(pool *unstructured.Unstructured) int {
	n, found, err := unstructured.NestedInt64(pool.Object, "spec", "replicas")
	if err != nil || !found {
		return 1
	}
	return int(n)
}

// Leaving says why a node is about to go, "" when it is not; nil is one that is
// gone.
func Leaving(node *unstructured.Unstructured) string { return leaving(node) }

// NodeOf is the node that a Pod is on; "" when it is on none.
func NodeOf(pod *unstructured.Unstructured) string { return nodeNameOf(pod) }

// NamesScheduler reports whether a Sandbox itself says who schedules its Pod.
func NamesScheduler(sandbox *unstructured.Unstructured) bool {
	return str(sandbox.Object, "spec", "podTemplate", "spec", "schedulerName") != ""
}

// SchedulerOf is the scheduler that a Pod is for.
func SchedulerOf(pod *unstructured.Unstructured) string {
	return str(pod.Object, "spec", "schedulerName")
}

// PoolOf returns the UID of the pool that has the Sandbox; "" when none has.
func PoolOf(sandbox *unstructured.Unstructured) (name, uid string) {
	if owner := controllerOf(sandbox); owner.Kind == freshness.OwnedByPool {
		return owner.Name, owner.UID
	}
	return "", ""
}

// IsPoolOwner reports whether an owner is a pool.
func IsPoolOwner(owner *metav1.OwnerReference) bool {
	return ownerKind(owner.APIVersion, owner.Kind) == freshness.OwnedByPool
}

// IsSandboxOwner reports whether an owner is a Sandbox.
func IsSandboxOwner(owner *metav1.OwnerReference) bool {
	return IsSandbox(groupKind(owner.APIVersion, owner.Kind))
}

// PodSandbox returns the name of the Sandbox that controls a Pod; "" when none
// does.
func PodSandbox(pod *unstructured.Unstructured) string {
	for _, ref := range pod.GetOwnerReferences() {
		if IsSandbox(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()) {
			return ref.Name
		}
	}
	return ""
}
