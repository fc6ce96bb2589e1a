package main

import "slices"

// joining is what lets another platform take part.
var joining = slices.Concat(at("internal/platform/objects.go", []mutant{
	{check: "claims without objects are not looked for", old: `if k.HasClaims() {
		out = append(out, k.Claim)`, broken: `if true {
		out = append(out, k.Claim)`, test: "TestServedKindsOfAPoolThatIsItsOwnTemplate"},
	{check: "each resource is counted once", old: `return slices.Compact(out)`, broken: `return out`, test: "TestServedKindsOfAPoolThatIsItsOwnTemplate"},
}), at("internal/manager/guarded.go", []mutant{
	{check: "the first platform that is served", old: `if err != nil || found {`, broken: `if err != nil || found && g != all[0] {`, test: "TestTheFirstPlatformThatIsServedIsGuarded/both"},
	{check: "what nobody answered is not absent", old: `if err != nil || found {`, broken: `if found {`, test: "TestTheFirstPlatformThatIsServedIsGuarded/no answer"},
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
