package freshness

import (
	"testing"
	"time"
)

func TestClassOfAStoredMember(t *testing.T) {
	v1, odd := blueprint(t, "sandbox:v1"), blueprint(t, "sandbox:odd")
	restart := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		change func(*Snapshot)
		want   Class
	}{
		"fresh":                         {func(*Snapshot) {}, Current},
		"its Pod does not matter":       {func(s *Snapshot) { s.Pod = nil }, Current},
		"stale":                         {builtFrom(v1), Stale},
		"stale and tolerated":           {func(s *Snapshot) { builtFrom(v1)(s); s.Pool.Strategy = OnReplenish }, Stale},
		"unknown":                       {builtFrom(odd), Unknown},
		"unknown and let through":       {func(s *Snapshot) { builtFrom(odd)(s); s.Pool.Suspended = s.Template.Hash }, Unknown},
		"of another template":           {func(s *Snapshot) { s.Pool.Template = "other" }, Former},
		"used":                          {func(s *Snapshot) { s.Member.Used = true }, Unusable},
		"of a pool that is gone":        {func(s *Snapshot) { s.Pool = nil }, Unclassified},
		"template gone":                 {func(s *Snapshot) { s.Template = nil }, Unclassified},
		"created before a restart":      {func(s *Snapshot) { s.Pool.Restarted, s.Member.Created = restart, restart.Add(-time.Hour) }, Stale},
		"in the second of a restart":    {func(s *Snapshot) { s.Pool.Restarted, s.Member.Created = restart, restart }, Stale},
		"after a restart":               {func(s *Snapshot) { s.Pool.Restarted, s.Member.Created = restart, restart.Add(time.Second) }, Current},
		"restart of a tolerant pool":    {func(s *Snapshot) { s.Pool.Restarted, s.Member.Created, s.Pool.Strategy = restart, restart, OnReplenish }, Stale},
		"no restart":                    {func(s *Snapshot) { s.Member.Created = restart }, Current},
		"restart, of unknown birth day": {func(s *Snapshot) { s.Pool.Restarted = restart }, Current},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := world(t, tc.change)
			s.Operation = Stored
			if got := ClassOf(Judge(s)); got != tc.want {
				t.Errorf("ClassOf() = %s, want %s", got, tc.want)
			}
		})
	}
}
