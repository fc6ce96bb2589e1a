package model

import (
	"fmt"
	"time"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/revision"
)

// question is what the guard's live reads show of one write: all that the snapshot is
// made of, so that equal questions are judged once.
type question struct {
	write                       write
	claim                       claimSeen
	elsewhere, names, namesNone bool
	held                        bool
	owner                       ownerSeen
	had, deleting, edited       bool
	content                     uint8
	before                      bool
	pod                         Interference
	podContent                  uint8
	pool                        Interference
	template                    uint8
	templateGone                bool
	other                       bool
	// former: the write says that it was made from the template that the pool
	// referred to before.
	former bool
}

type claimSeen uint8

const (
	claimThere claimSeen = iota
	claimAbsent
	claimAnother
	claimTerminating
)

type ownerSeen uint8

const (
	ownerPool ownerSeen = iota
	ownerThisClaim
	ownerOtherClaim
	ownerNobody
)

// attempt is a write that reaches admission.
type attempt struct {
	write         write
	claim, member uint8
	// content is what a cold start is rendered from, formerTemplate whether from the
	// template of before, and formerUID whether for the claim that had the name before.
	content                   uint8
	formerTemplate, formerUID bool
}

// ask is what the guard sees of an attempt, every object as it is stored now.
func (s *state) ask(a attempt) question {
	q := question{
		write: a.write, template: s.inForce, templateGone: s.odd == TemplateDeleted, other: s.other,
		content: a.content, former: a.formerTemplate, held: s.holdsOther(a), elsewhere: s.on(ClaimElsewhere, a.claim),
	}
	switch {
	case s.on(ClaimDeleted, a.claim):
		q.claim = claimAbsent
	case a.formerUID:
		q.claim = claimAnother
	case s.on(ClaimTerminating, a.claim):
		q.claim = claimTerminating
	}
	if s.odd.aboutPool() {
		q.pool = s.odd
	}
	if !a.write.onMember() {
		if s.on(PodThere, a.claim) {
			q.pod = PodThere
		}
		return q
	}
	m := s.members[a.member]
	q.namesNone = s.claims[a.claim].names == namesNone
	q.names = s.claims[a.claim].names == 1+a.member
	q.content, q.podContent, q.had, q.before = m.content, m.content, m.had, m.before
	q.former = s.odd == PoolSwitched && m.before
	switch m.owner {
	case ofPool:
	case ofClaim + a.claim:
		q.owner = ownerThisClaim
	case ofNobody:
		q.owner = ownerNobody
	default:
		q.owner = ownerOtherClaim
	}
	if s.odd.aboutMember() && s.target == 1+a.member {
		q.see(s.odd)
	}
	return q
}

// see adds what the person did to this member or its Pod.
func (q *question) see(i Interference) {
	switch i {
	case MemberEdited:
		q.edited, q.content = true, 1-q.content
	case MemberTerminating:
		q.deleting = true
	case PodEdited:
		q.pod, q.podContent = i, 1-q.podContent
	default:
		q.pod = i
	}
}

// holdsOther follows the names under which the guard looks for another sandbox of the
// claim: the claim's own, the one it has chosen and the one in its status.
func (s *state) holdsOther(a attempt) bool {
	c := s.claims[a.claim]
	if c.cold && a.write.onMember() {
		return true
	}
	for _, ref := range []uint8{c.names, c.status} {
		if ref == namesNone || ref == namesGone || a.write.onMember() && ref == 1+a.member {
			continue
		}
		if m := s.members[ref-1]; m.there && m.owner == ofClaim+a.claim {
			return true
		}
	}
	return false
}

// The two revisions of the template.
var contents = [2]revision.Blueprint{content("sandbox:v1"), content("sandbox:v2")}

func content(image string) revision.Blueprint {
	b, err := revision.FromPodSpec(map[string]any{"containers": []any{map[string]any{"name": "c", "image": image}}})
	if err != nil {
		panic(err)
	}
	return b
}

const (
	memberName, memberUID = "member", "member-uid"
	poolName, poolUID     = "pool", "pool-uid"
	templateName          = "template"
	formerName            = "former-template"
	claimName, claimUID   = "claim", "claim-uid"
	address               = "10.0.0.1"
)

var (
	born      = time.Unix(1000, 0)
	restarted = time.Unix(2000, 0)
	bornLater = time.Unix(3000, 0)
)

// snapshot is the question as plain values, as the platform would fill it.
func (q question) snapshot() freshness.Snapshot {
	s := freshness.Snapshot{
		Operation: q.operation(),
		Member:    q.asMember(),
		ClaimRef:  freshness.Owner{Kind: freshness.OwnedByClaim, Name: claimName, UID: claimUID},
		Claim:     q.asClaim(),
		Pod:       q.asPod(),
		Known:     []freshness.Known{{Hash: contents[0].Hash(), Content: contents[0]}},
	}
	if q.other {
		s.Known = append(s.Known, freshness.Known{Hash: contents[1].Hash(), Content: contents[1]})
	}
	// A cold start's pool and template are those that the claim names.
	if q.owner == ownerPool && (s.Operation != freshness.ColdStart || s.Claim != nil) {
		s.Pool, s.Template = q.asPool(), q.asTemplate()
	}
	if q.held {
		s.Held = []string{"another"}
	}
	switch q.write {
	case bindToTwo, coldForTwo:
		s.Besides = []freshness.Owner{{Kind: freshness.OwnedByClaim, Name: "claim-2", UID: "claim-2-uid"}}
	case foreign:
		s.ClaimRef.Kind = freshness.OwnedByAnother
	}
	return s
}

