package model

import (
	"fmt"
	"strings"

	"github.com/freshbind/freshbind/internal/freshness"
)

// Story is a history as people tell it.
type Story struct {
	// Name is the variant's.
	Name  string
	Steps []NamedStep
	// Breaks says what is wrong in the end.
	Breaks Promise
	// Wrong is the index of the first step that is refused where no safeguard is missing,
	// -1 for none. Reason is the guard's, "" where the API server refuses it because it
	// goes onto another version.
	Wrong  int
	Reason freshness.Reason
}

// NamedStep is a step with the names that its objects keep through the story.
type NamedStep struct {
	Step
	// Claim and Member are names, "" where the step is about none.
	Claim, Member string
	// Text is the step in words.
	Text string
}

// Write is the kind of the step's write, in the words of the replay.
func (t NamedStep) Write() string { return writeWords[t.write] }

// Revision is 1 or 2, of the template or of what the step is rendered from.
func (t NamedStep) Revision() int { return 1 + int(t.content) }

// FormerUID reports whether it is written for the claim that had the name before.
func (t NamedStep) FormerUID() bool { return t.formerUID }

// FormerTemplate reports whether it is made from the template that the pool referred to
// before.
func (t NamedStep) FormerTemplate() bool { return t.formerTemplate }

// The kinds of writes.
const (
	Bind           = "bind"
	ColdStart      = "cold start"
	BindAndEdit    = "bind with another content"
	BindAndSwapPod = "bind with another Pod"
	BindToTwo      = "bind to two claims"
	ColdForTwo     = "cold start for two claims"
	Foreign        = "another kind of owner with the claim's UID"
)

var writeWords = map[write]string{
	bind: Bind, coldStart: ColdStart, bindAndEdit: BindAndEdit, bindAndSwapPod: BindAndSwapPod, bindToTwo: BindToTwo,
	coldForTwo: ColdForTwo, foreign: Foreign,
}

var promiseWords = map[Promise]string{
	Kept:     "nothing is broken",
	Fresh:    "the claim has a sandbox that was not built from the revision in force",
	Alive:    "the claim has a sandbox without a live Pod of its own",
	OneToOne: "a claim has two sandboxes, or two claims have had one",
	Belongs:  "the sandbox is not of the pool and template that a living claim asks for",
	InUse:    "a claim's sandbox is deleted",
	Decided:  "the guard comes to no verdict",
}

// String says what is wrong.
func (p Promise) String() string { return promiseWords[p] }

// String is the story, one line for each step.
func (s Story) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", s.Name)
	for i, step := range s.Steps {
		fmt.Fprintf(&b, "  %2d. %s.\n", i+1, step.Text)
	}
	fmt.Fprintf(&b, "   => %s.\n", s.Breaks)
	switch {
	case s.Reason != "":
		fmt.Fprintf(&b, "      Freshbind refuses step %d: %s.\n", s.Wrong+1, s.Reason)
	case s.Wrong >= 0:
		fmt.Fprintf(&b, "      The API server refuses step %d: the sandbox has another version by now.\n", s.Wrong+1)
	}
	return b.String()
}

// narrate plays the history again, with every member under one name, which the explorer
// forgets where it makes no difference.
func (v *Variant) narrate(b Bounds, path []key, end finding) Story {
	e := v.explorer(b)
	shipped := &Variant{}
	out := Story{Name: v.Name, Breaks: end.promise, Wrong: -1}
	n := names{}
	n.start(b)
	s := initial(b)
	add := func(step Step) {
		if a := shipped.judgeOnce(s.ask(step.attempt)); step.Act == Admitted && !a.allowed && out.Wrong < 0 {
			out.Wrong, out.Reason = len(out.Steps), a.reason
		}
		if step.Act == Born {
			n.born(step.member)
		}
		out.Steps = append(out.Steps, n.named(step))
	}
	for _, want := range path[1:] {
		var next state
		var taken *Step
		e.visit = func(step Step, to state) {
			if to.tidy(); taken == nil && to.canonical() == want {
				taken, next = &step, to
			}
		}
		e.successors(&s)
		add(*taken)
		s = next
	}
	// The last step is found again on the state as it is narrated.
	e.found, e.visit = nil, func(Step, state) {}
	e.successors(&s)
	add(e.found.step)
	if last := len(out.Steps) - 1; v.NoVersionLock || v.NoPreconditions {
		out.Wrong = last
	} else if v.Unprotected {
		out.Wrong, out.Reason = last, freshness.MemberClaimed
	}
	return out
}

// names are those of members; a place that is free is taken by another one.
type names struct {
	members [maxMembers]string
	last    int
}

func (n *names) start(b Bounds) {
	for i := range b.Members {
		n.born(uint8(i))
	}
}

func (n *names) born(m uint8) {
	n.last++
	n.members[m] = fmt.Sprintf("m%d", n.last)
}

