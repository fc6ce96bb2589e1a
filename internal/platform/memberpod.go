package platform

import (
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/placement"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// MemberPod is the Pod of a member as caches keep it. It must not be changed.
type MemberPod struct {
	namespace       unique.Handle[string]
	Name            string
	UID             types.UID
	ResourceVersion string
	// sandbox is the name of the member that owns it, Name where that has the same;
	// nil for none.
	sandbox  *string
	node     unique.Handle[string]
	deleting bool
	// owner is a hash of its controller's UID.
	owner uint64
	*podTraits
}

// podTraits are what the Pods of a pool have in common.
type podTraits struct {
	scheduler, stamp string
	gated            bool
	tolerations      []corev1.Toleration
	// ephemeral: it has ephemeral containers; edited: it was written to.
	ephemeral, edited bool
	// images are what it runs; nil when that cannot be read, or is too much.
	images *revision.Blueprint
	// whole is all that it runs, kept where its member may not say that, and added what the
	// API server put there.
	whole *Content
	added []string
}

// maxImages bounds what is kept of one Pod's images, in bytes of canonical JSON.
const maxImages = 16 << 10

// Pod reduces the Pod of a member. before is an earlier version of it, or nil.
func (r *Reducer) Pod(u *unstructured.Unstructured, before *MemberPod) *MemberPod {
	p := &MemberPod{
		namespace: unique.Make(u.GetNamespace()), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
		node: unique.Make(placement.NodeName(u)), deleting: u.GetDeletionTimestamp() != nil,
	}
	if before != nil && before.UID == p.UID {
		p.Name, p.UID = before.Name, before.UID
	}
	name, runs, err := r.describer.DescribePod(u)
	switch name {
	case "":
	case p.Name:
		p.sandbox = &p.Name
	default:
		other := name
		p.sandbox = &other
	}
	gates, _, _ := unstructured.NestedSlice(u.Object, "spec", "schedulingGates")
	t := podTraits{scheduler: placement.SchedulerName(u), stamp: u.GetLabels()[settings.StampKey], gated: len(gates) > 0}
	if len(placement.StayTolerations(u)) > 0 {
		t.tolerations = placement.Tolerations(u)
	}
	t.edited = u.GetGeneration() > 1
	if owner := metav1.GetControllerOfNoCopy(u); owner != nil {
		p.owner = hashOf(string(owner.UID))
	} else {
		p.owner = hashOf("")
	}
	var images []byte
	if err == nil {
		t.ephemeral = runs.Ephemeral
		b := runs.Content.Images()
		if images = b.JSON(); len(images) <= maxImages {
			t.images = &b
		}
	}
	t.whole, t.added = r.whole(u)
	var whole [sha256.Size]byte
	if t.whole != nil {
		whole = t.whole.Digest
	}
	key := Digest(t.scheduler, t.stamp, t.gated, t.tolerations, t.ephemeral, t.edited, string(images), whole[:], t.added)
	p.podTraits = r.pods.Get(key, func([sha256.Size]byte) (*podTraits, func()) {
		return &t, nil
	})
	return p
}

// whole is what Pods of a pool share; nil where nobody asks, or it cannot be read.
func (r *Reducer) whole(u *unstructured.Unstructured) (content *Content, added []string) {
	d, asks := r.describer.(PodContents)
	if !asks {
		return nil, nil
	}
	b, err := d.ContentOfPod(u)
	if err != nil {
		return nil, nil
	}
	return r.keep(b), admitted(u)
}

func hashOf(uid string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid))
	return h.Sum64()
}

// of reports whether it is controlled by what has that UID.
func (p *MemberPod) of(uid types.UID) bool { return p.owner == hashOf(string(uid)) }

// Exchanged reports whether somebody wrote to it so that it is not what a birth
// makes, as far as its images tell.
func (p *MemberPod) Exchanged(class freshness.Class) bool {
	return p.edited && class != freshness.Current
}

// Doubt names why a member that is Current, as far as is cached, has to be judged
// with its whole Pod: it or its Pod was written to, or the Pod's stamp names another
// revision; "" for nothing.
func (p *MemberPod) Doubt(m *Member, revision string) string {
	if !p.of(m.UID) || !p.edited && m.Generation <= 1 && (p.stamp == "" || p.stamp == revision) {
		return ""
	}
	return fmt.Sprintf("%s/%t/%d/%s/%s", p.UID, p.edited, m.Generation, p.stamp, revision)
}

// LacksStamp reports whether it is the member's, and nothing says what it is built from: it
// came before Freshbind, or its webhook had no answer in time.
func (p *MemberPod) LacksStamp(m *Member) bool { return p.stamp == "" && !p.deleting && p.of(m.UID) }

func (p *MemberPod) GetNamespace() string       { return p.namespace.Value() }
func (p *MemberPod) GetName() string            { return p.Name }
func (p *MemberPod) GetUID() types.UID          { return p.UID }
func (p *MemberPod) GetResourceVersion() string { return p.ResourceVersion }

// shows is the Pod as a verdict on its member sees it; nil where it shows nothing of what
// runs in it.
func (p *MemberPod) shows(m *Member) *freshness.Pod {
	out := &freshness.Pod{ControllerUID: string(m.UID), Ephemeral: p.ephemeral}
	if m.ByReference && p.whole != nil {
		if b, kept := p.whole.Blueprint(); kept {
			out.Content, out.Whole = b, true
			if out.Generation = 1; p.edited {
				out.Generation = 2
			}
			return out
		}
	}
	if p.images == nil && !p.ephemeral {
		return nil
	}
	if p.images != nil {
		out.Content = *p.images
	}
	return out
}

// Sandbox is the name of the member that has it; "" when none has.
func (p *MemberPod) Sandbox() string {
	if p.sandbox == nil {
		return ""
	}
	return *p.sandbox
}

// Node is where it is; "" when it is nowhere yet.
func (p *MemberPod) Node() string { return p.node.Value() }

// Deleting reports whether its deletion has begun.
func (p *MemberPod) Deleting() bool { return p.deleting }

// Gated reports whether somebody decides when it may be scheduled.
func (p *MemberPod) Gated() bool { return p.gated }

// Scheduler is the one that it is for.
func (p *MemberPod) Scheduler() string { return p.scheduler }

// Stamp is the revision that it is labelled with; "" for none.
func (p *MemberPod) Stamp() string { return p.stamp }

// SameButVersion reports whether nothing that is kept of the Pod differs but its
// version.
func (p *MemberPod) SameButVersion(o *MemberPod) bool {
	return p.UID == o.UID && p.podTraits == o.podTraits && p.node == o.node && p.deleting == o.deleting && p.Sandbox() == o.Sandbox()
}

// MustLeave reports whether it has to leave the node that it is on.
func (p *MemberPod) MustLeave(node freshness.Node) bool { return node.Leaving(p.tolerations) != "" }

// IsUnwelcome reports whether the node that it is on is to be empty of it.
func (p *MemberPod) IsUnwelcome(node freshness.Node) bool { return node.IsCordoned(p.tolerations) }
