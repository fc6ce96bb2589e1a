package advice

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/freshbind/freshbind/internal/revision"
)

// TemplateChange is what a write of a template does to the idle members of the
// pools that refer to it.
type TemplateChange struct {
	// Before and After are template-spec-hashes; Before is "" when no template
	// of the name is stored.
	Before, After string
	Pools         []PoolChange
}

// PoolChange counts the idle members of one pool: those that no claim has and
// that are not being deleted.
type PoolChange struct {
	Name string
	Rollout
	Idle int
	// BecomeStale are of the revision in force and not of the next one,
	// BecomeFresh the other way round, and StayStale of neither.
	BecomeStale, BecomeFresh, StayStale int
	// Guessed are those of BecomeStale whose revision was not looked at.
	Guessed int
}

// Add counts an idle member by whether it is of the revision in force, and of the next one.
func (p *PoolChange) Add(now, next bool) {
	p.Idle++
	switch {
	case now && !next:
		p.BecomeStale++
	case !now && next:
		p.BecomeFresh++
	case !now:
		p.StayStale++
	}
}

// BecomeStale is the sum over all pools.
func (c TemplateChange) BecomeStale() int {
	sum := 0
	for _, p := range c.Pools {
		sum += p.BecomeStale
	}
	return sum
}

// named is how many pools a line names.
const named = 3

// nameLimits are the lengths to which names are cut, one after the other, until
// the line is short enough.
var nameLimits = []int{63, 40, 24, 12}

// Lines returns one line when members become stale, and none otherwise.
func (c TemplateChange) Lines() []string {
	if c.BecomeStale() == 0 {
		return nil
	}
	pools := slices.DeleteFunc(slices.Clone(c.Pools), func(p PoolChange) bool { return p.BecomeStale == 0 })
	slices.SortFunc(pools, func(a, b PoolChange) int {
		return cmp.Or(cmp.Compare(b.BecomeStale, a.BecomeStale), cmp.Compare(a.Name, b.Name))
	})
	var line string
	for _, limit := range nameLimits {
		line = staleLine(pools, limit)
		if utf8.RuneCountInString(line) <= MaxLine {
			break
		}
	}
	return []string{revision.Truncate(line, MaxLine)}
}

// staleLine takes pools of one policy together: python 20, node 10: Recreate
// deletes them.
func staleLine(pools []PoolChange, nameLimit int) string {
	var total, rest, guessed int
	var groups []*policyGroup
	for i, p := range pools {
		total += p.BecomeStale
		guessed += p.Guessed
		if i >= named {
			rest += p.BecomeStale
			continue
		}
		policy := p.StalePolicy()
		at := slices.IndexFunc(groups, func(g *policyGroup) bool { return g.policy == policy })
		if at < 0 {
			at = len(groups)
			groups = append(groups, &policyGroup{policy: policy})
		}
		groups[at].count += p.BecomeStale
		groups[at].pools = append(groups[at].pools, fmt.Sprintf("%s %d", revision.Truncate(p.Name, nameLimit), p.BecomeStale))
	}
	parts := make([]string, 0, named+1)
	for _, g := range groups {
		parts = append(parts, strings.Join(g.pools, ", ")+": "+g.policy.Text(g.count))
	}
	if more := len(pools) - named; more > 0 {
		parts = append(parts, fmt.Sprintf("%d in %s", rest, plural(more, "more pool", "more pools")))
	}
	upTo := ""
	if guessed > 0 {
		upTo = "up to "
	}
	return fmt.Sprintf("%s%s stale (%s)", upTo,
		plural(total, "idle member becomes", "idle members become"), strings.Join(parts, "; "))
}

type policyGroup struct {
	policy StalePolicy
	count  int
	pools  []string
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
