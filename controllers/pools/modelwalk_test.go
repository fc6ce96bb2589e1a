package pools

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/model/rollout"
)

// The model of test/model/rollout has what the controller does around a plan a second
// time. The real controller, in the same histories, comes to the same.
func TestTheModelOfRolloutsDoesWhatTheControllerDoes(t *testing.T) {
	walks, first := envInt("MODEL_WALKS", 20), uint64(envInt("MODEL_SEED", 1))
	for _, strategy := range []freshness.Strategy{freshness.RollingUpdate, freshness.Recreate, freshness.OnReplenish} {
		t.Run(string(strategy), func(t *testing.T) {
			for seed := first; seed < first+uint64(walks); seed++ {
				b := rollout.Bounds{
					Strategy: strategy, MaxUnavailable: 1 + int(seed%2), Budget: 2, Edits: 2, Late: 1 + int(seed/2%2),
					Claims: true, Failures: true, LateBirths: true, Pauses: seed%3 == 0, Leaders: true, Others: true,
				}
				w := newWalk(b)
				if err := rollout.Walk(b, granted, seed, 400, w); err != nil {
					t.Fatal(err)
				}
				if w.mu.Unlock(); w.broken != "" {
					t.Fatalf("seed %d: %s", seed, w.broken)
				}
			}
		})
	}
}

// granted is what the budget grants a pool beside another one.
func granted(size int, pool, another rollout.Charge, want int) int {
	b := NewBudget(size, Pace{}, func(client.ObjectKey, time.Duration) {})
	b.Settle("another", Account{another.Replacing, another.Stalled}, true)
	return b.Take(client.ObjectKey{Name: "pool"}, "pool", Account{pool.Replacing, pool.Stalled}, Grant{want, want}).Replacements
}

// modelWalk plays in a simulation in which nothing happens at random.
type modelWalk struct {
	*simulation
	pool     *simPool
	versions map[int]*simVersion
	numbered map[int]*simMember
	others   int
}

func newWalk(b rollout.Bounds) *modelWalk {
	s := &simulation{seed: 1, reducer: platform.NewReducer(agentsandbox.Objects{}), clock: clocktesting.NewFakePassiveClock(now), calm: true, budget: b.Budget}
	s.mu.Lock()
	s.draw(0)
	template := &simTemplate{}
	s.templates = []*simTemplate{template}
	s.edit(template, "t0")
	p := &simPool{strategy: b.Strategy, template: template, born: template.live}
	p.stored = builders.MakePool("ns", "p0").Template("t0").Replicas(3).Strategy("OnReplenish").RV(1).
		Annotation("freshbind.dev/rollout-strategy", string(b.Strategy)).
		Annotation("freshbind.dev/max-unavailable", fmt.Sprint(b.MaxUnavailable)).
		Annotation("freshbind.dev/progress-deadline", "24h").Obj()
	p.key = client.ObjectKeyFromObject(p.stored)
	s.pools = []*simPool{p}
	s.store(p, p.stored)
	s.end()
	w := &modelWalk{simulation: s, pool: p, versions: map[int]*simVersion{1: template.live}, numbered: map[int]*simMember{}}
	for number := range 3 {
		w.Bears(number+1, 1)
		w.BecomesReady(number + 1)
	}
	s.leader = s.newProcess()
	w.Leads(true)
	w.Plans()
	return w
}

func (w *modelWalk) Edits(revision int) {
	back := w.versions[revision] != nil
	// What is drawn decides whether the revision before comes back.
	for try := uint64(0); ; try++ {
		w.draw(try)
		w.random.IntN(20_000)
		if (w.random.IntN(4) == 0) == back {
			w.draw(try)
			break
		}
	}
	w.edit(w.pool.template, "t0")
	w.versions[revision] = w.pool.template.live
}

func (w *modelWalk) Pauses(paused bool) {
	w.store(w.pool, builders.PoolFrom(w.pool.stored).Annotation("freshbind.dev/paused", fmt.Sprint(paused)).Obj())
	w.end()
	w.leader.show(poolChanges, 1)
}

