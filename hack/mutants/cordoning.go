package main

import "slices"

// cordoning is how nodes that are to be empty lose idle members.
var cordoning = slices.Concat(at("internal/freshness/node.go", []mutant{
	{check: "cordons: what tolerates one stays", old: `return !toleratesForEver(tolerations, &t) })`, broken: `return true })`, test: "TestIsCordoned/tolerated"},
}), at("internal/freshness/plan.go", []mutant{
	{check: "cordons: members go in steps", old: ` || m.OnCordonedNode
}`, broken: `
}`, test: "TestMembersLeaveCordonedNodes/on replenish"},
	{check: "cordons: those that somebody waits for go first", old: `p.Members[a].before(p.Members[b])`, broken: `p.Members[a].Created.Compare(p.Members[b].Created)`, test: "TestMembersLeaveCordonedNodes/before older stale ones"},
	{check: "cordons: who cannot be deleted is counted", old: `m.Class == Unusable || m.OnCordonedNode) {`, broken: `m.Class == Unusable) {`, test: "TestMembersThatStayOnCordonedNodesAreCounted"},
}), at("internal/freshness/poolstate.go", []mutant{
	{check: "cordons: they are a reason to plan", old: `m.OnFormerScheduler || m.OnCordonedNode`, broken: `m.OnFormerScheduler`, test: "TestMembersLeaveCordonedNodes/on replenish"},
	{check: "cordons: the oldest of them go first", old: `return m.Created.Compare(o.Created)`, broken: `return 0`, test: "TestMembersLeaveCordonedNodes/the oldest of them first"},
}), at("internal/freshness/replacementpolicy.go", []mutant{
	{check: "cordons: who is not ready goes at once", old: `case m.Class == Unusable, m.OnCordonedNode && m.ReadySince.IsZero():`, broken: `case m.Class == Unusable:`, test: "TestMembersLeaveCordonedNodes/not ready: at once"},
	{check: "cordons: who is ready waits for its turn", old: `m.OnCordonedNode && m.ReadySince.IsZero():`, broken: `m.OnCordonedNode:`, test: "TestMembersLeaveCordonedNodes/on replenish"},
}), at("internal/platform/kruise/kept.go", []mutant{
	{check: "cordons: who names its node would come back", old: `"nodeName") == ""`, broken: `"nodeName") != "never"`, test: "TestWhichMembersAreUnevictable"},
}), at("controllers/pools/leaving.go", []mutant{
	{check: "cordons: who can be evicted is left alone", old: ` || !is.Unevictable {`, broken: ` {`, test: "TestMembersAreReplacedOnCordonedNodes"},
	{check: "cordons: by the Pod's tolerations", old: `return cordoned && is.Pod.IsUnwelcome(node)`, broken: `_ = node
	return cordoned`, test: "TestMembersAreReplacedOnCordonedNodes"},
	{check: "cordons: a node that becomes one is noticed", old: `{l.worse.cordoned, state.IsCordoned(nil)}`, broken: `{l.worse.cordoned, false}`, test: "TestLeavingNodes"},
}), at("controllers/pools/roster.go", []mutant{
	{check: "cordons: a pool at rest is looked at again", old: `r.states[i].OnCordonedNode = on
			r.version++`, broken: `r.states[i].OnCordonedNode = on`, test: "TestACordonEndsTheRestOfAPool"},
}), at("controllers/pools/setup.go", []mutant{
	{check: "cordons: pools hear of them", old: `if !leaves && !node.IsCordoned(nil) {`, broken: `if !leaves {`, test: "TestMembersAreReplacedOnCordonedNodes"},
}), at("controllers/pools/view.go", []mutant{
	{check: "cordons: caches keep them", old: `"taints", "unschedulable"`, broken: `"taints"`, test: "TestTrimNode/cordoned"},
}), at("controllers/pools/apply.go", []mutant{
	{check: "cordons: events say why members went", old: `if state.OnCordonedNode && slices`, broken: `if (state.OnCordonedNode || true) && slices`, test: "TestAMemberThatIsStaleIsNotSaidToBeMoved"},
}), at("webhooks/evict.go", []mutant{
	{check: "evictions: audited ones pass", old: `if mode != settings.Enforce {`, broken: `if member == "" {`, test: "TestEvict/audited"},
	{check: "evictions: the pool may say so", old: `e.Modes.Of(ctx, req.Namespace, enforcement)`, broken: `e.Modes.Of(ctx, req.Namespace, enforcement[:0])`, test: "TestEvict/where the pool says so"},
}), at("internal/manager/evictions.go", []mutant{
	{check: "evictions: what somebody has does not wait", old: `!is.Pooled || !is.Unevictable`, broken: `!is.Unevictable`, test: "TestWhichEvictionsWait/somebody's"},
	{check: "evictions: who can be evicted is", old: `!is.Pooled || !is.Unevictable`, broken: `!is.Pooled`, test: "TestWhichEvictionsWait/that can be evicted"},
	{check: "evictions: only from nodes that are to be empty", old: `!state.IsCordoned(placement.Tolerations(pod)) && state`, broken: `false && state`, test: "TestWhichEvictionsWait/on a node that stays"},
}))