func (q question) operation() freshness.Operation {
	switch q.write {
	case coldStart, coldForTwo:
		return freshness.ColdStart
	case foreign:
		return freshness.ForeignController
	}
	return freshness.Bind
}

func (q question) asMember() freshness.Member {
	m := freshness.Member{
		Name: memberName, UID: memberUID, NamedFirst: true, Generation: 1, Template: templateName, Deleting: q.deleting, Used: q.had,
		Content: contents[q.content], Proposed: contents[q.content], PodName: memberName, ProposedPodName: memberName,
		PodIPs: []string{address}, Created: bornLater,
	}
	if q.former {
		m.Template = formerName
	}
	if q.operation() == freshness.ColdStart {
		m.Controller = freshness.Owner{Kind: freshness.OwnedByClaim, Name: claimName, UID: claimUID}
		m.PodIPs, m.Created = nil, time.Time{}
		return m
	}
	switch q.owner {
	case ownerPool:
		m.Controller = freshness.Owner{Kind: freshness.OwnedByPool, Name: poolName, UID: poolUID}
	case ownerThisClaim:
		m.Controller = freshness.Owner{Kind: freshness.OwnedByClaim, Name: claimName, UID: claimUID}
	case ownerOtherClaim:
		m.Controller = freshness.Owner{Kind: freshness.OwnedByClaim, Name: "claim-2", UID: "claim-2-uid"}
	}
	if q.write == foreign {
		m.Controller = freshness.Owner{Kind: freshness.OwnedByAnother, Name: claimName, UID: claimUID}
	}
	if q.edited {
		m.Generation = 2
	}
	if q.before {
		m.Created = born
	}
	if q.pod == PodNotYet {
		m.PodIPs = nil
	}
	switch q.write {
	case bindAndEdit:
		m.Proposed = contents[1-q.content]
	case bindAndSwapPod:
		m.ProposedPodName = "another-pod"
	}
	return m
}

func (q question) asClaim() *freshness.Claim {
	c := &freshness.Claim{UID: claimUID, Pool: poolName}
	if q.elsewhere {
		c.Pool = "another-pool"
	}
	switch {
	case q.names:
		c.Names = []string{memberName}
	case !q.namesNone:
		c.Names = []string{"another"}
	}
	switch q.claim {
	case claimAbsent:
		return nil
	case claimAnother:
		c.UID = "claim-uid-now"
	case claimTerminating:
		c.Deleting = true
	}
	return c
}

func (q question) asPool() *freshness.Pool {
	p := &freshness.Pool{Name: poolName, UID: poolUID, Template: templateName, Strategy: freshness.Recreate}
	if q.operation() == freshness.ColdStart && q.elsewhere {
		p.Name = "another-pool"
	}
	switch q.pool {
	case PoolReplaced:
		if q.before {
			p.UID = "pool-uid-now"
		}
	case PoolTerminating:
		p.Deleting = true
	case RestartAsked:
		p.Restarted = restarted
	}
	return p
}

func (q question) asTemplate() *freshness.Template {
	if q.templateGone {
		return nil
	}
	return &freshness.Template{Name: templateName, Hash: contents[q.template].Hash(), Content: contents[q.template]}
}

func (q question) asPod() *freshness.Pod {
	p := &freshness.Pod{ControllerUID: memberUID, Generation: 1, IPs: []string{address}, Content: contents[q.podContent]}
	if q.operation() == freshness.ColdStart && q.pod != PodThere {
		return nil
	}
	switch q.pod {
	case PodGone, PodNotYet:
		return nil
	case PodEdited:
		p.Generation = 2
	case PodTerminating:
		p.Deleting = true
	case PodFinished:
		p.Finished = true
	case PodForeign, PodThere:
		p.ControllerUID = "another-uid"
	case PodDebugged:
		p.Ephemeral = true
	case NodeLeaving:
		p.NodeLeaving = "it is being deleted"
	}
	return p
}

// answer is the guard's, or that it came to none.
type answer struct {
	allowed, none bool
	reason        freshness.Reason
}

// judge asks the rules, once for equal questions.
func (v *Variant) judge(known map[question]answer, q question) answer {
	if a, ok := known[q]; ok {
		return a
	}
	a := v.judgeOnce(q)
	known[q] = a
	return a
}

// judgeOnce: a rule that is missing can take the ground from under the next one.
func (v *Variant) judgeOnce(q question) (a answer) {
	defer func() {
		if failed := recover(); failed != nil {
			a = answer{none: true, reason: freshness.Reason(fmt.Sprint(failed))}
		}
	}()
	verdict := freshness.JudgeBy(v.rules(q.operation()), q.snapshot())
	return answer{allowed: verdict.Allowed, reason: verdict.Reason}
}

// isProtected: the guard refuses the pool controller's delete of it.
func (s *state) isProtected(m uint8) bool {
	owner := s.members[m].owner
	if owner != ofClaim && owner != ofClaim+1 {
		return false
	}
	c := owner - ofClaim
	d := freshness.Deletion{
		Sandbox: memberName, Owner: freshness.Owner{Kind: freshness.OwnedByClaim, Name: claimName, UID: claimUID},
		Claim: &freshness.Claim{UID: claimUID, Deleting: s.on(ClaimTerminating, c)},
	}
	if s.on(ClaimDeleted, c) {
		d.Claim = nil
	}
	return !freshness.JudgeDelete(d).Allowed
}
