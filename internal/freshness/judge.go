package freshness

import (
	"fmt"
	"slices"
	"time"

	"github.com/freshbind/freshbind/internal/revision"
)

// maxShown bounds how many differing leaves a verdict's detail lists.
const maxShown = 3

// Judge decides on a snapshot. The first rule that speaks against the write
// gives the reason.
func Judge(s Snapshot) Verdict { return JudgeBy(rules, s) }

// MaxWork is how many leaves one verdict may look at: some milliseconds. A
// template of a hundred leaves and ten older revisions takes a thousand.
const MaxWork = 50_000

// JudgeWithin is Judge within a budget. The error says that it was used up, and
// is no verdict.
func JudgeWithin(s Snapshot, b *revision.Budget) (Verdict, error) {
	return within(Judge, s, b)
}

func within[T any](find func(Snapshot) T, s Snapshot, b *revision.Budget) (found T, err error) {
	s.work = b
	out := find(s)
	if err := b.Err(); err != nil {
		return found, fmt.Errorf("comparing %s with the revisions of its template: %w", s.Member.title(), err)
	}
	return out, nil
}

func deny(r Reason, format string, args ...any) *Verdict {
	return &Verdict{Reason: r, Detail: fmt.Sprintf(format, args...)}
}

func claimLives(s Snapshot) *Verdict {
	switch {
	case s.Claim == nil:
		return deny(ClaimGone, "claim %s does not exist", s.ClaimRef.Name)
	case s.Claim.UID != s.ClaimRef.UID:
		return deny(ClaimReplaced, "claim %s is another one of that name now", s.ClaimRef.Name)
	case s.Claim.Deleting:
		return deny(ClaimGone, "claim %s is being deleted", s.ClaimRef.Name)
	}
	return nil
}

func isMember(s Snapshot) *Verdict {
	c := s.Member.Controller
	switch {
	case c.Kind == OwnedByClaim:
		return deny(MemberClaimed, "%s belongs to claim %s", s.Member.title(), c.Name)
	case c.Kind != OwnedByPool && (!s.Member.Bare || !s.Member.Used):
		return deny(NotAMember, "%s belongs to no pool", s.Member.title())
	case s.Member.Used:
		return deny(MemberUsed, "%s had a claim before", s.Member.title())
	}
	return nil
}

// claimWantsThis: releases that write the choice into the claim first do so
// under optimistic lock, so the stored claim is the arbiter of which one of
// several members it gets.
func claimWantsThis(s Snapshot) *Verdict {
	switch {
	case slices.Contains(s.Claim.Names, s.Member.Name), len(s.Claim.Names) == 0 && !s.Member.NamedFirst:
		return nil
	case len(s.Claim.Names) == 0:
		return deny(ClaimNamesAnother, "claim %s names no sandbox, and has to name %s first", s.ClaimRef.Name, s.Member.Name)
	}
	return deny(ClaimNamesAnother, "claim %s names sandbox %s, not %s", s.ClaimRef.Name, s.Claim.Names[0], s.Member.Name)
}

func claimHoldsNone(s Snapshot) *Verdict {
	if len(s.Held) == 0 {
		return nil
	}
	return deny(ClaimHoldsAnother, "claim %s already holds sandbox %s", s.ClaimRef.Name, s.Held[0])
}

func memberLives(s Snapshot) *Verdict {
	if s.Member.Deleting {
		return deny(MemberTerminating, "%s is being deleted", s.Member.title())
	}
	return nil
}

func blueprintKept(s Snapshot) *Verdict {
	if d := s.work.Compare(s.Member.Content, s.Member.Proposed, revision.PathSet{}); len(d) > 0 {
		return deny(BlueprintChanged, "the write changes what %s is built from: %s",
			s.Member.title(), revision.Summary(d, maxShown))
	}
	return nil
}

func belongs(s Snapshot) *Verdict {
	switch {
	case s.Pool == nil:
		return deny(PoolGone, "pool %s does not exist", s.Member.Controller.Name)
	case s.Pool.UID != s.Member.Controller.UID:
		return deny(PoolGone, "pool %s is another one now", s.Pool.Name)
	case s.Pool.Deleting:
		return deny(PoolGone, "pool %s is being deleted", s.Pool.Name)
	case s.Operation == Bind && !s.Claim.asksFor(s.Pool):
		return deny(PoolMismatch, "claim %s asks for pool %q, sandbox %s is of pool %s",
			s.ClaimRef.Name, s.Claim.Pool, s.Member.Name, s.Pool.Name)
	case s.Member.Template != "" && s.Member.Template != s.Pool.Template:
		return deny(TemplateMismatch, "%s was built from template %s, pool %s refers to %s",
			s.Member.title(), s.Member.Template, s.Pool.Name, s.Pool.Template)
	}
	return nil
}

