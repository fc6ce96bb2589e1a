package freshness

import "slices"

// Replacement is a group of members that were deleted together. They count as
// replaced once so many more members have become available: those that were
// missing before, and then as many as were deleted.
type Replacement struct {
	Ahead   int `json:"ahead,omitempty"`
	Deleted int `json:"deleted,omitempty"`
}

// replacementsKept bounds how many groups are told apart; any more are taken for
// one.
const replacementsKept = 32

// Replacements are the members that are being replaced, the oldest first. A pool
// in use lacks members all the time, because claims take them; whatever becomes
// available fills the gap that is open for the longest, so that only gaps which
// deletes left are charged to a rollout. What is stored with the pool may be
// late: it then says that more are being replaced than really are, never fewer.
type Replacements []Replacement

// MaxReplacing is how many members a group can be of: more than any pool has. Whoever may
// write to a pool may have stored anything, and sums have to stay numbers.
const MaxReplacing = 1_000_000

// Valid reports whether it can have come from deletes.
func (r Replacements) Valid() bool {
	return len(r) <= replacementsKept && !slices.ContainsFunc(r, func(g Replacement) bool {
		return min(g.Ahead, g.Deleted) < 0 || max(g.Ahead, g.Deleted) > MaxReplacing
	})
}

// Deleted is how many members were deleted and are not replaced.
func (r Replacements) Deleted() int {
	n := 0
	for _, g := range r {
		n += g.Deleted
	}
	return n
}

// Awaited is how many members have to become available until all is replaced.
func (r Replacements) Awaited() int {
	n := 0
	for _, g := range r {
		n += g.Ahead + g.Deleted
	}
	return n
}

// Fill notes that n members have become available.
func (r Replacements) Fill(n int) Replacements {
	for n > 0 && len(r) > 0 {
		g := r[0]
		before := min(n, g.Ahead)
		g.Ahead, n = g.Ahead-before, n-before
		now := min(n, g.Deleted)
		g.Deleted, n = g.Deleted-now, n-now
		if g != (Replacement{}) {
			return append(Replacements{g}, r[1:]...)
		}
		r = r[1:]
	}
	if len(r) == 0 {
		return nil
	}
	return r
}

// Limit drops what cannot be missing, because no more than n members are: what was
// deleted last of all, for what fills a gap unseen is no replacement of it.
func (r Replacements) Limit(n int) Replacements {
	r = r.skip(r.Awaited() - max(n, 0))
	return r.Fill(r.Awaited() - max(n, 0))
}

// Postpone notes that n more members went before those whose deletes have not
// been seen yet.
func (r Replacements) Postpone(n int) Replacements {
	if n <= 0 || len(r) == 0 {
		return r
	}
	first := r[0]
	first.Ahead += n
	return append(Replacements{first}, r[1:]...)
}

// Await has everything awaited that is missing now.
func (r Replacements) Await(missing int) Replacements {
	return r.add(Replacement{Ahead: missing - r.Awaited()})
}

// Delete notes deletes of members, of which some were available, while so many
// were missing. One that was not available leaves its gap open, but is waited for
// from now on. Stuck are further members that are to go and are not available
// either: nothing is awaited in their places before they went.
//
// More may be charged already than gaps are left without them. Then some of them
// stand in place of members that were deleted before, and cost nothing more.
func (r Replacements) Delete(missing, unavailable, available, stuck int) Replacements {
	if unavailable+available == 0 {
		return r
	}
	others := max(0, missing-unavailable-stuck)
	again := min(unavailable, max(0, r.Deleted()-others))
	r = r.add(Replacement{Ahead: max(0, others-r.Awaited()), Deleted: unavailable - again + available})
	return r.skip(r.Awaited() - (others + unavailable + available))
}

// skip has up to n fewer awaited of those that were missing before deletes, the
// last ones first. What was deleted stays charged.
func (r Replacements) skip(n int) Replacements {
	var out Replacements
	for _, g := range slices.Backward(r) {
		less := max(0, min(n, g.Ahead))
		g.Ahead, n = g.Ahead-less, n-less
		if g != (Replacement{}) {
			out = append(out, g)
		}
	}
	slices.Reverse(out)
	return out
}

func (r Replacements) add(g Replacement) Replacements {
	if g.Ahead <= 0 && g.Deleted == 0 {
		return r
	}
	out := append(append(Replacements(nil), r...), g)
	if len(out) > replacementsKept {
		last := &out[len(out)-2]
		last.Ahead, last.Deleted = last.Ahead+g.Ahead, last.Deleted+g.Deleted
		out = out[:len(out)-1]
	}
	return out
}
