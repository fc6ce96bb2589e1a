package platform

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/intern"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// Member is the object of a member, or of one that a claim has, as caches keep it:
// what is looked at beside admission, and no more. It must not be changed.
type Member struct {
	namespace       unique.Handle[string]
	Name            string
	UID             types.UID
	ResourceVersion string
	Generation      int64
	// podName is the name of its Pod; nil when it has the member's, as most do.
	podName *string
	// created, ready and deleted are seconds since 1970; 0 for never.
	created, ready, deleted int64
	// Traits are what it has in common with other members of its pool.
	*Traits

	judged atomic.Pointer[judgedMember]
}

// Traits are what the members of a pool have in common, kept once.
type Traits struct {
	Labels, Annotations map[string]string
	Owners              []metav1.OwnerReference
	Content             *Content
	MemberTraits
	// podNameKey is the annotation that names its Pod; "" for none.
	podNameKey string
}

// MemberTraits are what a platform says of a member beside its content, and what
// members of a pool have in common.
type MemberTraits struct {
	// Controller is the pool or claim that has it.
	Controller freshness.Owner
	// Pooled: it was made for a pool, and nobody has taken it.
	Pooled bool
	// Used: a claim has it, or had it.
	Used bool
	// Shown: the claimants do not pass it over.
	Shown bool
	// Hideable: if it is hidden it can be shown again.
	Hideable bool
	// NamedFirst: who takes it has written that into the claim before.
	NamedFirst bool
	// Template is the one that it says it was built from; "" when it does not.
	Template string
	// ByReference: it says no more of its Pod than that name, so that only its Pod shows
	// which revision it is built from.
	ByReference bool
	// Scheduler is the one that it names itself; "" for none.
	Scheduler string
	// Unevictable: its Pod refuses to be evicted for as long as it is there, so that it has
	// to be replaced by whoever wants the node empty. One that names its node itself would
	// come back there, and is not.
	Unevictable bool
}

// Description is what a platform reads off the object of a member.
type Description struct {
	MemberTraits
	// Labels and Annotations are those worth keeping: see OwnKeys.
	Labels, Annotations map[string]string
	// PodName is the name of its Pod, PodNameKey the annotation that says so; "" when
	// none does.
	PodName, PodNameKey string
	// ReadySince is when it became ready; zero when it is not.
	ReadySince time.Time
}

// Describer reads what caches keep of members and of their Pods.
type Describer interface {
	DescribeMember(member *unstructured.Unstructured) Description
	// ContentOf is what a member is built from.
	ContentOf(member *unstructured.Unstructured) (revision.Blueprint, error)
	// DescribePod returns the name of the member that has a Pod, "" when none has, and
	// what runs in it.
	DescribePod(pod *unstructured.Unstructured) (member string, runs *freshness.Pod, err error)
}

// PodContents is for platforms whose members may say no more of their Pods than what
// template they refer to.
type PodContents interface {
	// ContentOfPod is what a Pod runs, less what no other Pod of its pool has: the node that
	// it is on, and names that were made up for it.
	ContentOfPod(pod *unstructured.Unstructured) (revision.Blueprint, error)
}

// Content is what members are built from, kept once.
type Content struct {
	// Digest names it for certain.
	Digest [sha256.Size]byte
	// blueprint is nil when there is no room to keep it.
	blueprint *revision.Blueprint
	// unreadable says why there is none.
	unreadable error
}

// Blueprint is what members are built from; false when it is not kept.
func (c *Content) Blueprint() (revision.Blueprint, bool) {
	if c.blueprint == nil {
		return revision.Blueprint{}, false
	}
	return *c.blueprint, true
}

const (
	// MaxContents bounds what contents of members are kept in memory, in bytes of
	// their canonical JSON; a tree of it takes some five times as much. Members that
	// differ from all others are read again when they have to be judged.
	MaxContents = 8 << 20
	// maxValue and maxOwners bound what one member's metadata is kept of.
	maxValue, maxOwners = 512, 32
)

// Reducer makes Members and MemberPods, and shares what they have in common.
type Reducer struct {
	describer Describer

	contents intern.Table[[sha256.Size]byte, Content]
	traits   intern.Table[[sha256.Size]byte, Traits]
	pods     intern.Table[[sha256.Size]byte, podTraits]
	// kept is how many bytes of contents there are.
	kept atomic.Int64
}

// NewReducer returns a Reducer of a platform's objects.
func NewReducer(d Describer) *Reducer { return &Reducer{describer: d} }

// Member reduces the object of a member. before is an earlier version of it, or nil where
// none is known for certain.
func (r *Reducer) Member(u *unstructured.Unstructured, before *Member) *Member {
	is := r.describer.DescribeMember(u)
	m := &Member{
		namespace: unique.Make(u.GetNamespace()), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
		Generation: u.GetGeneration(), created: seconds(u.GetCreationTimestamp().Time), ready: seconds(is.ReadySince),
	}
	if at := u.GetDeletionTimestamp(); at != nil {
		m.deleted = seconds(at.Time)
	}
	if is.PodName != m.Name && is.PodName != "" {
		name := is.PodName
		m.podName = &name
	}
	if before != nil && before.UID == m.UID {
		m.Name, m.UID = before.Name, before.UID
	}
	m.Traits = r.traitsOf(u, is, r.content(u, before))
	return m
}

// seconds is 0 for the zero time.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func at(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// content is not computed again for a spec that nobody has written to. A generation
// names one within the history that a watch tells of, and no further.
func (r *Reducer) content(u *unstructured.Unstructured, before *Member) *Content {
	if before != nil && before.UID == u.GetUID() && before.Generation == u.GetGeneration() && before.Generation > 0 {
		return before.Content
	}
	b, err := r.describer.ContentOf(u)
	if err != nil {
		return &Content{unreadable: err}
	}
	return r.keep(b)
}

