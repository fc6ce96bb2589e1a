package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Ref names an object.
type Ref struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// Finding is one thing that was wrong with a bind.
type Finding struct {
	Class Class `json:"class"`
	// Reason is empty where the recording does not hold what a judgement takes.
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message"`
}

// Revision names a content: by the template version that renders to it, and by its own digest.
type Revision struct {
	// Template is empty where no recorded template version renders to this content.
	Template string `json:"template,omitempty"`
	// RV is the template version's resourceVersion.
	RV RV `json:"resourceVersion,omitempty"`
	// Digest is the start of the SHA-256 over the decoded content. It is no template-spec-hash of Freshbind's.
	Digest string `json:"digest,omitempty"`
}

// String is the revision in words.
func (r Revision) String() string {
	switch {
	case r == Revision{}:
		return "an unknown revision"
	case r.Template == "":
		return fmt.Sprintf("an unknown revision (%s)", r.Digest)
	case r.Digest == "":
		return fmt.Sprintf("%s@%s", r.Template, r.RV)
	}
	return fmt.Sprintf("%s@%s (%s)", r.Template, r.RV, r.Digest)
}

// Bind is one write after which a claim owns a Sandbox that it did not own before, with its judgement.
type Bind struct {
	Namespace string    `json:"namespace"`
	Claim     Ref       `json:"claim"`
	Sandbox   Ref       `json:"sandbox"`
	Warm      bool      `json:"warm"`
	RV        RV        `json:"resourceVersion"`
	SeenAt    time.Time `json:"seenAt"`
	Pool      string    `json:"pool,omitempty"`
	Strategy  string    `json:"strategy,omitempty"`
	// Mode is the enforcement that the namespace's label and the pool's annotation ask for; empty where they say nothing.
	Mode string `json:"mode,omitempty"`
	// Class is the worst of Findings, Fresh if there are none.
	Class    Class     `json:"class"`
	Findings []Finding `json:"findings,omitempty"`
	Found    Revision  `json:"found"`
	Expected Revision  `json:"expected"`
	// Difference is from found to expected.
	Difference string `json:"difference,omitempty"`
	// StaleSince is the update since which the content is not the expected one (t), AdmittedAfter the last write that must
	// have preceded the bind's admission (m), StaleFor the time between that update and the bind, as the recorder saw them.
	StaleSince    RV      `json:"staleSince,omitempty"`
	StaleFor      Seconds `json:"staleForSeconds,omitempty"`
	AdmittedAfter RV      `json:"admittedAfter,omitempty"`
	// BesideReady: a cold start although a ready, shown and fresh member of the pool had stood there for long.
	BesideReady bool `json:"coldBesideReady,omitempty"`
	// Unsettled: judged before all events up to the bind had arrived; the judgement may change.
	Unsettled bool `json:"unsettled,omitempty"`
}

// Has reports whether the bind has a finding of the class.
func (b Bind) Has(c Class) bool {
	return slices.ContainsFunc(b.Findings, func(f Finding) bool { return f.Class == c })
}

// String is the bind in one line, the verdict first.
func (b Bind) String() string {
	how := "cold"
	if b.Warm {
		how = "warm"
	}
	var messages []string
	for _, f := range b.Findings {
		messages = append(messages, f.Message)
	}
	line := fmt.Sprintf("%-13s %s/%s -> %s (%s", strings.ToUpper(string(b.Class)), b.Namespace, b.Claim.Name, b.Sandbox.Name, how)
	if b.Pool != "" {
		line += ", pool " + b.Pool
	}
	return strings.TrimSuffix(line+"): "+strings.Join(messages, "; "), ": ")
}

func (b *Bind) add(c Class, r Reason, format string, args ...any) {
	b.Findings = append(b.Findings, Finding{Class: c, Reason: r, Message: fmt.Sprintf(format, args...)})
}

func (b *Bind) unjudged(format string, args ...any) { b.add(Unjudged, "", format, args...) }

// judging is a bind under judgement: what the history says about the objects that take part.
type judging struct {
	h       *History
	p       *pending
	bind    *Bind
	sandbox *object[sandboxState]
	claim   *object[claimState]
	prev    *entry[sandboxState] // the version before a warm bind
	now     sandboxState         // the version that the bind wrote
	asked   claimState           // the claim just before
	bare    *barePod             // the member that a new Sandbox names
	admit   bound                // m
}

