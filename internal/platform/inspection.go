package platform

import (
	"context"
	"crypto/sha256"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/revision"
)

// maxJudged bounds how many kinds of members an Inspection remembers. A pool has
// a few: one for each revision, hidden and shown.
const maxJudged = 1024

// Inspection compares the members of one pool with what is in force for it. It
// judges what members have in common once.
type Inspection struct {
	facts    freshness.Snapshot
	injected string
	source   MemberSource
	// contents are those in force and of older revisions, by their digests. Most
	// Inspections are made to find out that nothing has changed, and need none.
	contents func() map[[sha256.Size]byte]revision.Blueprint

	mu     sync.Mutex
	judged map[judgedBy]*judgedMember
	// runs are what members are with their Pods.
	runs map[runsIn]Judgement
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

// judgedBy is all that the verdict on a member depends on beside the Inspection.
type judgedBy struct {
	traits          *Traits
	deleting, young bool
	// elsewhere: it names a Pod of another name.
	elsewhere bool
}

// runsIn is that of a member and of its Pod.
type runsIn struct {
	judgedBy
	pod *podTraits
}

// judgedMember is the outcome of an Inspection.
type judgedMember struct {
	by *Inspection
	Judgement
}

// Judgement says what a member is.
type Judgement struct {
	Class freshness.Class
	// Found names the revision that it is of; "" where none is known.
	Found string
}

// MemberSource reads members and Pods for verdicts.
type MemberSource interface {
	// DescribeMember reads what a member says beside its content.
	DescribeMember(member *unstructured.Unstructured) Description
	// StoredMember is what is stored now of a member; nil when there is none.
	StoredMember(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error)
	// AsMember reads a member as one that somebody may take.
	AsMember(member *unstructured.Unstructured) (freshness.Member, error)
	// AsPod reads a Pod that a member runs in.
	AsPod(pod *unstructured.Unstructured) (*freshness.Pod, error)
}

// NewInspection compares with a snapshot that has everything but a member. injected is
// what the pool's owner says of paths, as written.
func NewInspection(source MemberSource, facts freshness.Snapshot, injected string) *Inspection {
	return &Inspection{
		facts: facts, injected: injected, source: source, judged: map[judgedBy]*judgedMember{}, runs: map[runsIn]Judgement{},
		contents: sync.OnceValue(func() map[[sha256.Size]byte]revision.Blueprint { return contentsOf(facts) }),
	}
}

func contentsOf(facts freshness.Snapshot) map[[sha256.Size]byte]revision.Blueprint {
	out := map[[sha256.Size]byte]revision.Blueprint{}
	for _, k := range facts.Known {
		out[sha256.Sum256(k.Content.JSON())] = k.Content
	}
	if t := facts.Template; t != nil {
		out[sha256.Sum256(t.Content.JSON())] = t.Content
	}
	return out
}

// Same reports whether both say the same of every member.
func (i *Inspection) Same(o *Inspection) bool {
	if i == nil || o == nil || i.injected != o.injected || (i.facts.Template == nil) != (o.facts.Template == nil) {
		return false
	}
	// What claims may be given meanwhile says nothing about what members are.
	a, b := *i.facts.Pool, *o.facts.Pool
	a.AdmitAny, a.Suspended = b.AdmitAny, b.Suspended
	if !reflect.DeepEqual(a, b) {
		return false
	}
	if t, u := i.facts.Template, o.facts.Template; t != nil && (t.Name != u.Name || !t.Content.Equal(u.Content)) {
		return false
	}
	return slices.EqualFunc(i.facts.Known, o.facts.Known, func(a, b freshness.Known) bool { return a.Hash == b.Hash })
}

// Member says what a member is.
func (i *Inspection) Member(ctx context.Context, m *Member) (Judgement, error) {
	if last := m.judged.Load(); last != nil && last.by == i {
		return last.Judgement, nil
	}
	key := i.keyOf(m)
	i.mu.Lock()
	known := i.judged[key]
	i.mu.Unlock()
	if known == nil {
		content, ok, err := i.contentOf(ctx, m)
		if !ok {
			return Judgement{Class: freshness.Unclassified}, err
		}
		judgement, err := i.judge(m, content)
		if err != nil {
			return Judgement{}, err
		}
		known = &judgedMember{by: i, Judgement: judgement}
		i.mu.Lock()
		if len(i.judged) >= maxJudged {
			clear(i.judged)
		}
		i.judged[key] = known
		i.mu.Unlock()
	}
	m.judged.Store(known)
	return known.Judgement, nil
}

// Pod says what a member is with the Pod that a cache shows of it, nil for none, where
// it is that by itself.
func (i *Inspection) Pod(ctx context.Context, m *Member, pod *MemberPod, alone Judgement) (Judgement, error) {
	var shown *freshness.Pod
	if pod != nil && pod.of(m.UID) {
		shown = pod.shows(m)
	}
	if i.facts.Template == nil || alone.Class == freshness.Unclassified {
		return alone, nil
	}
	if shown == nil {
		return unshown(m, alone), nil
	}
	key := runsIn{i.keyOf(m), pod.podTraits}
	i.mu.Lock()
	j, known := i.runs[key]
	i.mu.Unlock()
	if known {
		return j, nil
	}
	content, ok, err := i.contentOf(ctx, m)
	if !ok {
		return Judgement{Class: freshness.Unclassified}, err
	}
	if j, err = i.judgeWith(m, content, shown, pod.added); err != nil {
		return Judgement{}, err
	}
	if !m.ByReference {
		j.Found = alone.Found
	} else if !shown.Whole && j.Class == freshness.Current {
		// Its images are, and they name no revision.
		j.Found = ""
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.runs) >= maxJudged {
		clear(i.runs)
	}
	i.runs[key] = j
	return j, nil
}

// unshown is what a member is whose Pod nobody sees: of one that refers to a template
// nothing else tells.
func unshown(m *Member, alone Judgement) Judgement {
	if m.ByReference && alone.Class == freshness.Current {
		return Judgement{Class: freshness.Unclassified}
	}
	return alone
}

// judgeWith judges a member with its Pod, to which the API server added something.
func (i *Inspection) judgeWith(m *Member, content revision.Blueprint, pod *freshness.Pod, added []string) (Judgement, error) {
	s := i.facts
	s.Member, s.Pod = m.judgedAs(content), pod
	if pod.Whole {
		var err error
		if s.PodInjected, err = PodInjections(nil, s.PodInjected, added...); err != nil {
			return Judgement{}, err
		}
	}
	v, err := freshness.JudgeWithin(s, revision.NewBudget(freshness.MaxWork, nil))
	return Judgement{Class: freshness.ClassOf(v), Found: v.Found}, err
}

// keyOf is what the verdict on a member depends on.
func (i *Inspection) keyOf(m *Member) judgedBy {
	return judgedBy{traits: m.Traits, deleting: m.Deleting(), young: m.Created().After(i.Restarted()), elsewhere: m.podName != nil}
}

// Object returns the verdict on a member whose object was read in full, and on its Pod;
// nil where that was not read.
func (i *Inspection) Object(sandbox, pod *unstructured.Unstructured) (freshness.Verdict, error) {
	s := i.facts
	var err error
	if s.Member, err = i.source.AsMember(sandbox); err != nil {
		return freshness.Verdict{}, err
	}
	if pod != nil {
		if s.Pod, err = i.source.AsPod(pod); err != nil {
			return freshness.Verdict{}, err
		}
	}
	if s.Template == nil || !i.source.DescribeMember(sandbox).ByReference {
		return freshness.JudgeWithin(s, revision.NewBudget(freshness.MaxWork, nil))
	}
	return judgeByReference(s, pod)
}

// judgeByReference judges a member that says no more of its Pod than what template it refers
// to, by all of that Pod.
func judgeByReference(s freshness.Snapshot, pod *unstructured.Unstructured) (freshness.Verdict, error) {
	s.Member.Content = s.Member.Content.WithPodOf(s.Template.Content)
	s.Member.Proposed = s.Member.Content
	shown := s.Pod != nil && s.Pod.ControllerUID == s.Member.UID
	if shown {
		s.Pod.Whole = true
		var err error
		if s.PodInjected, err = PodInjections(nil, s.PodInjected, admitted(pod)...); err != nil {
			return freshness.Verdict{}, err
		}
	}
	v, err := freshness.JudgeWithin(s, revision.NewBudget(freshness.MaxWork, nil))
	if err != nil || shown || freshness.ClassOf(v) != freshness.Current {
		return v, err
	}
	return freshness.Verdict{
		Reason: freshness.PodNotYet, Expected: v.Expected,
		Detail: "sandbox " + s.Member.Name + " has no Pod that can be seen, and nothing else shows what it is built from",
	}, nil
}

func (i *Inspection) judge(m *Member, content revision.Blueprint) (Judgement, error) {
	s := i.facts
	s.Member = m.judgedAs(content)
	v, err := freshness.JudgeWithin(s, revision.NewBudget(freshness.MaxWork, nil))
	return Judgement{Class: freshness.ClassOf(v), Found: v.Found}, err
}

// contentOf is what a member is to be built from by what it says itself; false when it is
// another one by now, or with an error. One that refers to a template says that it has the
// Pod in force.
func (i *Inspection) contentOf(ctx context.Context, m *Member) (content revision.Blueprint, ok bool, err error) {
	content, ok, err = i.ownContent(ctx, m)
	if ok && m.ByReference && i.facts.Template != nil {
		content = content.WithPodOf(i.facts.Template.Content)
	}
	return content, ok, err
}

// ownContent reads the member where its content was not kept.
func (i *Inspection) ownContent(ctx context.Context, m *Member) (content revision.Blueprint, ok bool, err error) {
	switch c := m.Content; {
	case c.unreadable != nil:
		return revision.Blueprint{}, false, c.unreadable
	case c.blueprint != nil:
		return *c.blueprint, true, nil
	}
	if content, ok = i.contents()[m.Content.Digest]; ok {
		return content, true, nil
	}
	sandbox, err := i.source.StoredMember(ctx, m.GetNamespace(), m.Name)
	if err != nil || sandbox == nil {
		return revision.Blueprint{}, false, err
	}
	stored, err := i.source.AsMember(sandbox)
	if err != nil {
		return revision.Blueprint{}, false, err
	}
	content = stored.Content
	return content, sha256.Sum256(content.JSON()) == m.Content.Digest, nil
}

// Differences are those of the member from what is in force.
func (i *Inspection) Differences(ctx context.Context, m *Member) ([]revision.Difference, error) {
	content, ok, err := i.contentOf(ctx, m)
	if !ok || i.facts.Template == nil {
		return nil, err
	}
	return revision.Compare(i.facts.Template.Content, content, i.facts.Injected), nil
}
