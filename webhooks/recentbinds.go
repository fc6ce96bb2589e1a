package webhooks

import (
	"context"
	"slices"
	"sync"

	"github.com/freshbind/freshbind/internal/bounded"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
)

const (
	// bindsBytes bounds how many claims are remembered, some 300 bytes each: more
	// where who writes an owner reference makes its UID longer.
	bindsBytes = 3 << 20
	// bindsEach bounds how many sandboxes of one claim are.
	bindsEach = 4
)

// RecentBinds remembers which sandboxes each claim was lately let have. Up to v0.3.10
// of agent-sandbox a claim names its sandbox only in its status, some time after
// the bind, and may be given a second one until then
// (kubernetes-sigs/agent-sandbox#478). What is remembered is a hint where to
// look, and is read live before it counts. A nil *RecentBinds remembers nothing.
type RecentBinds struct {
	// Index returns more names, from a cache, that may be late; nil for none.
	Index func(ctx context.Context, namespace, claimUID string) []string

	mu    sync.Mutex
	names *bounded.Cache[string, []string]
}

// NewRecentBinds returns one without binds.
func NewRecentBinds(index func(ctx context.Context, namespace, claimUID string) []string) *RecentBinds {
	return &RecentBinds{Index: index, names: bounded.NewCache[string, []string](bindsBytes)}
}

// hints are names of sandboxes that the write's claim may have.
func (g *RecentBinds) hints(ctx context.Context, w platform.Write) []string {
	if g == nil || w.Claim.UID == "" || w.Operation == freshness.Release {
		return nil
	}
	g.mu.Lock()
	names := slices.Clone(g.of(w.Claim.UID))
	g.mu.Unlock()
	if g.Index != nil {
		names = append(names, g.Index(ctx, w.Judged().GetNamespace(), w.Claim.UID)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// note takes note of a write that passes. Whether it is stored in the end is not
// known here.
func (g *RecentBinds) note(w platform.Write) {
	if g == nil || w.Operation != freshness.Bind {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	name := w.Judged().GetName()
	names := slices.DeleteFunc(slices.Clone(g.of(w.Claim.UID)), func(n string) bool { return n == name })
	names = append(names, name)
	names = names[max(0, len(names)-bindsEach):]
	bytes := len(w.Claim.UID)
	for _, n := range names {
		bytes += len(n)
	}
	g.names.Add(w.Claim.UID, names, bytes)
}

func (g *RecentBinds) of(claim string) []string {
	names, _ := g.names.Get(claim)
	return names
}