func (n *names) named(step Step) NamedStep {
	t := NamedStep{Step: step, Claim: fmt.Sprintf("c%d", step.claim+1), Member: n.members[step.member]}
	switch {
	case step.Act == Edits:
		t.Claim, t.Member = "", ""
	case step.Act == Born, step.Act == DeletedByPool, step.Act == DeletedByUs:
		t.Claim = ""
	case step.Act == Interferes && step.Interference.aboutClaim(),
		(step.Act == Admitted || step.Act == Stored) && !step.write.onMember():
		t.Member = ""
	case step.Act == Interferes && !step.Interference.aboutMember() && step.Interference < PutBack:
		t.Claim, t.Member = "", ""
	case step.Act == Interferes:
		t.Claim = ""
	}
	t.Text = t.words()
	return t
}

func (t NamedStep) words() string {
	switch t.Act {
	case Edits:
		return fmt.Sprintf("Somebody edits the template: revision %d is in force", t.Revision())
	case Born:
		without := ""
		if t.Interference == PodNotYet {
			without = ", and its Pod is not made yet"
		}
		return fmt.Sprintf("The pool controller creates member %s from revision %d%s", t.Member, t.Revision(), without)
	case Chooses:
		return fmt.Sprintf("A claim controller writes into claim %s that it has chosen member %s", t.Claim, t.Member)
	case NamedInStatus:
		return fmt.Sprintf("A claim controller names sandbox %s in the status of claim %s", t.Member, t.Claim)
	case Admitted:
		return t.admitted()
	case Stored:
		if t.Member == "" {
			return fmt.Sprintf("The cold start for claim %s is stored", t.Claim)
		}
		return fmt.Sprintf("The bind of %s to claim %s is stored", t.Member, t.Claim)
	case DeletedByPool:
		return fmt.Sprintf("The pool controller, with a late cache, deletes %s by its name", t.Member)
	case DeletedByUs:
		return fmt.Sprintf("Freshbind deletes %s, which it once saw idle", t.Member)
	}
	return t.interferes()
}

func (t NamedStep) admitted() string {
	former := ""
	if t.formerUID {
		former = " as it was before it was created again"
	}
	switch t.write {
	case coldStart:
		from := fmt.Sprintf("revision %d", t.Revision())
		if t.formerTemplate {
			from += " of the template that the pool referred to before"
		}
		return fmt.Sprintf("A claim controller cold-starts claim %s%s from %s; admission lets it through", t.Claim, former, from)
	case bind:
		return fmt.Sprintf("A claim controller binds member %s to claim %s%s; admission lets it through", t.Member, t.Claim, former)
	case bindAndEdit:
		return fmt.Sprintf("A person binds member %s to claim %s and changes its content in the same write", t.Member, t.Claim)
	case bindAndSwapPod:
		return fmt.Sprintf("A person binds member %s to claim %s and names another Pod in the same write", t.Member, t.Claim)
	case bindToTwo:
		return fmt.Sprintf("A person binds member %s to claim %s and to the other claim in one write", t.Member, t.Claim)
	case coldForTwo:
		return fmt.Sprintf("A person creates a cold start for claim %s that the other claim owns, too", t.Claim)
	default:
		return fmt.Sprintf("A person creates a Sandbox from revision %d whose controller is of another kind, with the UID of claim %s", t.Revision(), t.Claim)
	}
}

var interferenceWords = map[Interference]string{
	TemplateDeleted:   "deletes the template",
	PoolReplaced:      "deletes the pool and creates it again",
	PoolTerminating:   "deletes the pool, which a finalizer keeps for now",
	PoolSwitched:      "has the pool refer to another template of the same content",
	RestartAsked:      "asks the pool for a restart",
	MemberEdited:      "edits the content of member %s, which its Pod does not follow",
	MemberTerminating: "deletes member %s, which a finalizer keeps for now",
	PodEdited:         "exchanges the image in the Pod of member %s",
	PodTerminating:    "deletes the Pod of member %s, which is terminating now",
	PodFinished:       "ends the Pod of member %s",
	PodGone:           "deletes the Pod of member %s, which is gone",
	PodForeign:        "puts a Pod of another owner in the place of that of member %s",
	PodDebugged:       "attaches a container to the Pod of member %s",
	PodNotYet:         "keeps the Pod of member %s from being made",
	NodeLeaving:       "drains the node of member %s",
	ClaimDeleted:      "deletes claim %s",
	ClaimReplaced:     "deletes claim %s and creates it again",
	ClaimTerminating:  "deletes claim %s, which a finalizer keeps for now",
	ClaimElsewhere:    "has claim %s ask for another pool",
	PodThere:          "creates a Pod of the name of claim %s",
	PutBack:           "puts sandbox %s, which a claim had, back into the pool",
	Orphaned:          "takes member %s out of its pool",
}

func (t NamedStep) interferes() string {
	words := interferenceWords[t.Interference]
	if strings.Contains(words, "%s") {
		words = fmt.Sprintf(words, t.Member+t.Claim)
	}
	return "A person " + words
}
