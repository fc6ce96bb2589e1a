package advice

import (
	"fmt"
	"strings"

	"github.com/freshbind/freshbind/internal/revision"
)

// Outcome is what a new claim gets. The set is closed.
type Outcome string

const (
	// Warm: a member of a pool.
	Warm Outcome = "Warm"
	// Cold: a sandbox of its own, because no pool has a member for it now.
	Cold Outcome = "Cold"
	// ColdByDesign: a sandbox of its own, because the claim or the pool says so.
	ColdByDesign Outcome = "ColdByDesign"
	// Waits: nothing until something is created.
	Waits Outcome = "Waits"
	// Impossible: nothing, because the template refuses what the claim asks for.
	Impossible Outcome = "Impossible"
)

// Claim is what is known of the sandbox that a new claim will get.
type Claim struct {
	// Pool is the one that it names; "" when it names none.
	Pool string
	// PoolGone: no such pool exists, or it is being deleted.
	PoolGone bool
	// Template is its own or that of its pool; "" when that is not known.
	Template     string
	TemplateGone bool
	// NeedsPool: without its pool there is no template either.
	NeedsPool bool
	// Refused is why the template gives this claim no sandbox; "" when it does.
	Refused string
	// OwnMake names what only a sandbox made for the claim can have (env,
	// volumeClaimTemplates); such a claim never gets a member.
	OwnMake []string
	// Pools are those whose members it may get.
	Pools []Stock
}

// Stock is what a pool has for a claim.
type Stock struct {
	Name     string
	Replicas int
	// Ready is how many the pool's status says, hidden members included.
	Ready int
	// Idle are the members that no claim has and that are not being deleted.
	Idle int
	// Takeable, Hidden, Foreign (of another template), Stale and Unready are
	// parts of Idle. Stale ones count as takeable where they are served, and
	// unready ones where nobody looked.
	Takeable, Hidden, Foreign, Stale, Unready int
	// Strategy is the pool's, for people.
	Strategy string
}

// Outcome is what the claim gets, and one line that says it.
func (c Claim) Outcome() (Outcome, string) {
	switch {
	case c.PoolGone && c.NeedsPool:
		return Waits, fmt.Sprintf("this claim waits: pool %s does not exist", revision.Truncate(c.Pool, maxName))
	case c.TemplateGone && c.Pool != "":
		return Waits, fmt.Sprintf("this claim waits: template %s of pool %s does not exist", revision.Truncate(c.Template, maxName), revision.Truncate(c.Pool, maxName))
	case c.TemplateGone:
		return Waits, fmt.Sprintf("this claim waits: template %s does not exist", revision.Truncate(c.Template, maxName))
	case c.Refused != "":
		return Impossible, revision.Truncate("this claim gets no sandbox: "+c.Refused, MaxLine)
	case len(c.OwnMake) > 0:
		return ColdByDesign, "this claim cold-starts, as it always does: it sets " + strings.Join(c.OwnMake, " and ")
	case c.PoolGone:
		return Cold, fmt.Sprintf("this claim will cold-start: pool %s does not exist", revision.Truncate(c.Pool, maxName))
	}
	return c.fromStock()
}

// maxName keeps two names and the words around them within a line.
const maxName = 90

// fromStock decides by what the pools have.
func (c Claim) fromStock() (Outcome, string) {
	var replicas int
	for _, p := range c.Pools {
		if p.takeable() {
			return Warm, fmt.Sprintf("this claim gets a member of pool %s (%d of %d idle members can be claimed)",
				revision.Truncate(p.Name, maxName), p.Takeable, p.Idle)
		}
		replicas += p.Replicas
	}
	if replicas == 0 {
		return ColdByDesign, "this claim cold-starts, as it always does: " + c.noReplicas()
	}
	if len(c.Pools) == 1 {
		p := c.Pools[0]
		return Cold, fmt.Sprintf("this claim will cold-start: pool %s has %s", revision.Truncate(p.Name, maxName), p.lack())
	}
	return Cold, fmt.Sprintf("this claim will cold-start: none of the %d pools of template %s has a member for it",
		len(c.Pools), revision.Truncate(c.Template, maxName))
}

func (c Claim) noReplicas() string {
	if len(c.Pools) == 0 {
		return "it asks for no pool"
	}
	return fmt.Sprintf("pool %s has replicas 0", revision.Truncate(c.Pools[0].Name, maxName))
}

func (s Stock) takeable() bool { return s.Takeable > 0 && s.Ready > 0 }

// lack says why nothing can be taken.
func (s Stock) lack() string {
	switch {
	case s.Idle == 0:
		return fmt.Sprintf("no idle member (0 of %d)", s.Replicas)
	case s.Ready == 0:
		return fmt.Sprintf("no ready member (0 of %d)", s.Replicas)
	}
	var parts []string
	for _, part := range []struct {
		count int
		what  string
	}{
		{s.Stale, "stale, which " + s.Strategy + " does not serve"}, {s.Foreign, "of another template"},
		{s.Hidden, "hidden"}, {s.Unready, "not ready"},
	} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.what))
		}
	}
	return fmt.Sprintf("no member for it (of %d idle: %s)", s.Idle, strings.Join(parts, "; "))
}

// Lines returns one line when the claim gets no member and does not ask for
// that itself, and none otherwise.
func (c Claim) Lines() []string {
	switch outcome, line := c.Outcome(); outcome {
	case Cold, Waits, Impossible:
		return []string{line}
	}
	return nil
}
