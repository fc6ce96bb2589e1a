package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/fakekruise"
	"github.com/freshbind/freshbind/test/upstream"
)

// evidence is what binds are judged by beside the recording's own report.
type evidence struct {
	report *checker.Report
	trail  *trail
	ends   *ends
	// ids name the requests that wrote versions of templates, and made Sandboxes.
	ids *ids
	// attacks are those of the plan, raids what became of them.
	attacks []attack
	raids   []raided
}

// tally is the judgement of all binds and deletes. notes say in words what
// counts as a fault.
type tally struct {
	binds, unjudged, lost                                           int
	tolerated, raced, stale, duplicate, dead, used, foreign, killed int
	// misowned binds wrote owners that no bind may, misled ones were for a claim
	// that was gone or had chosen another sandbox.
	misowned, misled int
	attacks          map[attack]raidTally
	notes            []string
}

// raidTally is what became of all attacks of one kind: how many writes were denied
// while they went on, and how many binds were wrong.
type raidTally struct{ tried, refused, broken int }

// judge counts. Whether a bind raced is decided by the audit log alone.
func (e evidence) judge() tally {
	t := tally{lost: len(e.report.EventGaps)}
	for _, s := range e.report.Namespaces {
		t.binds += s.Warm + s.Cold
	}
	var wrong []checker.Bind
	for _, b := range e.report.Findings {
		classes := map[checker.Class]string{}
		for _, f := range b.Findings {
			class, why := e.class(b, f)
			classes[class] = why
		}
		if slices.ContainsFunc(slices.Collect(maps.Keys(classes)), checker.Class.Bad) {
			wrong = append(wrong, b)
		}
		for class, why := range classes {
			t.count(class)
			if class.Bad() || class == checker.Unjudged {
				t.notes = append(t.notes, strings.TrimSpace(fmt.Sprintf("counted as %s: %s %s", class, b, why)))
			}
		}
	}
	t.attacks = e.raided(wrong)
	for _, l := range e.ends.lost() {
		if why, killed := e.killed(l); killed {
			t.killed++
			t.notes = append(t.notes, why)
		}
	}
	return t
}

// raided counts by the moment: in each place there is one raid at a time, and what
// happens there is its doing.
func (e evidence) raided(wrong []checker.Bind) map[attack]raidTally {
	out := map[attack]raidTally{}
	for _, a := range e.attacks {
		out[a] = raidTally{}
	}
	for _, r := range e.raids {
		t := out[r.do]
		t.tried++
		t.refused += e.trail.refused(func(q request) bool { return q.namespace == r.namespace && r.during(q.received) })
		for _, b := range wrong {
			if b.Namespace == r.namespace && r.during(b.SeenAt) {
				t.broken++
			}
		}
		out[r.do] = t
	}
	return out
}

func (t *tally) count(c checker.Class) {
	switch c {
	case checker.Tolerated:
		t.tolerated++
	case checker.Raced:
		t.raced++
	case checker.Stale:
		t.stale++
	case checker.Duplicate:
		t.duplicate++
	case checker.DeadMember:
		t.dead++
	case checker.UsedMember:
		t.used++
	case checker.ForeignMember:
		t.foreign++
	case checker.OwnerMismatch:
		t.misowned++
	case checker.WrongClaim:
		t.misled++
	case checker.Unjudged:
		t.unjudged++
	}
}

// class lets the audit log decide where the order of writes in the recording
// says Stale, Raced or DeadMember.
func (e evidence) class(b checker.Bind, f checker.Finding) (checker.Class, string) {
	// The judge's words for a Pod; a member's own end is atomic with the bind.
	ofPod := strings.HasPrefix(f.Message, "its Pod ")
	switch {
	case f.Class == checker.DeadMember && ofPod, f.Class == checker.Raced && ofPod:
		return e.order(b, checker.DeadMember, e.podDeletion)
	case f.Class == checker.Stale && b.StaleSince != "", f.Class == checker.Raced:
		class, why := e.order(b, checker.Stale, e.update)
		if class == checker.Stale && e.servedStale(b) {
			return checker.Raced, ""
		}
		return class, why
	}
	return f.Class, ""
}

// order is Raced where the bind was received before that which makes it wrong
// was answered, and bad where it was not or where the log does not show it.
func (e evidence) order(b checker.Bind, bad checker.Class, cause func(checker.Bind) (request, bool)) (checker.Class, string) {
	bind, ok := e.bind(b)
	if !ok {
		return bad, "(the audit log does not show the bind)"
	}
	end, ok := cause(b)
	if !ok {
		return bad, "(the audit log does not show what came before it)"
	}
	if bind.received.Before(end.answered) {
		return checker.Raced, ""
	}
	return bad, fmt.Sprintf("(bind received %s after %s by %s was answered)", bind.received.Sub(end.answered), end.verb, end.user)
}

// bind is the request that made it. Where names are generated, the log of a CREATE does
// not tell them.
func (e evidence) bind(b checker.Bind) (request, bool) {
	if id, ok := e.ids.of(b.RV); ok {
		return e.trail.byID(id)
	}
	return e.trail.bind(b)
}

// servedStale reports whether the pool still served stale members when the bind
// was received, and stopped while it was under way.
func (e evidence) servedStale(b checker.Bind) bool {
	seen, ok := e.ends.tightened(b.Namespace, b.Pool, b.RV)
	if !ok {
		return false
	}
	class, _ := e.order(b, checker.Stale, func(checker.Bind) (request, bool) {
		return e.trail.last(seen, func(r request) bool {
			return slices.Contains(poolResources, r.resource) && r.namespace == b.Namespace && r.name == b.Pool
		})
	})
	return class == checker.Raced
}

func (e evidence) update(b checker.Bind) (request, bool) {
	id, ok := e.ids.of(b.StaleSince)
	if !ok {
		return request{}, false
	}
	return e.trail.byID(id)
}

func (e evidence) podDeletion(b checker.Bind) (request, bool) {
	pod, ok := e.ends.podOf(b.Sandbox.UID, b.RV)
	if !ok || !pod.ended {
		return request{}, false
	}
	return e.trail.deletion("pods", b.Namespace, pod.name, pod.endSeen)
}

// owners of claims may delete them. The E2B server deletes what its users let go of.
var owners = []string{stormUser, hostileUser, fakekruise.ServerUser}

// killed tells whether a claim lost its Sandbox otherwise than by its own end
// or by the storm.
func (e evidence) killed(l loss) (string, bool) {
	deleted, ok := e.trail.deletion(upstream.Sandboxes.Resource, l.namespace, l.sandbox, l.seen)
	if !ok {
		return fmt.Sprintf("sandbox %s/%s of claim %s was deleted; the audit log does not show by whom", l.namespace, l.sandbox, l.claim), true
	}
	if slices.Contains(owners, deleted.user) {
		return "", false
	}
	end, ok := e.trail.deletion(upstream.SandboxClaims.Resource, l.namespace, l.claim, deleted.received)
	if ok && slices.Contains(owners, end.user) {
		return "", false
	}
	return fmt.Sprintf("sandbox %s/%s of claim %s was deleted by %s", l.namespace, l.sandbox, l.claim, deleted.user), true
}
