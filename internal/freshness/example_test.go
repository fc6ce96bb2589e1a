package freshness_test

import (
	"fmt"
	"time"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/revision"
)

// built is the content of a sandbox with an image.
func built(image string) revision.Blueprint {
	b, err := revision.FromPodSpec(map[string]any{"containers": []any{map[string]any{"name": "python", "image": image}}})
	if err != nil {
		panic(err)
	}
	return b
}

// A claim binds a member that was built before the template changed. The pool's
// strategy decides whether that is a denial.
func ExampleJudge() {
	v1, v2 := built("sandbox:v1"), built("sandbox:v2")
	snapshot := freshness.Snapshot{
		Operation: freshness.Bind,
		Member: freshness.Member{
			Name: "python-7xk2p", UID: "m", Controller: freshness.Owner{Kind: freshness.OwnedByPool, Name: "python", UID: "p"},
			Generation: 1, Template: "python", Content: v1, Proposed: v1, PodName: "python-7xk2p",
		},
		ClaimRef: freshness.Owner{Kind: freshness.OwnedByClaim, Name: "c42", UID: "c"},
		Claim:    &freshness.Claim{UID: "c", Pool: "python"},
		Template: &freshness.Template{Name: "python", Hash: v2.Hash(), Content: v2},
		Pod:      &freshness.Pod{ControllerUID: "m", Content: v1},
		Known:    []freshness.Known{{Hash: v1.Hash(), Content: v1}},
	}
	for _, strategy := range []freshness.Strategy{freshness.Recreate, freshness.OnReplenish} {
		snapshot.Pool = &freshness.Pool{Name: "python", UID: "p", Template: "python", Strategy: strategy}
		v := freshness.Judge(snapshot)
		fmt.Printf("%s: allowed=%t tolerated=%t %s: %s\n", strategy, v.Allowed, v.Tolerated, v.Reason, v.Detail)
	}
	// Output:
	// Recreate: allowed=false tolerated=false StaleRevision: containers[name=python].image: "sandbox:v2" -> "sandbox:v1"
	// OnReplenish: allowed=true tolerated=true StaleRevision: containers[name=python].image: "sandbox:v2" -> "sandbox:v1"
}

// A pool of four rolls to a new revision. One member may be unavailable: the
// oldest stale one goes, and claims get none of the others while a fresh one is
// ready.
func ExampleMakePlan() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	member := func(class freshness.Class, age time.Duration) freshness.MemberState {
		return freshness.MemberState{Class: class, Created: now.Add(-age), ReadySince: now.Add(-age), Shown: true, ByPool: true}
	}
	plan := freshness.MakePlan(freshness.PoolState{
		Strategy: freshness.RollingUpdate, Replicas: 4, MaxUnavailable: 1, Granted: 50, Deletes: 100, Hideable: true, Now: now,
		Rollout: freshness.Rollout{Revision: "v1-a", Started: now.Add(-time.Minute), Progressed: now, State: freshness.Progressing},
		Members: []freshness.MemberState{
			member(freshness.Stale, 2*time.Hour), member(freshness.Stale, 3*time.Hour),
			member(freshness.Stale, time.Hour), member(freshness.Current, time.Second),
		},
	})
	fmt.Println("delete", plan.Delete, "hide", plan.Hide, "admit", plan.Admit)
	fmt.Println("claimable", plan.Counts.Claimable, "of", plan.Counts.Ready, "ready")
	// Output:
	// delete [1] hide [0 2] admit fresh
	// claimable 1 of 4 ready
}
