package rollout

import "github.com/freshbind/freshbind/internal/freshness"

// Variant is the pool with one safeguard less; the zero Variant has them all.
type Variant struct {
	// Name says what is missing.
	Name string
	// Want is the promise that a history breaks, In where.
	Want Promise
	In   Bounds
	// NoStep: all may be unavailable at once. NoBudget: whatever is wanted is granted.
	NoStep, NoBudget bool
	// CountsNoneLost: what went before deletes were seen is not counted.
	CountsNoneLost bool
	// Forgets: what was deleted is not remembered; StoresNothing: nor stored for the next
	// leader. DropsOnEdit: an edit begins with nothing in replacement.
	Forgets, StoresNothing, DropsOnEdit bool
	// InheritsNothing: what is missing when a leader begins went after the deletes of the
	// leader before. Unlisted: a leader begins whatever its cache shows.
	InheritsNothing, Unlisted bool
	// GoesBack: a cached template counts though a newer one was read. CachedTemplate: deletes
	// are planned on the template that a cache shows.
	GoesBack, CachedTemplate bool
	// IgnoresPause, NoDeadline: what the pool says is not heard.
	IgnoresPause, NoDeadline bool
	// KeepsUnready: older members that are not ready wait for their turn.
	KeepsUnready bool
	// ShowsNothing: what was hidden stays so. OffersWaiting: claims are offered what waits for
	// a grant.
	ShowsNothing, OffersWaiting bool
	// Unproven: older members are served when only a cache shows no fresh one.

	Unproven bool
}

// The pools that scenes begin with.
var (
	rolling    = Bounds{Strategy: freshness.RollingUpdate, MaxUnavailable: 1, Budget: 2, Edits: 1, Late: 1}
	recreating = Bounds{Strategy: freshness.Recreate, Budget: 2, Edits: 1, Late: 1}
	replacing  = Bounds{Strategy: freshness.OnReplenish, Budget: 2, Edits: 2, Late: 1, Claims: true}
)

func (b Bounds) with(name string, change func(*Bounds)) Bounds {
	b.Name = string(b.Strategy) + ": " + name
	change(&b)
	return b
}

// Scenes are what happens together, in parts that are gone through one by one.
func Scenes() []Bounds {
	return []Bounds{
		rolling.with("claims, leaders", func(b *Bounds) { b.Claims, b.Leaders = true, true }),
		rolling.with("claims, late births", func(b *Bounds) { b.Claims, b.LateBirths = true, true }),
		rolling.with("failures", func(b *Bounds) { b.MaxUnavailable, b.Failures = 2, true }),
		rolling.with("a template that is broken, late births, pauses, edits", func(b *Bounds) {
			b.Edits, b.Broken, b.LateBirths, b.Pauses = 2, true, true, true
		}),
		rolling.with("other pools, leaders, edits", func(b *Bounds) { b.MaxUnavailable, b.Edits, b.Others, b.Leaders = 2, 2, true, true }),
		recreating.with("claims, edits", func(b *Bounds) { b.Edits, b.Claims = 2, true }),
		recreating.with("claims, leaders", func(b *Bounds) { b.Claims, b.Leaders = true, true }),
		recreating.with("failures, leaders", func(b *Bounds) { b.Failures, b.Leaders = true, true }),
		recreating.with("a template that is broken, late births, other pools, leaders, edits", func(b *Bounds) {
			b.Edits, b.Broken, b.LateBirths, b.Others, b.Leaders = 2, true, true, true, true
		}),
		recreating.with("a template that is broken, other pools, pauses", func(b *Bounds) { b.Broken, b.Others, b.Pauses = true, true, true }),
		replacing.with("claims, edits, failures", func(b *Bounds) { b.Failures = true }),
	}
}

// Quick are scenes that are gone through in no time.
func Quick() []Bounds {
	return []Bounds{
		rolling.with("a template that is broken, edits", func(b *Bounds) { b.Edits, b.Broken = 2, true }),
		rolling.with("other pools, pauses", func(b *Bounds) { b.MaxUnavailable, b.Others, b.Pauses = 2, true, true }),
		rolling.with("late births, leaders", func(b *Bounds) { b.LateBirths, b.Leaders = true, true }),
		recreating.with("failures", func(b *Bounds) { b.Failures = true }),
		replacing.with("claims", func(b *Bounds) { b.Edits = 1 }),
	}
}

// Variants are the safeguards that can be left out, one by one.
func Variants() []Variant {
	rolling, recreating := rolling.with("one edit", func(*Bounds) {}), recreating.with("one edit", func(*Bounds) {})
	edited := rolling.with("two edits", func(b *Bounds) { b.Edits = 2 })
	claimed := rolling.with("claims", func(b *Bounds) { b.Claims = true })
	led := rolling.with("leaders", func(b *Bounds) { b.Leaders = true })
	busy := claimed.with("claims, leaders", func(b *Bounds) { b.Leaders = true })
	broken := edited.with("a template that is broken", func(b *Bounds) { b.Broken = true })
	return []Variant{
		{Name: "without max-unavailable", NoStep: true, Want: Bounded, In: rolling},
		{Name: "without a budget", NoBudget: true, Want: Budgeted, In: recreating},
		{Name: "what was deleted is forgotten", Forgets: true, Want: Bounded, In: rolling},
		{Name: "what was deleted is not said on the pool, for the next leader", StoresNothing: true, Want: Bounded, In: led},
		{Name: "an edit begins with nothing in replacement", DropsOnEdit: true, Want: Bounded, In: edited},
		{Name: "what went before deletes were seen is not counted", CountsNoneLost: true, Want: Bounded, In: claimed},
		{Name: "what is missing when a leader begins went after deletes", InheritsNothing: true, Want: Bounded, In: busy},
		{Name: "a leader begins before its cache shows what is stored", Unlisted: true, Want: Bounded, In: led},
		{Name: "plans go back to an older template in the cache", GoesBack: true, Want: Budgeted, In: recreating.with("claims, two edits", func(b *Bounds) { b.Claims, b.Edits = true, 2 })},
		{Name: "deletes are planned on a cached template", CachedTemplate: true, Want: Spared, In: edited},
		{Name: "the pause is not heard", IgnoresPause: true, Want: Untouched, In: rolling.with("pauses", func(b *Bounds) { b.Pauses = true })},
		{Name: "without a progress deadline", NoDeadline: true, Want: Ends, In: broken},
		{Name: "older members that are not ready wait for their turn", KeepsUnready: true, Want: Ends, In: broken},
		{Name: "hidden members are not shown again", ShowsNothing: true, Want: Ends, In: edited},
		{Name: "claims are offered what waits for other pools", OffersWaiting: true, Want: Steady, In: recreating},
		{Name: "older members are served when only a cache shows no fresh one", Unproven: true, Want: Withheld, In: rolling},
	}
}
