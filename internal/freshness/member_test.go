package freshness

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
		"of another template":           {func(s *Snapshot) { s.Pool.Template = "other" }, Lost},
		"used":                          {func(s *Snapshot) { s.Member.Used = true }, Lost},
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

// While attribution is suspended what equals nothing known is let through, but
// not what is nearer to an older revision than to the one in force.
func TestJudgeWhileAttributionIsSuspended(t *testing.T) {
	type want struct {
		Allowed bool
		Reason  Reason
	}
	v2 := blueprint(t, "sandbox:v2")
	injected := builtFrom(blueprint(t, "sandbox:v2", "runtimeClassName", "kata"))
	cases := map[string]struct {
		change    func(*Snapshot)
		suspended string
		want      want
	}{
		"a field that nobody knows":          {injected, v2.Hash(), want{true, UnknownRevision}},
		"not suspended":                      {injected, "", want{false, UnknownRevision}},
		"suspended for another revision":     {injected, "v1-0123456789abcdef", want{false, UnknownRevision}},
		"nearer to an older revision":        {builtFrom(blueprint(t, "sandbox:v1", "runtimeClassName", "kata")), v2.Hash(), want{false, UnknownRevision}},
		"known to be stale":                  {builtFrom(blueprint(t, "sandbox:v1")), v2.Hash(), want{false, StaleRevision}},
		"another fault is not excused by it": {func(s *Snapshot) { injected(s); s.Member.Deleting = true }, v2.Hash(), want{false, MemberTerminating}},
		"a restart is not excused by it":     {func(s *Snapshot) { injected(s); s.Member.Created, s.Pool.Restarted = time.Unix(1, 0), time.Unix(2, 0) }, v2.Hash(), want{false, StaleRevision}},
		"its old Pod is not excused, nearer": {func(s *Snapshot) { s.Member.Generation, s.Pod.Content = 2, blueprint(t, "sandbox:v1") }, v2.Hash(), want{false, StaleRevision}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := world(t, tc.change)
			s.Pool.Suspended = tc.suspended
			v := Judge(s)
			if diff := cmp.Diff(tc.want, want{v.Allowed, v.Reason}); diff != "" {
				t.Errorf("Judge() (-want,+got):\n%s", diff)
			}
		})
	}
}
