package platform

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/revision"
)

// Objects is what a platform knows without a cluster: which kinds it has, and what
// their objects say. Whoever needs a part of it asks for that part only.
type Objects interface {
	Catalog
	Owners
	Selectors
	Metadata
	Pools
	Renderer
	Visibility
	Describer
}

// Catalog lists what a platform is made of.
type Catalog interface {
	Kinds() Kinds
}

// Kinds are those of a platform. Where a pool is its own template both are the same
// kind, and where claims have no object there is no Claim.
type Kinds struct {
	Member, Claim, Template, Pool Kind
	// SharedTemplate is the kind of templates that pools can refer to where a pool is its own
	// template otherwise; none elsewhere. A cluster need not serve it.
	SharedTemplate Kind
	// Product is what has to be installed, in messages.
	Product string
	// Versions are the API versions of all of them, the preferred one first.
	Versions []string
}

// HasClaims reports whether claims have objects.
func (k Kinds) HasClaims() bool { return !k.Claim.Empty() }

// required are the kinds without which there is nothing to guard.
func (k Kinds) required() []Kind {
	out := []Kind{k.Member, k.Template, k.Pool}
	if k.HasClaims() {
		out = append(out, k.Claim)
	}
	return out
}

// all are the kinds that there can be.
func (k Kinds) all() []Kind {
	if k.SharedTemplate.Empty() {
		return k.required()
	}
	return append(k.required(), k.SharedTemplate)
}

// Resources are the plurals of all kinds, each one once.
func (k Kinds) Resources() []string {
	var out []string
	for _, kind := range k.all() {
		out = append(out, kind.Resource)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Kind is one kind of objects.
type Kind struct {
	schema.GroupKind
	// Resource is its plural, as in paths of the API.
	Resource string
	// ShortNames are what people may call it besides.
	ShortNames []string
}

// GroupResource names it in reads.
func (k Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// Owners says whose an object is.
type Owners interface {
	// Claims are the claims that have a member.
	Claims(member metav1.Object) []freshness.Owner
	// IsPool reports whether an owner is a pool, IsMember whether it is a member, as
	// that of a Pod.
	IsPool(owner *metav1.OwnerReference) bool
	IsMember(owner *metav1.OwnerReference) bool
}

// Selectors find members and their Pods by labels.
type Selectors interface {
	// PooledMembers are those that were made for a pool and that nobody has taken.
	PooledMembers() labels.Selector
	// MembersOf is PooledMembers of one pool.
	MembersOf(pool string) labels.Selector
	// MemberPods are the Pods of all members.
	MemberPods() labels.Selector
}

// Metadata reads what the metadata of a member tells.
type Metadata interface {
	// PodOf is the name of the Pod that a member runs in.
	PodOf(member metav1.Object) string
	// IsShown reports whether claimants do not pass it over.
	IsShown(member metav1.Object) bool
	// MemberOf is the name of the member that has a Pod; "" when none has.
	MemberOf(pod metav1.Object) string
}

// Pools reads pools.
type Pools interface {
	Pool(pool *unstructured.Unstructured) Pool
}

// Pool is what a pool says, beside what verdicts depend on.
type Pool struct {
	// Template is the name of the template that it refers to.
	Template string
	// TemplateKind is the kind of that where it is not the platform's own kind of
	// templates; "" where it is. Templates of two kinds can have one name.
	TemplateKind string
	// Replicas is how many members it is to have.
	Replicas int
	// Recreates: the platform itself replaces its stale members, and takes hidden ones
	// for stale.
	Recreates bool
	// Withholds: claims are not given its stale members, although the platform is the one
	// to replace them.
	Withholds bool
	// HiddenFirst is how long a member is hidden before it is deleted: who still sees
	// it as it was and asks for it is refused then and tries another one, where one that
	// is gone would have been an error. 0 where nobody minds.
	HiddenFirst time.Duration
}

// RefersTo reports whether a template is the pool's: one of the platform's own kind where
// the kind is "".
func (p Pool) RefersTo(kind, template string) bool {
	return p.TemplateKind == kind && p.Template == template
}

// Renderer renders templates.
type Renderer interface {
	// Render is what a member is built from, given the template.
	Render(template *unstructured.Unstructured) (revision.Blueprint, error)
}

// Visibility hides members from claimants, and shows them again. Each patch applies
// to exactly the version that it is made for.
type Visibility interface {
	// Hide is a JSON merge patch after which claimants pass the member over. One that
	// could not be shown again is left as it is.
	Hide(member Version) []byte
	// Show is one that offers the member, again if need be.
	Show(member Version) []byte
	// Offer is one of the status, after which a member that is shown is offered again;
	// false when there is none, so that hiding and showing it has to do.
	Offer(member *unstructured.Unstructured) (patch []byte, ok bool)
}

// Version is one version of an object.
type Version interface {
	GetUID() types.UID
	GetResourceVersion() string
	GetLabels() map[string]string
	GetAnnotations() map[string]string
}

// BarePods is for releases whose members are Pods without an object beside them.
type BarePods interface {
	// HasBarePods reports whether pools of this version may have some.
	HasBarePods(pools schema.GroupVersion) bool
	// BarePodsOf selects those of a pool.
	BarePodsOf(pool string) labels.Selector
}

// ReleasedPods is about bare Pods that have left their pool.
type ReleasedPods interface {
	// WasMember reports whether a Pod without an owner was a pool's. pool is the one in
	// force that it may be of; nil for none.
	WasMember(pod *unstructured.Unstructured, pool *freshness.Pool) bool
	// TakenFor is the UID of the claim that it was taken for; "" when it does not say.
	TakenFor(pod metav1.Object) string
}

// Inspector compares members with what is in force for a pool.
type Inspector interface {
	// Inspect prepares for a pool and the template that it refers to, as stored; nil when
	// that template does not exist.
	Inspect(ctx context.Context, pool, template *unstructured.Unstructured) (*Inspection, error)
}