// bound is an RV of which at least lo is known, and which is not beyond hi.
type bound struct{ lo, hi RV }

// judge decides one bind.
func (h *History) judge(p *pending) Bind {
	o := h.sandboxes[p.sandbox]
	b := Bind{Namespace: o.namespace, Sandbox: Ref{o.name, o.uid}, Claim: Ref{Name: "?", UID: p.claim}, Warm: p.warm || p.bare,
		RV: p.rv, SeenAt: p.seen, Unsettled: !h.Settled(p.rv), Class: Fresh}
	j := &judging{h: h, p: p, bind: &b, sandbox: o, claim: h.claims[p.claim]}
	j.run()
	b.rank()
	return b
}

// rank puts the worst finding first.
func (b *Bind) rank() {
	slices.SortStableFunc(b.Findings, func(x, y Finding) int { return cmp.Compare(y.Class.severity(), x.Class.severity()) })
	if len(b.Findings) > 0 {
		b.Class = b.Findings[0].Class
	}
}

func (j *judging) run() {
	written, _ := j.sandbox.line.at(j.p.rv)
	j.now = written.state
	o, named := j.now.owner(j.p.claim)
	if named {
		j.bind.Claim.Name = o.name
	}
	if j.p.lost {
		j.bind.unjudged("it happened while events of sandboxes were lost")
		return
	}
	j.prev, _ = j.sandbox.line.before(j.p.rv)
	if j.claim == nil && o.isUser() {
		j.claim = j.userOf(o)
	}
	if j.claim == nil {
		j.bind.unjudged("the claim with uid %s is not in the recording", j.p.claim)
		return
	}
	j.bind.Claim.Name = j.claim.name
	asked, ok := j.claim.line.before(j.p.rv)
	if !ok {
		j.bind.unjudged("no version of the claim is older than the bind")
		return
	}
	j.asked = asked.state
	j.bare = j.bareMember()
	j.admit = j.admittedAfter()
	j.bind.AdmittedAfter = j.admit.lo
	j.describe()
	j.freshness()
	j.workedIn()
	j.claimed()
	j.owned()
	j.holding()
	switch {
	case j.p.warm:
		j.belonging()
		j.alive()
	case j.bare != nil:
		j.judgeBare()
	}
}

// admittedAfter is m: the last write that must have been stored before this bind can have been admitted. The API server
// commits an update only onto the version that admission saw, so the Sandbox's own previous version counts; for a cold
// start, what the claim's controller itself wrote before it, as it handles a claim one write after another; among that is what
// took a bare Pod from its pool.
func (j *judging) admittedAfter() bound {
	var b bound
	raise := func(rv RV, exact bool) {
		if exact {
			b.lo = maxRV(b.lo, rv)
		}
		b.hi = maxRV(b.hi, rv)
	}
	if j.p.warm {
		raise(j.prev.last, true)
	}
	if j.bare != nil && j.bare.left != nil {
		raise(j.bare.left.first, !j.bare.left.inexact)
	}
	first := j.claim.line.entries[0]
	raise(first.first, !first.inexact)
	named := false
	for _, e := range j.claim.line.entries {
		if !e.first.Before(j.p.rv) {
			break
		}
		if j.p.warm && !named && e.state.names == j.sandbox.name {
			named = true
			raise(e.first, !e.inexact)
		}
		if !j.p.warm && e.state.acted != "" {
			raise(e.state.acted, true)
		}
	}
	return b
}

// describe fills what the report shows beside the judgement.
func (j *judging) describe() {
	pool := j.poolName()
	j.bind.Pool = pool
	ns := j.h.namespaceAt(j.bind.Namespace, j.p.rv)
	j.bind.Mode = j.h.options.mode(ns)
	if e, ok := j.h.pools[name{j.bind.Namespace, pool}].before(j.p.rv); ok {
		j.bind.Strategy = j.h.options.strategy(e.state, ns).String()
		if e.state.enforcement == "enforce" {
			j.bind.Mode = e.state.enforcement
		}
	}
}

// poolName is the claim's pool; a v1alpha1 claim that names none has that of the member it got, if its template is the one
// the claim asks for.
func (j *judging) poolName() string {
	if pool, ok := j.asked.specificPool(); ok {
		return pool
	}
	if j.bare != nil {
		return j.bare.pool.name
	}
	if j.prev == nil || j.asked.pool == "none" {
		return ""
	}
	o, _ := j.h.member(j.prev.state)
	return o.name
}