// asksFor reports whether the claim wants a member of this pool.
func (c *Claim) asksFor(p *Pool) bool {
	if c.Template != "" && c.Template != p.Template {
		return false
	}
	return c.AnyPool && !p.ByName || c.Pool == p.Name
}

func podLives(s Snapshot) *Verdict {
	m, p := s.Member, s.Pod
	switch {
	case m.Bare:
		return podGoesOn(m.Name, p)
	case p == nil && len(m.PodIPs) == 0:
		return deny(PodNotYet, "sandbox %s has no pod yet", m.Name)
	case p == nil:
		return deny(PodFinished, "pod %s is gone", m.PodName)
	case p.ControllerUID != m.UID:
		return deny(PodForeign, "pod %s does not belong to sandbox %s", m.PodName, m.Name)
	case !p.Deleting && !p.Finished && len(m.PodIPs) > 0 && !sameSet(m.PodIPs, p.IPs):
		return deny(PodForeign, "sandbox %s shows other addresses than pod %s has", m.Name, m.PodName)
	case !p.Deleting && !p.Finished && p.precedes(m):
		return deny(PodForeign, "pod %s was there before sandbox %s, which has taken it over", m.PodName, m.Name)
	}
	return podGoesOn(m.PodName, p)
}

// clocks is by how much the clocks of API servers may differ. Whoever is refused for its
// age is deleted, so that a doubt counts for a member that its pool's controller made: the
// next one would be no better, and the API server drew its name.
const clocks = time.Minute

// precedes reports whether a Pod was there before the member that it is of. Its Sandbox's
// controller takes an existing Pod of the Sandbox's name for its own, whoever used it: one
// that outlived a Sandbox of that name. A member that somebody may have made by hand gets
// no doubt: its name can be that of a Pod which was used seconds before. If it was made
// while Freshbind was away, its pool makes another one, and that is known.
func (p *Pod) precedes(m Member) bool {
	created := p.Created
	if !m.ByHand {
		created = created.Add(clocks)
	}
	return !p.Created.IsZero() && created.Before(m.Created)
}

