package freshness

import (
	"testing"
	"time"
)

// A plan never asks for more than it says, whatever the pool looks like.
func FuzzMakePlan(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3}, uint8(4), uint8(1), uint8(1), uint8(0), uint8(0))
	f.Add([]byte{0, 33, 41, 32}, uint8(154), uint8(6), uint8(1), uint8(5), uint8(2))
	f.Fuzz(func(t *testing.T, raw []byte, replicas, unavailable, strategy, deleted, filled uint8) {
		strategies := []Strategy{Recreate, RollingUpdate, OnReplenish, PlatformOwned}
		s := PoolState{
			Strategy: strategies[int(strategy)%len(strategies)], Replicas: int(replicas), MaxUnavailable: max(1, int(unavailable)),
			Deadline: time.Hour, Now: noon, Rollout: Begin("r", "python", time.Time{}, noon), Granted: 1000, Deletes: 100, Hideable: strategy&4 != 0, Suspended: strategy&8 != 0, Paused: strategy&16 != 0,
		}
		if strategy&32 != 0 {
			s.HiddenFirst = time.Minute
		}
		classes := []Class{Current, Stale, Unknown, Unusable, Unclassified}
		for _, b := range raw {
			m := MemberState{Class: classes[int(b)%len(classes)], Created: before(time.Duration(b) * time.Second), Shown: b&8 != 0, Leaving: b&16 != 0}
			if b&32 != 0 {
				m.ReadySince = m.Created
			}
			if !m.Shown {
				m.HiddenSince = m.Created
			}
			s.Members = append(s.Members, m)
		}
		s.Rollout.Replacing, s.Filled = Replacements(nil).Delete(0, 0, int(deleted), 0), int(filled)
		replacing := max(0, min(int(deleted)-int(filled), s.Missing()))
		p := MakePlan(s)
		taken := 0
		seen := map[int]bool{}
		for _, i := range p.Delete {
			m := s.Members[i]
			switch {
			case seen[i], m.Leaving, m.Class == Current, m.Class == Unclassified:
				t.Fatalf("deletes member %d: %+v", i, m)
			case m.Class == Unknown && s.Suspended:
				t.Fatalf("deletes unknown member %d while attribution is suspended", i)
			case s.HiddenFirst > 0 && s.Hideable && !ServesStale(s.Strategy, p.Admit == AdmitAny) && (m.Shown || m.HiddenSince.Add(s.HiddenFirst).After(s.Now)):
				t.Fatalf("deletes member %d, which was not hidden for %s: %+v", i, s.HiddenFirst, m)
			}
			seen[i] = true
			if s.Available(m) {
				taken++
			}
		}
		if s.Strategy == RollingUpdate && taken > max(0, s.MaxUnavailable-replacing) {
			t.Fatalf("deletes %d available members while %d are being replaced, max unavailable %d", taken, replacing, s.MaxUnavailable)
		}
		if got := p.Rollout.Replacing.Deleted(); got < replacing || got > replacing+len(p.Delete) {
			t.Fatalf("%d are being replaced after %d and %d deletes", got, replacing, len(p.Delete))
		}
		for _, i := range p.Hide {
			if !s.Hideable || seen[i] || !s.Members[i].Shown || s.Members[i].Class == Current && !s.Members[i].ReadySince.IsZero() {
				t.Fatalf("hides member %d: %+v", i, s.Members[i])
			}
		}
	})
}
