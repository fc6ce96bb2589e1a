package rollout

import (
	"fmt"
	"strings"
)

// Story is a history as people tell it.
type Story struct {
	// Name is the variant's.
	Name  string
	Steps []string
	// Again is how many of the last steps go on for ever; 0 for none.
	Again int
	// Breaks says what is wrong in the end.
	Breaks Promise
}

// String is the story, one line for each step.
func (s Story) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", s.Name)
	for i, text := range s.Steps {
		if s.Again > 0 && i == len(s.Steps)-s.Again {
			b.WriteString("      And this, again and again:\n")
		}
		fmt.Fprintf(&b, "  %2d. %s.\n", i+1, text)
	}
	fmt.Fprintf(&b, "   => %s.\n", s.Breaks)
	return b.String()
}

// narrator knows members by the order of their births.
type narrator struct {
	*explorer
	state state
	// numbers are those of members, from 1.
	numbers [slots]int
	last    int
}

// narrate plays a history again, and its end where that is a step.
func (e *explorer) narrate(path []key, end *finding) Story {
	t := newNarrator(e)
	out := Story{Name: e.variant.Name, Breaks: Ends}
	for _, want := range path[1:] {
		out.Steps = append(out.Steps, t.take(func(_ step, next state, _ Promise) bool {
			next.tidy(e.bounds)
			return next.pack() == want
		}))
	}
	if end != nil {
		out.Breaks = end.promise
		out.Steps = append(out.Steps, t.take(func(of step, _ state, broken Promise) bool {
			return of == end.step && broken == end.promise
		}))
	}
	return out
}

func newNarrator(e *explorer) *narrator {
	t := &narrator{explorer: e, state: initial()}
	for i := range replicas {
		t.name(i)
	}
	return t
}

// take takes the first such step, and says what it is.
func (t *narrator) take(which func(step, state, Promise) bool) string {
	was := t.state
	var taken step
	found := false
	t.successors(&was, func(of step, next *state, broken Promise, _ bool) {
		if !found && which(of, *next, broken) {
			taken, t.state, found = of, *next, true
		}
	})
	if taken.act == bears || taken.act == bearsLate {
		t.name(int(taken.slot))
	}
	text := t.words(taken, &was)
	numbers := t.numbers
	for i, from := range t.state.tidy(t.bounds) {
		if t.numbers[i] = 0; from >= 0 {
			t.numbers[i] = numbers[from]
		}
	}
	return text
}

func (t *narrator) name(slot int) {
	t.last++
	t.numbers[slot] = t.last
}

func (t *narrator) called(slot int) string { return fmt.Sprintf("m%d", t.numbers[slot]) }

var actWords = [...]string{
	edits:          "Somebody edits the template: revision %d is in force",
	editsBroken:    "Somebody edits the template: revision %d is in force, whose members never get ready",
	editsBack:      "Somebody edits the template: revision %d is in force again",
	pauses:         "Somebody pauses the pool",
	resumes:        "Somebody resumes the pool",
	showsTemplate:  "Freshbind's cache shows revision %d of the template",
	showsMember:    "Freshbind's cache shows that member %s",
	bears:          "The pool controller creates member %s from revision %d",
	bearsLate:      "The pool controller, whose cache is late, creates member %s from revision %d",
	becomesReady:   "Member %s becomes ready",
	fails:          "Member %s fails: it is not ready any more",
	isClaimed:      "A claim binds member %s",
	secondPasses:   "A second passes",
	deadlinePasses: "The progress deadline passes",
	leaderChanges:  "Another replica of Freshbind becomes leader",
	othersTake:     "Freshbind deletes a member of another pool",
	othersReturn:   "The other pool's member is replaced",
	plans:          "Freshbind plans: it %s",
	plansQuietly:   "Freshbind plans: it %s, and does not yet write that onto the pool",
	plansAndEnds:   "Freshbind plans: it %s, and ends before it does the rest; another replica becomes leader",
}

var changeWords = [...]string{
	wasBorn: "is born", gotReady: "is ready", gotUnready: "is not ready any more", wentAway: "is gone", wasHidden: "is hidden",
	wasShown: "is shown",
}

func (t *narrator) words(of step, was *state) string {
	words := actWords[of.act]
	switch of.act {
	case edits, editsBroken, editsBack:
		return fmt.Sprintf(words, t.state.inForce()+1)
	case showsTemplate:
		return fmt.Sprintf(words, t.state.contentAt(t.state.shown)+1)
	case becomesReady, fails, isClaimed:
		return fmt.Sprintf(words, t.called(int(of.slot)))
	case showsMember:
		c := was.pending[0]
		return fmt.Sprintf(words, t.called(int(c.slot))+" "+changeWords[c.what])
	case bears, bearsLate:
		return fmt.Sprintf(words, t.called(int(of.slot)), of.content+1)
	case plans, plansQuietly, plansAndEnds:
		return fmt.Sprintf(words, t.did(was))
	}
	return words
}

// did is what a plan has changed, and what the pool says of it.
func (t *narrator) did(was *state) string {
	deleted, hidden, shown := t.written(was, &t.state)
	var out []string
	for _, did := range []struct {
		verb    string
		members []int
	}{{"deletes", deleted}, {"hides", hidden}, {"shows", shown}} {
		for i, number := range did.members {
			text := fmt.Sprintf("m%d", number)
			if i == 0 {
				text = did.verb + " " + text
			}
			out = append(out, text)
		}
	}
	status := fmt.Sprintf("says %s of revision %d", outcomes[t.state.stored.state], t.state.stored.revision+1)
	if n := t.state.memory.deleted(); n > 0 {
		status += fmt.Sprintf(" with %d in replacement", n)
	}
	if t.state.admit == admitsAny {
		status += ", and admits older members"
	}
	return strings.Join(append(out, status), ", ")
}

// written are the numbers of members that were written to between two states.
func (t *narrator) written(was, is *state) (deleted, hidden, shown []int) {
	for i := range was.members {
		before, now := was.members[i].stored, is.members[i].stored
		switch {
		case before.there && !now.there:
			deleted = append(deleted, t.numbers[i])
		case before.shown && !now.shown:
			hidden = append(hidden, t.numbers[i])
		case !before.shown && now.shown:
			shown = append(shown, t.numbers[i])
		}
	}
	return deleted, hidden, shown
}