func (w *modelWalk) ShowsTemplate() { w.leader.show(templateChanges, 1) }

func (w *modelWalk) ShowsMember(number int) {
	// What one plan has written comes in any order.
	log, delivered := w.logs[memberChanges], w.leader.delivered[memberChanges]
	at := delivered + slices.IndexFunc(log[delivered:], func(h happening) bool { return h.object.Name == w.numbered[number].name })
	h := log[at]
	copy(log[delivered+1:at+1], log[delivered:at])
	log[delivered] = h
	w.leader.show(memberChanges, 1)
}

// Bears has members born a second apart, so that their order is that of their numbers.
func (w *modelWalk) Bears(number, revision int) {
	at := w.clock.Now()
	w.clock.SetTime(now.Add(-time.Hour + time.Duration(number)*time.Second))
	w.pool.born = w.versions[revision]
	w.numbered[number] = w.bear(w.pool)
	w.clock.SetTime(at)
	w.end()
}

func (w *modelWalk) BecomesReady(number int) {
	m := w.numbered[number]
	m.ready = w.clock.Now().Truncate(time.Second)
	w.written(m, nil)
	w.end()
	w.settleAvailability()
}

func (w *modelWalk) Fails(number int) {
	m := w.numbered[number]
	m.ready = time.Time{}
	w.written(m, func() { m.pool.account.leaves(m, byOthers) })
	w.end()
}

func (w *modelWalk) IsClaimed(number int) {
	w.claim(w.numbered[number])
	w.end()
}

func (w *modelWalk) SecondPasses() { w.passes(time.Second) }

func (w *modelWalk) Leads(template bool) {
	next := w.leader.behind()
	next.show(memberChanges, 1<<20)
	next.show(poolChanges, 1<<20)
	if template {
		next.show(templateChanges, 1<<20)
	}
	w.leader = next
	next.lead()
	// All that comes later than the list may be seen late.
	m := next.controller.record(w.pool.key, w.pool.stored.GetUID())
	w.mu.Unlock()
	err := next.controller.prove(context.Background(), m, w.pool.stored)
	w.mu.Lock()
	if err != nil || !m.proven {
		panic(fmt.Sprintf("the cache shows less than there is: %v", err))
	}
	w.Others(w.others)
}

func (w *modelWalk) Others(replacing int) {
	w.others = replacing
	w.leader.controller.budget.Settle("another", Account{Replacing: replacing}, true)
}

func (w *modelWalk) Plans() rollout.Planned {
	shown := map[int]bool{}
	for number, m := range w.numbered {
		if slices.Contains(w.pool.members, m) {
			shown[number] = m.shown
		}
	}
	w.leader.reconcile(w.pool.key)
	w.leader.show(poolChanges, 1<<20)
	annotations := w.pool.stored.GetAnnotations()
	status, err := platform.ParseRolloutStatus(annotations[settings.RolloutStatusKey])
	if err != nil {
		panic(err)
	}
	out := rollout.Planned{
		State: freshness.State(annotations[settings.RolloutStateKey]), Cause: freshness.Cause(annotations[settings.RolloutReasonKey]),
		Admits: freshness.Admit(annotations[settings.AdmitKey]), Replacing: status.Replacing,
		Edits: int(status.ObservedTemplateGeneration) - 1,
	}
	for revision, version := range w.versions {
		if version.hash == status.UpdateRevision {
			out.Revision = revision
		}
	}
	for number := range len(w.numbered) + 1 {
		was, there := shown[number]
		switch m := w.numbered[number]; {
		case !there:
		case !slices.Contains(w.pool.members, m):
			out.Deleted = append(out.Deleted, number)
		case was && !m.shown:
			out.Hidden = append(out.Hidden, number)
		case !was && m.shown:
			out.Shown = append(out.Shown, number)
		}
	}
	return out
}