func podGoesOn(name string, p *Pod) *Verdict {
	switch {
	case p.Deleting:
		return deny(PodTerminating, "pod %s is being deleted", name)
	case p.Finished:
		return deny(PodFinished, "pod %s has ended", name)
	case p.NodeLeaving != "":
		return deny(NodeLeaving, "pod %s is on a node that is about to go: %s", name, p.NodeLeaving)
	}
	return untouched(name, p)
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func templateInForce(s Snapshot) *Verdict {
	forClaim := s.Operation == ColdStart || s.Operation == WarmStart
	if forClaim && s.Claim.Template == "" {
		if s.Pool == nil {
			return deny(PoolGone, "pool %s does not exist", s.Claim.Pool)
		}
		if s.Pool.Deleting {
			return deny(PoolGone, "pool %s is being deleted", s.Pool.Name)
		}
	}
	if s.Template == nil {
		return deny(TemplateGone, "the template in force does not exist")
	}
	if forClaim && s.Member.Template != "" && s.Member.Template != s.Template.Name {
		return deny(TemplateMismatch, "sandbox %s is built from template %s, the template in force is %s",
			s.Member.Name, s.Member.Template, s.Template.Name)
	}
	return nil
}

func contentIsCurrent(s Snapshot) *Verdict {
	if s.Template.Unrenderable != "" {
		return tolerate(s, Verdict{
			Reason:   UnknownRevision,
			Found:    s.Member.Content.Hash(),
			Expected: s.Template.Hash,
			Detail:   "template " + s.Template.Name + " as it is now gives this claim no sandbox: " + s.Template.Unrenderable,
		})
	}
	v := attribute(s, s.rendered(), s.Member.Content, s.Injected)
	if v == nil || s.Plain == nil {
		return v
	}
	if plain := attribute(s, *s.Plain, s.Member.Content, s.Injected); plain == nil || plain.Reason == StaleRevision {
		return plain
	}
	return v
}

// attribute compares content with the template in force and, when they differ,
// names the known revision that it equals.
func attribute(s Snapshot, r Rendered, content revision.Blueprint, injected revision.PathSet) *Verdict {
	differences := s.work.Compare(r.Content, content, injected)
	if len(differences) == 0 {
		return nil
	}
	v := Verdict{
		Reason:   UnknownRevision,
		Found:    content.Hash(),
		Expected: s.Template.Hash,
		Detail:   revision.Summary(differences, maxShown),
	}
	nearest := len(differences)
	for _, k := range r.Known {
		if k.Hash == v.Expected {
			continue
		}
		// How much farther one is than the nearest changes nothing.
		d := s.work.Count(k.Content, content, injected, nearest)
		if d == 0 {
			v.Reason, v.Found = StaleRevision, k.Hash
			return tolerate(s, v)
		}
		nearest = min(nearest, d)
	}
	return tolerate(s, suspend(s, v, nearest < len(differences)))
}

// suspend lets an unknown member through while nobody understands what its pool
// is built from, unless it is nearer to an older revision than to the one in
// force.
func suspend(s Snapshot, v Verdict, nearerToOlder bool) Verdict {
	if s.Pool != nil && s.Pool.Suspended == v.Expected && !nearerToOlder {
		v.Allowed = true
	}
	return v
}

// isYoung: a restart makes stale what was there before it. Creation times are
// whole seconds; what was born in the second of the restart is replaced, too.
func isYoung(s Snapshot) *Verdict {
	if s.Pool == nil || s.Member.Created.IsZero() || s.Member.Created.After(s.Pool.Restarted) {
		return nil
	}
	return tolerate(s, Verdict{
		Reason: StaleRevision, Found: s.Template.Hash, Expected: s.Template.Hash,
		Detail: fmt.Sprintf("%s was created at %s, before the restart at %s",
			s.Member.title(), s.Member.Created.UTC().Format(time.RFC3339), s.Pool.Restarted.UTC().Format(time.RFC3339)),
	})
}

// RevisionOf names the revision that the member is built from, by its content.
func RevisionOf(s Snapshot) string {
	if s.Template == nil {
		return s.Member.Content.Hash()
	}
	if v := contentIsCurrent(s); v != nil {
		return v.Found
	}
	return s.Template.Hash
}

// RevisionWithin is RevisionOf within a budget, as JudgeWithin.
func RevisionWithin(s Snapshot, b *revision.Budget) (string, error) { return within(RevisionOf, s, b) }

// PodRevisionWithin is PodRevisionOf within a budget, as JudgeWithin.
func PodRevisionWithin(s Snapshot, b *revision.Budget) (string, error) {
	return within(PodRevisionOf, s, b)
}

// PodRevisionOf names the revision that the Pod is built from, by its content:
// its Sandbox's, when it is what that Sandbox says.
func PodRevisionOf(s Snapshot) string {
	if podMatchesMember(s) {
		return RevisionOf(s)
	}
	if s.Template == nil {
		return s.Pod.Content.Hash()
	}
	if v := attribute(s, s.rendered().podOnly(), s.Pod.Content, s.PodInjected); v != nil {
		return v.Found
	}
	return s.Template.Hash
}

// PodMatchesMemberWithin reports, within a budget, whether the Pod is what its Sandbox
// says: that takes neither template nor history.
func PodMatchesMemberWithin(s Snapshot, b *revision.Budget) (bool, error) {
	return within(podMatchesMember, s, b)
}

func podMatchesMember(s Snapshot) bool {
	return s.work.Count(s.Member.Content.PodOnly(), s.Pod.Content, s.PodInjected, 1) == 0
}

// tolerate turns a denial for staleness into the pool's own choice, where it
// made one. A cold start without a pool made none.
func tolerate(s Snapshot, v Verdict) *Verdict {
	if s.Pool != nil && ServesStale(s.Pool.Strategy, s.Pool.AdmitAny) {
		v.Allowed, v.Tolerated = true, true
	}
	return &v
}

// ServesStale reports whether a pool of this strategy chose to have stale
// members taken.
func ServesStale(st Strategy, admitAny bool) bool {
	return st == OnReplenish || st == PlatformOwned || st == RollingUpdate && admitAny
}

// judgeBirth refuses only what is known to be older than the template in force, or would
// run in a Pod that is there.
// A member that equals no revision is let through: were it refused, a webhook
// that injects a field would keep the pool empty for ever.
func judgeBirth(s Snapshot) Verdict {
	if s.Pool == nil || s.Pool.UID != s.Member.Controller.UID || s.Pool.Deleting || s.Template == nil {
		return Verdict{Allowed: true, Reason: Fresh, Found: s.Member.Content.Hash()}
	}
	if v := nothingToAdopt(s); v != nil {
		return *v
	}
	v := firstOf(s, belongs, contentIsCurrent)
	if v.Reason == UnknownRevision {
		v.Allowed = true
	}
	return v
}
