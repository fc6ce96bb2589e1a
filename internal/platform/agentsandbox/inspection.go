package agentsandbox

import (
	"context"
	"crypto/sha256"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
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
	platform *Platform
	// contents are those in force and of older revisions, by their digests.
	contents map[[sha256.Size]byte]revision.Blueprint

	mu     sync.Mutex
	judged map[judgedBy]*judgedMember
}

// judgedBy is all that the verdict on a member depends on beside the Inspection.
type judgedBy struct {
	traits          *Traits
	deleting, young bool
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

func newInspection(p *Platform, facts freshness.Snapshot, injected string) *Inspection {
	i := &Inspection{
		facts: facts, injected: injected, platform: p,
		contents: map[[sha256.Size]byte]revision.Blueprint{}, judged: map[judgedBy]*judgedMember{},
	}
	for _, k := range facts.Known {
		i.contents[sha256.Sum256(k.Content.JSON())] = k.Content
	}
	if t := facts.Template; t != nil {
		i.contents[sha256.Sum256(t.Content.JSON())] = t.Content
	}
	return i
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
	restarted := i.Restarted()
	key := judgedBy{traits: m.Traits, deleting: m.Deleting(), young: !restarted.IsZero() && m.Created().After(restarted)}
	i.mu.Lock()
	known := i.judged[key]
	i.mu.Unlock()
	if known == nil {
		content, ok, err := i.contentOf(ctx, m)
		if err != nil {
			return Judgement{}, err
		}
		if !ok {
			return Judgement{Class: freshness.Unclassified}, nil
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

// Pod says what a member is that is Current by itself, by the Pod that a cache
// shows of it; nil for none.
func (i *Inspection) Pod(m *Member, pod *MemberPod) (freshness.Class, error) {
	if pod == nil || !pod.of(m.UID) || i.facts.Template == nil {
		return freshness.Current, nil
	}
	if pod.ephemeral {
		return freshness.Lost, nil
	}
	if pod.images == nil {
		return freshness.Current, nil
	}
	s := i.facts
	s.Member = m.judgedAs(i.facts.Template.Content)
	s.Pod = &freshness.Pod{ControllerUID: string(m.UID), Content: *pod.images}
	v, err := freshness.JudgeWithin(s, revision.NewBudget(freshness.MaxWork, nil))
	return freshness.ClassOf(v), err
}

// Sandbox returns the verdict on a Sandbox that was read in full, and on its Pod;
// nil where that was not read.
func (i *Inspection) Sandbox(sandbox, pod *unstructured.Unstructured) (freshness.Verdict, error) {
	s := i.facts
	var err error
	if s.Member, err = memberOf(platform.Write{Operation: freshness.Stored, New: sandbox}); err != nil {
		return freshness.Verdict{}, err
	}
	if pod != nil {
		if s.Pod, err = podOf(pod); err != nil {
			return freshness.Verdict{}, err
		}
	}
	return freshness.JudgeWithin(s, revision.NewBudget(freshness.MaxWork, nil))
}

func (i *Inspection) judge(m *Member, content revision.Blueprint) (Judgement, error) {
	s := i.facts
	s.Member = m.judgedAs(content)
	v, err := freshness.JudgeWithin(s, revision.NewBudget(freshness.MaxWork, nil))
	return Judgement{Class: freshness.ClassOf(v), Found: v.Found}, err
}

// contentOf reads the member where its content was not kept; false when it is
// another one by now.
func (i *Inspection) contentOf(ctx context.Context, m *Member) (content revision.Blueprint, ok bool, err error) {
	switch c := m.Content; {
	case c.unreadable != nil:
		return revision.Blueprint{}, false, c.unreadable
	case c.blueprint != nil:
		return *c.blueprint, true, nil
	}
	if content, ok = i.contents[m.Content.Digest]; ok {
		return content, true, nil
	}
	sandbox, err := i.platform.Get(ctx, Sandboxes, m.GetNamespace(), m.Name)
	if err != nil || sandbox == nil {
		return revision.Blueprint{}, false, err
	}
	if content, err = ContentOf(sandbox); err != nil {
		return revision.Blueprint{}, false, err
	}
	return content, sha256.Sum256(content.JSON()) == m.Content.Digest, nil
}

// Differences are the paths at which the member differs from what is in force.
func (i *Inspection) Differences(ctx context.Context, m *Member) ([]string, error) {
	content, ok, err := i.contentOf(ctx, m)
	if err != nil || !ok || i.facts.Template == nil {
		return nil, err
	}
	var paths []string
	for _, d := range revision.Compare(i.facts.Template.Content, content, i.facts.Injected) {
		paths = append(paths, d.Root)
	}
	return paths, nil
}
