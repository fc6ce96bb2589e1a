package freshness

import "github.com/freshbind/freshbind/internal/revision"

// Repair is what makes a stale cold start, or a stale birth, current.
type Repair struct {
	// From is the revision that it was rendered from, To the one in force.
	From, To string
	// Plain: it was rendered as releases without secure defaults do.
	Plain bool
}

// RepairOf returns what makes a cold start or a birth current that is refused for
// its age and for nothing else; nil for any other write. It has to equal an older
// revision to the leaf: what it has besides, even where the pool allows for it,
// somebody put there, and a repair would take it away. Of births only those whose
// maker would leave the outcome alone: a controller that recreates compares what it
// has with its cache, and would delete it.
func RepairOf(s Snapshot) *Repair {
	birth := s.Operation == Birth && s.Pool != nil && s.Pool.Replenishes
	if s.Operation != ColdStart && !birth {
		return nil
	}
	v := Judge(s)
	if v.Allowed || v.Reason != StaleRevision {
		return nil
	}
	if from := s.exactly(s.Known); from != "" {
		return &Repair{From: from, To: v.Expected}
	}
	if s.Plain == nil {
		return nil
	}
	if from := s.exactly(s.Plain.Known); from != "" {
		return &Repair{From: from, To: v.Expected, Plain: true}
	}
	return nil
}

// RepairWithin is RepairOf within a budget, as JudgeWithin.
func RepairWithin(s Snapshot, b *revision.Budget) (*Repair, error) { return within(RepairOf, s, b) }

// exactly names the older revision that the member equals; "" for none.
func (s Snapshot) exactly(known []Known) string {
	for _, k := range known {
		if k.Hash != s.Template.Hash && s.work.Count(k.Content, s.Member.Content, revision.PathSet{}, 1) == 0 {
			return k.Hash
		}
	}
	return ""
}
