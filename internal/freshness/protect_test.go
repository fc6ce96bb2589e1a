package freshness

import "testing"

func TestJudgeDelete(t *testing.T) {
	cases := map[string]struct {
		change func(*Deletion)
		want   bool
	}{
		"a claim's sandbox":             {func(*Deletion) {}, false},
		"an idle member":                {func(d *Deletion) { d.Owner = Owner{Kind: OwnedByPool, Name: "p", UID: "uid-c"} }, true},
		"claim gone":                    {func(d *Deletion) { d.Claim = nil }, true},
		"claim of that name, a new one": {func(d *Deletion) { d.Claim.UID = "uid-x" }, true},
		"claim being deleted":           {func(d *Deletion) { d.Claim.Deleting = true }, true},
		"claim expired":                 {func(d *Deletion) { d.ClaimExpired = true }, true},
		"sandbox past its time":         {func(d *Deletion) { d.SandboxExpired = true }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Deletion{Sandbox: "m", Owner: Owner{Kind: OwnedByClaim, Name: "c", UID: "uid-c"}, Claim: &Claim{UID: "uid-c"}}
			tc.change(&d)
			got := JudgeDelete(d)
			if got.Allowed != tc.want {
				t.Errorf("JudgeDelete() = allowed %t (%s), want %t", got.Allowed, got.Detail, tc.want)
			}
			if !got.Allowed && got.Reason != MemberClaimed {
				t.Errorf("JudgeDelete() reason = %s, want %s", got.Reason, MemberClaimed)
			}
		})
	}
}