// keep keeps a content once, as long as there is room.
func (r *Reducer) keep(b revision.Blueprint) *Content {
	raw := b.JSON()
	size := int64(len(raw))
	return r.contents.Get(sha256.Sum256(raw), func(digest [sha256.Size]byte) (*Content, func()) {
		if r.kept.Add(size) > MaxContents {
			r.kept.Add(-size)
			return &Content{Digest: digest}, nil
		}
		return &Content{Digest: digest, blueprint: &b}, func() { r.kept.Add(-size) }
	})
}

func (r *Reducer) traitsOf(u *unstructured.Unstructured, is Description, content *Content) *Traits {
	t := Traits{
		Labels: is.Labels, Annotations: is.Annotations, Owners: fewOwners(u.GetOwnerReferences()), Content: content,
		MemberTraits: is.MemberTraits, podNameKey: is.PodNameKey,
	}
	// The name of its Pod is its own.
	delete(t.Annotations, is.PodNameKey)
	if content.unreadable != nil {
		return &t
	}
	key := Digest(t.Labels, t.Annotations, t.Owners, content.Digest[:], t.MemberTraits, t.podNameKey)
	return r.traits.Get(key, func([sha256.Size]byte) (*Traits, func()) { return &t, nil })
}

// Digest names values for certain that are plain JSON.
func Digest(values ...any) [sha256.Size]byte {
	raw, err := json.Marshal(values)
	if err != nil {
		panic("marshalling what came as JSON: " + err.Error())
	}
	return sha256.Sum256(raw)
}

// OwnKeys are those labels, or annotations, of these domains and of Freshbind. No value
// that a platform or Freshbind writes is longer than a name.
func OwnKeys(all map[string]string, domains ...string) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(key, value string) bool {
		domain, _, _ := strings.Cut(key, "/")
		return len(value) > maxValue || domain != settings.Domain && !slices.Contains(domains, domain)
	})
	return out
}

// fewOwners keeps the controller in any case.
func fewOwners(all []metav1.OwnerReference) []metav1.OwnerReference {
	if len(all) <= maxOwners {
		return all
	}
	few := append([]metav1.OwnerReference(nil), all[:maxOwners]...)
	for _, ref := range all[maxOwners:] {
		if ref.Controller != nil && *ref.Controller {
			few = append(few, ref)
		}
	}
	return few
}

// The getters are named as those of objects.

func (m *Member) GetNamespace() string       { return m.namespace.Value() }
func (m *Member) GetName() string            { return m.Name }
func (m *Member) GetUID() types.UID          { return m.UID }
func (m *Member) GetResourceVersion() string { return m.ResourceVersion }

// GetLabels returns those of the platform and of Freshbind.
func (m *Member) GetLabels() map[string]string { return m.Labels }

// GetAnnotations returns those of the platform and of Freshbind, its Pod's name
// left out.
func (m *Member) GetAnnotations() map[string]string { return m.Annotations }

// Created is when it was born.
func (m *Member) Created() time.Time { return at(m.created) }

// ReadySince is when it became ready; zero when it is not.
func (m *Member) ReadySince() time.Time { return at(m.ready) }

// Deleting reports whether its deletion has begun.
func (m *Member) Deleting() bool { return m.deleted != 0 }

// PodName returns the name of the Pod that it runs in, by what it says.
func (m *Member) PodName() string {
	if m.podName != nil {
		return *m.podName
	}
	return m.Name
}

// Stamp is the revision that it is labelled with; "" for none.
func (m *Member) Stamp() string { return m.Labels[settings.StampKey] }

// CreatedByPool reports whether a pool's controller created it, as the API server
// knew it then.
func (m *Member) CreatedByPool() bool {
	return m.Annotations[settings.CreatedByKey] == settings.CreatedByPool
}

// NamesScheduler reports whether it says itself who schedules its Pod.
func (m *Member) NamesScheduler() bool { return m.Scheduler != "" }

// Pool returns the pool that has it; "" when none has.
func (m *Member) Pool() (name string, uid types.UID) {
	if m.Controller.Kind == freshness.OwnedByPool {
		return m.Controller.Name, types.UID(m.Controller.UID)
	}
	return "", ""
}

// judgedAs is the member as a verdict sees it, with its content.
func (m *Member) judgedAs(content revision.Blueprint) freshness.Member {
	generation := m.Generation
	if m.ByReference {
		// It vouches for nothing of what is in its Pod.
		generation = 0
	}
	return freshness.Member{
		Name: m.Name, UID: string(m.UID), Controller: m.Controller, Deleting: m.Deleting(), Used: m.Used,
		NamedFirst: m.NamedFirst, Generation: generation, Template: m.Template,
		Content: content, Proposed: content, PodName: m.PodName(), Created: m.Created(),
	}
}

// Metadata is what the metadata of its object is, as far as it is kept.
func (m *Member) Metadata() metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Namespace: m.GetNamespace(), Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		CreationTimestamp: metav1.NewTime(m.Created()), Labels: m.Labels, Annotations: m.Annotations, OwnerReferences: m.Owners,
	}
	if m.podName != nil && m.podNameKey != "" {
		meta.Annotations = maps.Clone(m.Annotations)
		if meta.Annotations == nil {
			meta.Annotations = map[string]string{}
		}
		meta.Annotations[m.podNameKey] = *m.podName
	}
	if m.deleted != 0 {
		deleted := metav1.NewTime(at(m.deleted))
		meta.DeletionTimestamp = &deleted
	}
	return meta
}
