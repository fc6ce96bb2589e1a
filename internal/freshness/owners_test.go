package freshness

import "testing"

func TestWhoOwnsAfterAWrite(t *testing.T) {
	another := []Owner{{Kind: OwnedByClaim, Name: "c2", UID: "uid-c2"}}
	cases := map[string]struct {
		ops    []Operation
		change func(*Snapshot)
		want   Reason
	}{
		"one claim":                       {[]Operation{Bind, ColdStart}, func(*Snapshot) {}, Fresh},
		"two claims":                      {[]Operation{Bind, ColdStart}, func(s *Snapshot) { s.Besides = another }, OwnerMismatch},
		"its pool still":                  {[]Operation{Bind, ColdStart}, func(s *Snapshot) { s.Besides = []Owner{{Kind: OwnedByPool, Name: "p"}} }, OwnerMismatch},
		"another controller":              {[]Operation{Bind, ColdStart}, func(s *Snapshot) { s.Besides = []Owner{{Kind: OwnedByAnother}} }, OwnerMismatch},
		"another claim's, and two":        {[]Operation{Bind}, func(s *Snapshot) { s.Besides, s.Member.Controller.Kind = another, OwnedByClaim }, MemberClaimed},
		"another kind with a claim's UID": {[]Operation{ForeignController}, func(*Snapshot) {}, OwnerMismatch},
		"another kind, no claim's":        {[]Operation{ForeignController}, func(s *Snapshot) { s.Claim = nil }, Fresh},
		"another kind, a later claim's":   {[]Operation{ForeignController}, func(s *Snapshot) { s.Claim.UID = "uid-later" }, Fresh},
		"the pod kept":                    {[]Operation{Bind}, func(s *Snapshot) { s.Member.ProposedPodName = s.Member.PodName }, Fresh},
		"the pod changed by the write":    {[]Operation{Bind}, func(s *Snapshot) { s.Member.ProposedPodName = "other" }, BlueprintChanged},
		"the pod of another name": {[]Operation{Bind, Idle, Stored}, func(s *Snapshot) {
			s.Member.PodName, s.Member.ProposedPodName = "other", "other"
		}, PodForeign},
		"the pod of another name, changed back": {[]Operation{Bind}, func(s *Snapshot) {
			s.Member.PodName, s.Member.ProposedPodName = "other", s.Member.Name
		}, PodForeign},
	}
	for name, tc := range cases {
		for _, op := range tc.ops {
			t.Run(name+"/"+string(op), func(t *testing.T) {
				s := world(t, func(s *Snapshot) { s.Operation = op })
				if op == ColdStart {
					s.Pod = nil
				}
				tc.change(&s)
				if got := Judge(s); got.Reason != tc.want || got.Allowed != (tc.want == Fresh) {
					t.Errorf("Judge() = %s, allowed %t (%s), want %s", got.Reason, got.Allowed, got.Detail, tc.want)
				}
			})
		}
	}
}
