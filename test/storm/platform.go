package main

import (
	"context"
	"sync"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/warmpool"
)

// pool is one of the storm's, or of the hostile tenant's.
type pool = warmpool.Pool

// platform is a warm-pool system, and how storms are made on it: everything else is the
// same for all.
type platform interface {
	warmpool.Platform
	// begin starts it in its world, until ctx ends.
	begin(ctx context.Context, w *world) error
	// strategies are those of the storm's own pools.
	strategies() [pools]string
	// attacks are those that are made on it. newWays creates the tenant's pool, which is
	// not yet full, and says how the tenant makes them on it.
	attacks() []attack
	newAttackFuncs(ctx context.Context, w *world, storm options, o warmpool.PoolOptions, t *tenant) (map[attack]attackFunc, error)
}

// ids tell of versions of objects which request wrote them.
type ids struct {
	mu  sync.Mutex
	ids map[checker.RV]string
}

func newIDs() *ids { return &ids{ids: map[checker.RV]string{}} }

func (i *ids) note(version, id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ids[checker.RV(version)] = id
}

func (i *ids) of(version checker.RV) (string, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	id, ok := i.ids[version]
	return id, ok
}
