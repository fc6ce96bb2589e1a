package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/freshbind/freshbind/test/scenario"
)

// One node's or one zone's death takes no more of a pool than it has to.
func TestMembersSpreadOverZonesAndNodes(t *testing.T) {
	s := newStage(t)
	const runs, replicas = 10, zones * nodesPerZone * 2
	for run := range runs {
		p := s.pool(scenario.Pool{Name: fmt.Sprintf("run-%d", run), Replicas: replicas})
		s.full(p, "")
		byZone, byNode := map[string]int{}, map[string]int{}
		members, err := s.Members(t.Context(), p.Name)
		s.must(err)
		of := map[string]bool{}
		for _, m := range members {
			of[m.Name] = true
		}
		for i := range zones * nodesPerZone {
			byNode[nodeName(i)] = 0
		}
		for _, pod := range s.pods() {
			if of[pod.Name] {
				byZone[zoneOf(pod.Spec.NodeName)]++
				byNode[pod.Spec.NodeName]++
			}
		}
		if d := difference(byZone); d > 1 || len(byZone) != zones {
			t.Errorf("run %d: zones differ by %d members, want 1 at most: %v", run, d, byZone)
		}
		if d := difference(byNode); d > 1 {
			t.Errorf("run %d: nodes differ by %d members, want 1 at most: %v", run, d, byNode)
		}
	}
}

func difference(counts map[string]int) int {
	all := slices.Collect(maps.Values(counts))
	return slices.Max(all) - slices.Min(all)
}
