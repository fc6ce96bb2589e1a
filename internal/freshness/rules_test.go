package freshness

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every operation is asked about by name, but for a birth, which has one fault of its own.
func TestRulesAreAskedInTheirOrder(t *testing.T) {
	want := map[Operation][]string{
		Bind: {
			"claimLives", "isMember", "oneOwner", "claimWantsThis", "claimHoldsNone", "memberLives", "blueprintKept", "podKept",
			"belongs", "podLives", "templateInForce", "contentIsCurrent", "podIsCurrent", "isYoung",
		},
		ColdStart:         {"claimLives", "oneOwner", "claimHoldsNone", "nothingToAdopt", "templateInForce", "contentIsCurrent"},
		ForeignController: {"ownerIsNoClaim"},
		Release:           {"isMember", "memberLives", "blueprintKept", "belongs", "podLives", "templateInForce", "contentIsCurrent", "isYoung"},
		WarmStart: {
			"claimLives", "oneOwner", "claimHoldsNone", "templateInForce", "takenLives", "contentIsCurrent", "takenIsCurrent",
		},
		Return: {
			"isMember", "memberLives", "blueprintKept", "belongs", "podLives", "templateInForce", "contentIsCurrent", "podIsCurrent", "isYoung",
		},
		Released: {"memberLives", "podLives", "templateInForce", "contentIsCurrent"},
		Idle: {
			"isMember", "memberLives", "podKept", "belongs", "podLives", "templateInForce", "contentIsCurrent", "podIsCurrent", "isYoung",
		},
		Stored: {
			"isMember", "memberLives", "podKept", "belongs", "seenUntouched", "templateInForce", "contentIsCurrent", "podIsCurrent", "isYoung",
		},
	}
	got := map[Operation][]string{}
	for _, r := range Rules() {
		for _, op := range r.Operations {
			got[op] = append(got[op], r.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

func TestJudgeByFewerRules(t *testing.T) {
	s := Snapshot{Operation: ForeignController, ClaimRef: Owner{UID: "c"}, Claim: &Claim{UID: "c"}}
	if v := JudgeBy(Rules(), s); v.Reason != OwnerMismatch {
		t.Errorf("by all rules: %+v", v)
	}
	if v := JudgeBy(nil, s); !v.Allowed || v.Reason != Fresh {
		t.Errorf("by none: %+v", v)
	}
	without := slices.DeleteFunc(Rules(), func(r Rule) bool { return r.Name == "ownerIsNoClaim" })
	if v := JudgeBy(without, s); !v.Allowed {
		t.Errorf("without its own: %+v", v)
	}
	own := Rules()
	for i := range own {
		own[i].Operations = nil
	}
	if v := JudgeBy(own, s); !v.Allowed {
		t.Errorf("by rules that are asked about nothing: %+v", v)
	}
	if v := Judge(s); v.Allowed {
		t.Error("who changes what Rules returns changes the rules")
	}
}

func TestAnOperationThatIsNotKnownIsJudgedAsABind(t *testing.T) {
	if v := Judge(Snapshot{Operation: "tomorrow", ClaimRef: Owner{Name: "c"}}); v.Reason != ClaimGone {
		t.Errorf("%+v", v)
	}
}
