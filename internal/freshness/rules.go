package freshness

import "slices"

// Rule is one thing that can speak against a write.
type Rule struct {
	// Name is the rule's own, as a developer calls it; people are told a Reason.
	Name string
	// Operations are those that it is asked about.
	Operations []Operation

	speak rule
}

// rule returns a verdict that ends the judging, or nil.
type rule func(Snapshot) *Verdict

// rules stand in the order in which they speak: first the claim's own faults, which
// leave the member to others, then the member's life, then what it belongs to, then
// its content.
var rules = []Rule{
	{"claimLives", []Operation{Bind, ColdStart, WarmStart}, claimLives},
	{"isMember", []Operation{Bind, Release, Return, Idle, Stored}, isMember},
	{"ownerIsNoClaim", []Operation{ForeignController}, ownerIsNoClaim},
	{"oneOwner", []Operation{Bind, ColdStart, WarmStart}, oneOwner},
	{"claimWantsThis", []Operation{Bind}, claimWantsThis},
	{"claimHoldsNone", []Operation{Bind, ColdStart, WarmStart}, claimHoldsNone},
	{"nothingToAdopt", []Operation{ColdStart}, nothingToAdopt},
	{"memberLives", []Operation{Bind, Release, Return, Released, Idle, Stored}, memberLives},
	{"blueprintKept", []Operation{Bind, Release, Return}, blueprintKept},
	{"podKept", []Operation{Bind, Idle, Stored}, podKept},
	{"belongs", []Operation{Bind, Release, Return, Idle, Stored}, belongs},
	{"podLives", []Operation{Bind, Release, Return, Released, Idle}, podLives},
	{"seenUntouched", []Operation{Stored}, seenUntouched},
	{"templateInForce", []Operation{Bind, ColdStart, Release, WarmStart, Return, Released, Idle, Stored}, templateInForce},
	{"takenLives", []Operation{WarmStart}, takenLives},
	{"contentIsCurrent", []Operation{Bind, ColdStart, Release, WarmStart, Return, Released, Idle, Stored}, contentIsCurrent},
	{"takenIsCurrent", []Operation{WarmStart}, takenIsCurrent},
	{"podIsCurrent", []Operation{Bind, Return, Idle, Stored}, podIsCurrent},
	{"isYoung", []Operation{Bind, Release, Return, Idle, Stored}, isYoung},
}

// Rules returns all rules, in the order in which they speak.
func Rules() []Rule {
	out := slices.Clone(rules)
	for i := range out {
		out[i].Operations = slices.Clone(out[i].Operations)
	}
	return out
}

// JudgeBy is Judge with these rules alone, so that a test can tell what each of them
// is for. A birth is judged by none of them: of its own faults it has one.
func JudgeBy(rules []Rule, s Snapshot) Verdict {
	if s.Operation == Birth {
		return judgeBirth(s)
	}
	asked, op := make([]rule, 0, len(rules)), s.Operation.judgedAs()
	for i := range rules {
		if slices.Contains(rules[i].Operations, op) {
			asked = append(asked, rules[i].speak)
		}
	}
	return firstOf(s, asked...)
}

// judgedAs is the operation itself, or, of one that is not known here, the one with
// the most rules: what nobody knows is not let through for want of a rule.
func (op Operation) judgedAs() Operation {
	switch op {
	case ColdStart, ForeignController, Release, WarmStart, Return, Released, Idle, Stored:
		return op
	}
	return Bind
}

func firstOf(s Snapshot, rules ...rule) Verdict {
	out := Verdict{Allowed: true, Reason: Fresh}
	if s.Template != nil {
		out.Expected = s.Template.Hash
		out.Found = out.Expected
	}
	for _, r := range rules {
		v := r(s)
		if v == nil {
			continue
		}
		if !v.Allowed {
			return *v
		}
		// A tolerated fault does not excuse another one that is not.
		out = *v
	}
	return out
}
