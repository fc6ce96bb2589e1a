package rollout

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/internal/freshness"
)

// Player does elsewhere what happens in the model. Members have numbers, from 1, by the
// order of their births; so have revisions.
type Player interface {
	// Edits brings a revision into force.
	Edits(revision int)
	Pauses(paused bool)
	// ShowsTemplate and ShowsMember have caches show the next change.
	ShowsTemplate()
	ShowsMember(member int)
	Bears(member, revision int)
	BecomesReady(member int)
	Fails(member int)
	IsClaimed(member int)
	SecondPasses()
	// Leads makes another replica leader, whose cache shows all members, and, where it is
	// said, the template as it is stored.
	Leads(template bool)
	// Others says what other pools replace.
	Others(replacing int)
	// Plans has a plan made and carried out.
	Plans() Planned
}

// Planned is what came of a plan: members that were written to, by their numbers, and
// what the pool says.
type Planned struct {
	Deleted, Hidden, Shown []int
	State                  freshness.State
	Cause                  freshness.Cause
	Revision               int
	Admits                 freshness.Admit
	Replacing              freshness.Replacements
	// Edits is how many edits of the template the pool says that the plan knew of.
	Edits int
}

// Walk plays so many steps of a history that it chooses, and returns an error where a plan
// comes to something else than in the model. Nothing that takes long is part of it: no
// deadline passes.
func Walk(b Bounds, share Share, seed uint64, steps int, p Player) error {
	w := walk{narrator: newNarrator(newExplorer(&Variant{}, &b, share)), random: rand.New(rand.NewPCG(seed, 0)), player: p}
	for range steps {
		if err := w.step(); err != nil {
			return fmt.Errorf("seed %d: %w, after\n%s", seed, err, strings.Join(w.story, "\n"))
		}
	}
	return nil
}

type walk struct {
	*narrator
	random *rand.Rand
	player Player
	story  []string
}

// option is a step that could be next.
type option struct {
	step step
	next state
}

func (w *walk) step() error {
	byAct := map[act][]option{}
	var acts []act
	w.successors(&w.state, func(of step, next *state, _ Promise, _ bool) {
		if of.act == plansAndEnds || of.act == deadlinePasses || of.act == editsBroken {
			return
		}
		kind := of.act
		if kind == plansQuietly {
			kind = plans
		}
		if byAct[kind] == nil {
			acts = append(acts, kind)
		}
		byAct[kind] = append(byAct[kind], option{of, *next})
	})
	chosen := acts[w.random.IntN(len(acts))]
	if chosen == plans {
		return w.plan(byAct[plans])
	}
	options := byAct[chosen]
	o := options[w.random.IntN(len(options))]
	w.play(o)
	return nil
}

// play takes a step, and has it played.
func (w *walk) play(o option) {
	was, numbers := w.state, w.numbers
	w.story = append(w.story, w.take(func(of step, next state, _ Promise) bool { return of == o.step && next == o.next }))
	p, is := w.player, &w.state
	member := 0
	if o.step.slot >= 0 {
		member = numbers[o.step.slot]
	}
	switch o.step.act {
	case edits, editsBack:
		p.Edits(int(is.inForce()) + 1)
	case pauses, resumes:
		p.Pauses(is.paused)
	case showsTemplate:
		p.ShowsTemplate()
	case showsMember:
		p.ShowsMember(numbers[was.pending[0].slot])
	case bears, bearsLate:
		p.Bears(w.last, int(o.step.content)+1)
	case becomesReady:
		p.BecomesReady(member)
	case fails:
		p.Fails(member)
	case isClaimed:
		p.IsClaimed(member)
	case secondPasses:
		p.SecondPasses()
	case leaderChanges:
		p.Leads(is.shown == is.edits && was.shown < was.edits)
	case othersTake, othersReturn:
		p.Others(int(is.others))
	}
}

// plan has a plan made, and goes on with the way in which it ended.
func (w *walk) plan(options []option) error {
	got := w.player.Plans()
	var chosen *option
	diff := ""
	for _, o := range options {
		want := w.planned(&o.next)
		if want.Edits = got.Edits; !cmp.Equal(want, got) {
			diff = cmp.Diff(want, got)
		} else if chosen == nil || int(o.next.readStored) == got.Edits {
			chosen = &o
		}
	}
	if chosen == nil {
		return fmt.Errorf("the plan comes to something else (-model,+player):\n%s", diff)
	}
	w.story = append(w.story, w.take(func(of step, next state, _ Promise) bool { return of == chosen.step && next == chosen.next }))
	return nil
}

func (w *walk) planned(is *state) Planned {
	out := Planned{State: outcomes[is.stored.state], Cause: causes[is.cause], Revision: int(is.stored.revision) + 1}
	out.Deleted, out.Hidden, out.Shown = w.written(&w.state, is)
	out.Replacing = is.stored.asRollout().Replacing
	switch is.admit {
	case admitsFresh:
		out.Admits = freshness.AdmitFresh
	case admitsAny:
		out.Admits = freshness.AdmitAny
	}
	return out
}
