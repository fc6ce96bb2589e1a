package main

import "slices"

// joining is what lets another platform take part.
var joining = slices.Concat(at("internal/platform/objects.go", []mutant{
	{check: "claims without objects are not looked for", old: `if k.HasClaims() {
		out = append(out, k.Claim)`, broken: `if true {
		out = append(out, k.Claim)`, test: "TestServedKindsOfAPoolThatIsItsOwnTemplate"},
	{check: "each resource is counted once", old: `return slices.Compact(out)`, broken: `return out`, test: "TestServedKindsOfAPoolThatIsItsOwnTemplate"},
}), at("internal/manager/guarded.go", []mutant{
	{check: "a platform is looked for by its own kinds", old: `if err != nil || !found {`, broken: `if err != nil || !found && false {`, test: "TestWhatIsServedOfAPlatform/another's_alone"},
	{check: "what nobody answered is not absent", old: `return served{}, false, err
	}
	return served{g, kinds}`, broken: `return served{}, false, nil
	}
	return served{g, kinds}`, test: "TestWhatIsServedOfAPlatform/no_answer"},
}), at("internal/manager/handlertable.go", []mutant{
	{check: "platforms answer beside each other", old: `s.of[of] = handlers`, broken: `s.of = map[int]map[string]http.Handler{of: handlers}`, test: "TestPlatformsAnswerBesideEachOther"},
	{check: "the first of two platforms answers", old: `slices.Backward(slices.Sorted(maps.Keys(s.of)))`, broken: `slices.All(slices.Sorted(maps.Keys(s.of)))`, test: "TestPlatformsAnswerBesideEachOther"},
}), at("internal/manager/elected.go", []mutant{
	{check: "only a leader runs what needs one", old: `return m.Manager.Add(onceElected{r, m.elected})`, broken: `return m.Manager.Add(r)`, test: "TestWhoWaitsForTheElection"},
	{check: "every replica runs the rest", old: `ok && !says.NeedLeaderElection()`, broken: `ok && says.NeedLeaderElection()`, test: "TestWhoWaitsForTheElection"},
}), at("internal/manager/restored.go", []mutant{
	{check: "a restored etcd is noticed", old: `order < 0 {`, broken: `order < -1 {`, test: "TestALeaseThatGoesBack/an earlier one"},
	{check: "nobody renews what they knew before a restore", old: `case h.went: return nil, errRestored`, broken: `case false: return nil, errRestored`, test: "TestALeaseThatWentBackIsNotRenewed"},
	{check: "a restore is noticed by reads", old: `n.history.note(n.LeaseInterface.Get(ctx, name, o))`, broken: `n.LeaseInterface.Get(ctx, name, o)`, test: "TestTheLeaseTellsOfARestore/get"},
	{check: "a restore is noticed by a new lease", old: `n.history.note(n.LeaseInterface.Create(ctx, l, o))`, broken: `n.LeaseInterface.Create(ctx, l, o)`, test: "TestTheLeaseTellsOfARestore/create"},
	{check: "a restore is noticed by writes", old: `n.history.note(n.LeaseInterface.Update(ctx, l, o))`, broken: `n.LeaseInterface.Update(ctx, l, o)`, test: "TestTheLeaseTellsOfARestore/update"},
	{check: "a follower ends after a restore, too", old: `func (*storeHistory) NeedLeaderElection() bool { return false }`, broken: `func (*storeHistory) NeedLeaderElection() bool { return true }`, test: "TestAProcessThatKnowsAnotherPastEnds"},
}), at("internal/manager/lease.go", []mutant{
	{check: "the lease tells of a restore", old: `stored.Client = notedLeases{stored.Client, l.history}`, broken: `_ = stored`, test: "TestTheLeaseTellsOfARestore"},
}), at("internal/manager/platformpart.go", []mutant{
	{check: "every platform has to be ready", old: `errs = append(errs, p.check(r))`, broken: `errs = []error{p.check(r)}`, test: "TestEveryPlatformHasToBeReady"},
}), at("internal/manager/assemble.go", []mutant{
	{check: "nothing protects where nobody can tell", old: `if of.deletions == nil {`, broken: `if false {`, test: "TestAPlatformThatProtectsNothing"},
	{check: "bare Pods are protected by their own rules", old: `{webhooks.ProtectPodHook, a.PodDeletions}`, broken: `{webhooks.ProtectPodHook, a.Deletions}`, test: "TestEveryGuardHasWhatItNeeds"},
	{check: "a platform is told what not to repair", old: `RepairOff: !o.Repair,`, broken: `RepairOff: o.Repair,`, test: "TestSourcesAreWhole"},
	{check: "a platform shares CPU", old: `Turns: o.turns,
	}, nil`, broken: `}, nil`, test: "TestSourcesAreWhole"},
	{check: "no advice of who gives none", old: `if a.Adviser == nil {`, broken: `if false {`, test: "TestAPlatformThatProtectsNothing"},
}), at("cmd/freshbind/app/platforms.go", []mutant{
	{check: "agent-sandbox is told what not to repair", old: `SchedulerName, RepairOff: s.RepairOff, `, broken: `SchedulerName, `, test: "TestThePlatformGetsEverySource"},
	{check: "OpenKruise Agents is told what not to repair", old: `Defaults: s.Defaults, RepairOff: s.RepairOff, `, broken: `Defaults: s.Defaults, `, test: "TestTheGuardOfOpenKruiseAgentsGetsEverySource"},
	{check: "OpenKruise Agents protects what somebody has", old: `Guard: p, Deletions: p, Keep: &manager.Keep{Platform: p, Cached: kruise`, broken: `Guard: p, Keep: &manager.Keep{Platform: p, Cached: kruise`, test: "TestTheGuardOfOpenKruiseAgentsGetsEverySource"},
	{check: "agent-sandbox shares CPU", old: `, Turns: s.Turns,`, broken: `,`, test: "TestThePlatformGetsEverySource"},
	{check: "agent-sandbox protects its bare Pods", old: `PodDeletions: &agentsandbox.PodDeletions{Platform: p, API: s.API},`, broken: ``, test: "TestThePlatformGetsEverySource"},
}), at("internal/manager/reporter.go", []mutant{
	{check: "without objects of claims the member is what people see", old: `if a.kinds.Claims.Empty() {
		member`, broken: `if false {
		member`, test: "TestWithoutObjectsOfClaimsTheMemberTells"},
	{check: "without objects of claims the claim is named", old: `about = named`, broken: ``, test: "TestWithoutObjectsOfClaimsTheMemberTells"},
}), at("internal/doctor/rights.go", []mutant{
	{check: "no rights to claims without objects", old: `if k.HasClaims() {`, broken: `if true {`, test: "TestRightsOfAPlatformWhoseClaimsHaveNoObject"},
}), at("webhooks/ownpolicies.go", []mutant{
	{check: "no policy is about nothing", old: `if len(own.Status.Operations) > 0 {`, broken: `if true {`, test: "TestOwnPoliciesOfAPlatformThatOffersNothingAgain"},
}))