// givingBack is what comes back to pools.
var givingBack = slices.Concat(at("internal/platform/kruise/member.go", []mutant{
	{check: "returns: the pool is the one to say", old: `s.givenBack(w), s.set != nil && !s.recycles()`, broken: `s.givenBack(w), false`, test: "TestReturns/it does not"},
	{check: "returns: who has it has to let go", old: `w.Operation == freshness.Return && isReturning(sandbox)`, broken: `w.Operation == freshness.Return`, test: "TestReturns/somebody has it"},
	{check: "returns: another pool of that name is another", old: `if pool.UID == "" && s.set != nil {`, broken: `if s.set != nil {`, test: "TestAReturnChangesNothingElse"},
	{check: "returns: what is settled later is of the pool that there is", old: `if pool.UID == "" && s.set != nil {`, broken: `if false {`, test: "TestReturns/the pool recycles"},
	{check: "returns: the write changes nothing else", old: `proposed, err = contentOf(w.New)
		}`, broken: `proposed = content
		}`, test: "TestAReturnChangesNothingElse"},
}), at("internal/platform/kruise/classify.go", []mutant{
	{check: "returns: they are judged", old: `case op == admissionv1.Update && isReturned(old, obj):`, broken: `case false:`, test: "TestClassify/back in its pool"},
	{check: "returns: known without a mark", old: `return poolOf(old).UID == "" && poolOf(obj).UID != ""`, broken: `return isClaimed(old) && poolOf(old).UID == "" && poolOf(obj).UID != ""`, test: "TestClassify/back, without a mark"},
}), at("internal/freshness/rules.go", []mutant{
	{check: "returns: a member's life counts", old: `{"memberLives", []Operation{Bind, Release, Return,`, broken: `{"memberLives", []Operation{Bind, Release,`, test: "TestJudgeReturn/being deleted"},
	{check: "returns: its Pod's content counts", old: `{"podIsCurrent", []Operation{Bind, Return,`, broken: `{"podIsCurrent", []Operation{Bind,`, test: "TestJudgeReturn/its pod is another's"},
}), at("webhooks/guard.go", []mutant{
	{check: "returns: what is refused is settled", old: `case w.Operation == freshness.Return && g.ReturnRefused != nil:`, broken: `case false:`, test: "TestWhoIsToldOfARefusedReturn/refused"},
}), at("controllers/pools/refused.go", []mutant{
	{check: "returns: what is fine by now is left to the recycler", old: `(req.Doubted || req.Returning)`, broken: `req.Doubted`, test: "TestSettlingARefusedMember/not given back, and fine by now"},
	{check: "returns: stale ones go at once", old: `facts.Operation != freshness.Return && facts.Class()`, broken: `facts.Class()`, test: "TestSettlingARefusedMember/not given back, stale"},
	{check: "returns: they are settled as such", old: `w.Operation = freshness.Return`, broken: `w.Operation = freshness.Idle`, test: "TestSettlingARefusedMember/not given back, stale"},
	{check: "returns: the note says so", old: `refusal.Returning = true`, broken: ``, test: "TestARefusedReturnIsNoted"},
}))
