package main

import "slices"

// auditing is what the auditor, which judges the guard, takes for what.
var auditing = slices.Concat(at("internal/checker/states.go", []mutant{
	{check: "auditor: v0.1.1's CRD says nothing of the network policy", old: `if s.err == nil && nestedString(u, "spec", "networkPolicyManagement") == "" {`, broken: `if s.err == nil {`, test: "TestBarePods/no DNS where agent-sandbox manages the network"},
	{check: "auditor: what v0.1.1 lacks beside newer CRDs", old: `s.token = s.member`, broken: ``, test: "TestAColdStartOfV011BesideNewerCRDs"},
	{check: "auditor: owners by UID", old: `return o.isClaim() || h.claims[o.uid] != nil`, broken: `return o.isClaim()`, test: "TestOwnersByUID/held by a forged reference, and another one"},
}), at("internal/checker/history.go", []mutant{
	{check: "auditor: any owner may be a claim", old: `return p.named || known`, broken: `return p.named`, test: "TestOwnersByUID/a reference of another kind"},
	{check: "auditor: a claim's UID is bound once", old: `if p.carried {
		return !known
	}`, broken: ``, test: "TestOwnersByUID/and then the real one in its place"},
	{check: "auditor: Pods that a cold start would adopt", old: `state.sandbox == "" && !state.tracked &&`, broken: `state.sandbox == "" &&`, test: "TestThePodIsEvidenceOfItsOwn/a cold start adopts a Pod of the template before"},
}), at("internal/checker/member.go", []mutant{
	{check: "auditor: several claims in one write", old: `case j.h.isClaim(o) && before[o.uid]:`, broken: `case j.h.isClaim(o):`, test: "TestOwnersByUID/two claims in one write"},
	{check: "auditor: references of another kind", old: `j.now.owner(j.p.claim); ok && !o.isClaim() {`, broken: `j.now.owner(j.p.claim); ok && false && o.isClaim() {`, test: "TestOwnersByUID/a reference of another kind"},
	{check: "auditor: the claim was gone", old: `case e.gone, e.state.deleting:`, broken: `case e.gone:`, test: "TestEveryReasonHasAHistory/ClaimGone"},
	{check: "auditor: the claim chose another", old: `e.state.names != "" && e.state.names != j.sandbox.name`, broken: `false`, test: "TestEveryReasonHasAHistory/ClaimNamesAnother"},
	{check: "auditor: a pool that is going", old: `sameUID(e) && !e.gone && !e.state.deleting`, broken: `sameUID(e)`, test: "TestEveryReasonHasAHistory/PoolGone"},
	{check: "auditor: a Pod that outlived its Sandbox", old: `case j.ranForAnother(o, rv):`, broken: `case false:`, test: "TestThePodIsEvidenceOfItsOwn/it outlived another sandbox, and was taken over"},
	{check: "auditor: what becomes of a Pod later", old: `!rv.Before(e.first) && e.state.sandbox`, broken: `e.state.sandbox`, test: "TestThePodIsEvidenceOfItsOwn/taken over after the bind"},
	{check: "auditor: a Pod of somebody else", old: `class, why, message = DeadMember, ReasonPodForeign, "its Pod was not its own"`, broken: `continue`, test: "TestEveryReasonHasAHistory/PodForeign"},
	{check: "auditor: a Pod that somebody worked in", old: `if pod == nil || !now.ephemeral {`, broken: `if pod == nil || now != nil {`, test: "TestEveryReasonHasAHistory/PodModified"},
	{check: "auditor: no strategy tolerates work in a Pod", old: `j.bind.add(UsedMember, ReasonPodModified, what)`, broken: `class, _ := j.order(change{})
		j.bind.add(class, ReasonPodModified, what)`, test: "TestThePodIsEvidenceOfItsOwn/kubectl debug in a pool that tolerates"},
	{check: "auditor: work in a Pod that raced with the bind", old: `ok && e.state.ephemeral {`, broken: `ok || e.state.ephemeral {`, test: "TestThePodIsEvidenceOfItsOwn/kubectl debug while the bind was under way"},
	{check: "auditor: a member that came to life", old: `lived = lived || last == ""`, broken: ``, test: "TestDeadMembers/a member whose Pod was made while the bind was under way"},
	{check: "auditor: a member that died under way", old: `case last != "" && last != ReasonPodNotYet && last != reasonPodUnknown:`, broken: `case false:`, test: "TestDeadMembers/the Pod was deleted while the bind was under way"},
}), at("internal/checker/node.go", []mutant{
	{check: "auditor: taints that are tolerated", old: `if at < 0 || spec.Tolerations[at].TolerationSeconds != nil {`, broken: `if true || at < 0 {`, test: "TestNodesThatGo/it is tolerated for ever"},
	{check: "auditor: taints that are tolerated for a while", old: `if at < 0 || spec.Tolerations[at].TolerationSeconds != nil {`, broken: `if at < 0 {`, test: "TestNodesThatGo/it is tolerated for a while"},
}), at("internal/checker/kruise.go", []mutant{
	{check: "auditor: kruise: what is locked for scale-down", old: ` || u.GetAnnotations()[keyKruiseOwner] == kruiseScaleDown,`, broken: `,`, test: "TestKruise/locked for scale-down"},
	{check: "auditor: kruise: what users may change in place", old: `return of == corev1.ResourceCPU`, broken: `return true`, test: "TestKruise/what a user may not change in place"},
	{check: "auditor: kruise: what claims may change in place", old: `may.image != "" && first.Image == may.image`, broken: `first.Image != ""`, test: "TestKruise/what a claim does not ask for"},
	{check: "auditor: kruise: pools that do not recycle", old: `return e.state.recycles || ok && template.state.recycles`, broken: `return e.state.recycles || ok && (true || template.state.recycles)`, test: "TestKruise/used"},
	{check: "auditor: kruise: users have any number", old: `ready: true, wants: anyNumber,`, broken: `ready: true, wants: 1,`, test: "TestKruiseHoldings/a user"},
	{check: "auditor: kruise: clocks that differ", old: `at.After(since.seen.Add(skew))`, broken: `at.After(since.seen)`, test: "TestKruise/a user asked soon after the edit"},
	{check: "auditor: kruise: contents beside the Pod", old: `out["/"+key] = spec[key]`, broken: `_ = key`, test: "TestKruise/other contents"},
}), at("internal/checker/barepod.go", []mutant{
	{check: "auditor: bare Pods: the Pod is the proof", old: `if !j.p.bare {`, broken: `if true || !j.p.bare {`, test: "TestBarePods/of the template before, though its Sandbox says otherwise"},
	{check: "auditor: bare Pods: one is taken once", old: `if other == nil || uid == j.p.sandbox {`, broken: `if other == nil || uid != "" {`, test: "TestBarePods/two claims take one Pod"},
	{check: "auditor: bare Pods: of a pool", old: `case b.pool == owner{}: j.bind.add`, broken: `case false: j.bind.add`, test: "TestBarePods/of no pool"},
	{check: "auditor: bare Pods: one that had ended", old: `if end, how := ended(e); end != "" {`, broken: `if end, how := ended(e); end != "" && false {`, test: "TestBarePods/the Pod had ended"},
	{check: "auditor: bare Pods: what a log does not hold", old: `case b.pool == owner{} && b.pod.line.entries[0].inexact:`, broken: `case false:`, test: "TestBarePodsOfWhichTooLittleIsKnown/it had left when the log began"},
}), at("internal/checker/bind.go", []mutant{
	{check: "auditor: bare Pods: what leaves its pool is on its way to a claim", old: `raise(j.bare.left.first, !j.bare.left.inexact)`, broken: `_ = raise`, test: "TestBarePods/an update between the claim and the first write"},
}), at("internal/checker/prune.go", []mutant{
	{check: "auditor: bare Pods: who took them is forgotten", old: `dropIndex(h.takersOfPod, h.sandboxes)`, broken: ``, test: "TestBarePodsAreForgotten"},
}), at("internal/checker/pools.go", []mutant{
	{check: "auditor: what a pool asks for again is one band", old: `if last.Revision.Template == b.Revision.Template && last.Revision.Digest == b.Revision.Digest {`, broken: `if last == nil {`, test: "TestPoolsOverTime"},
}), at("internal/checker/outlived.go", []mutant{
	{check: "auditor: killed: by whom", old: `if e.by == maker.by &&`, broken: `if e.by != "" &&`, test: "TestWhatIsKilledAfterItsBind/by somebody else"},
	{check: "auditor: killed: a claim that expires", old: `|| asked.state.expires ||`, broken: `||`, test: "TestWhatIsKilledAfterItsBind/the claim expires"},
	{check: "auditor: killed: a claim whose time is up", old: `|| past(asked.state.ends, seen) {`, broken: `{`, test: "TestWhatIsKilledAfterItsBind/the claim's time is up"},
	{check: "auditor: killed: a time that cannot be read", old: `return err != nil || !now.Before(at)`, broken: `return err == nil && !now.Before(at)`, test: "TestWhatIsKilledAfterItsBind/when that is, nobody can read"},
	{check: "auditor: killed: a claim that goes", old: `asked.gone || asked.state.deleting ||`, broken: `asked.gone ||`, test: "TestWhatIsKilledAfterItsBind/the claim was going"},
	{check: "auditor: killed: a sandbox that is suspended", old: `!held.state.suspended &&`, broken: ``, test: "TestWhatIsKilledAfterItsBind/the sandbox is suspended"},
	{check: "auditor: killed: a sandbox whose time is up", old: `!past(held.state.ends, seen) &&`, broken: ``, test: "TestWhatIsKilledAfterItsBind/the sandbox's time is up"},
	{check: "auditor: killed: one that the claim let go", old: `&& slices.Contains(h.claimsOf(held.state), p.claim)`, broken: ``, test: "TestWhatIsKilledAfterItsBind/the claim let it go"},
	{check: "auditor: kruise: one account deletes for many reasons", old: ` || pool.group == groupKruise {`, broken: ` || pool.group == "" {`, pkg: "internal/auditlog", test: "TestKruiseVerdicts/deleted by the account that made it"},
}), at("internal/auditlog/scan.go", []mutant{
	{check: "audit logs: what the API server accepts is judged", old: `maxDepth = jsonDepth + 100`, broken: `maxDepth = 100`, test: "TestADeepPatchHidesNothing"},
}), at("internal/auditlog/objects.go", []mutant{
	{check: "audit logs: kruise: the Pod that a status shows", old: `out["podInfo"] = map[string]any{"podIP": s.ips}`, broken: `_ = k`, test: "TestKruiseVerdicts/another address than its Pod's"},
	{check: "audit logs: kruise: how many a claim has", old: `out["claimedReplicas"] = int64(min(s.claimed, math.MaxInt64))`, broken: `out["claimedReplicas"] = int64(math.MaxInt64)`, test: "TestKruiseClaimsAreReadyWhenTheyAreFull/out of time"},
}), at("internal/auditlog/coverage.go", []mutant{
	{check: "audit logs: kruise: E2B needs no claims", old: `r == checker.Claims && (lost > 0 || platform != checker.Kruise)`, broken: `r == checker.Claims`, test: "TestWhatIsMissingOfKruise/a user of E2B, and no claim"},
}), at("internal/auditlog/history.go", []mutant{
	{check: "audit logs: platforms are judged apart", old: `v.object.kind.Platform != "" && v.object.kind.Platform != platform`, broken: `false`, test: "TestPlatformsAreJudgedApart"},
	{check: "audit logs: what is deleted twice goes once", old: `(prev == nil || prev.what == goneUnordered)`, broken: `prev == nil`, test: "TestVerdicts/two DELETEs of a template, which comes back before the slower one is answered"},
}), at("internal/auditlog/texts.go", []mutant{
	{check: "audit logs: what is kept is compressed", old: `flate.BestSpeed`, broken: `flate.NoCompression`, test: "TestALogTakesLittleMemory"},
}), at("internal/auditlog/lost.go", []mutant{
	{check: "audit logs: writes that are lost are kept up to a bound", old: `if l.n == maxLost {`, broken: `if l.n < 0 {`, test: "TestLostWritesAreBounded"},
	{check: "audit logs: beyond it any write may be missed", old: `ok && rest.received <= until && rest.done >= from {`, broken: `ok && rest.received > until {`, test: "TestLostWritesAreBounded/within"},
	{check: "audit logs: a lost write that takes long", old: `of[i+1].done = max(of[i+1].done, of[i].done)`, broken: `_ = i`, test: "TestLostWritesBetweenTwoMoments/within a long one"},
}), at("internal/auditlog/log.go", []mutant{
	{check: "audit logs: a DELETE than which another one was faster", old: `case s.rv == "": return s.uid`, broken: ``, test: "TestVerdicts/two DELETEs at once, of which one names no version"},
}), at("internal/checker/freshness.go", []mutant{
	{check: "auditor: a restart that lies ahead", old: ` || at.After(e.seen) && at.Add(skew).After(j.p.seen)`, broken: ``, test: "TestWhatPoolsSay/a restart that lies ahead"},
	{check: "auditor: v0.1.0 adds nothing to cold starts", old: `[]additions{addsToken, addsNothing}`, broken: `[]additions{addsToken}`, test: "TestBarePods/a cold start that says no more than the template"},
	{check: "auditor: v0.1.1 adds the token's default", old: `[]additions{addsToken, addsNothing}`, broken: `[]additions{addsNothing}`, test: "TestBarePods/a cold start of v0.1.1"},
	{check: "auditor: other releases do", old: `d.adds == addsNothing || j.asked.template == "" ||`, broken: `d.adds == addsNothing ||`, test: "TestBarePods/a release that adds to what a template says makes none such"},
	{check: "auditor: a template that a Sandbox names shows in its Pod", old: `	case r.refers:
		return r.podIs(c)
`, broken: ``, test: "TestKruise/a reference: the Pod is the proof"},
	{check: "auditor: a Pod that was exchanged", old: ` || j.h.podsOfSandbox[j.p.sandbox][0] != pod.uid`, broken: ``, test: "TestThePodIsEvidenceOfItsOwn/made again by hand, with another command"},
	{check: "auditor: a Pod that was edited", old: `now.generation > 1 ||`, broken: ``, test: "TestThePodIsEvidenceOfItsOwn/edited so that its generation rose"},
	{check: "auditor: images", old: `return exchanged(*r.pod, r.name, c)`, broken: `return "", nil`, test: "TestThePodIsEvidenceOfItsOwn/kubectl set image"},
	{check: "auditor: a first Pod of the template before", old: `case podIsOlder:`, broken: `case podIsOlder && false:`, test: "TestThePodIsEvidenceOfItsOwn/its first Pod is of the template before, its spec is not"},
	{check: "auditor: a cold start adopts", old: `!j.p.warm && adopted {`, broken: `!j.p.warm && adopted && false {`, test: "TestThePodIsEvidenceOfItsOwn/a cold start adopts a Pod of the template before"},
	{check: "auditor: what was sound for a part of the time", old: `if class == Stale && !j.askedAfter(since) && j.soundOnce(list) {`, broken: `if class == Stale && j.soundOnce(list) && false {`, test: "TestFaultsOfAPartOfTheWindow/the Pod's image is exchanged"},
	{check: "auditor: a template that went under way", old: `if j.admit.lo.Before(list[k-1].since.hi) {`, broken: `if false {`, test: "TestFaultsOfAPartOfTheWindow/the template is deleted"},
	{check: "auditor: restarts", old: `		j.restarted()
	}`, broken: `	}`, test: "TestWhatPoolsSay/created before the restart"},
	{check: "auditor: what the bind itself changed", old: `if j.asked.may.undo(j.now.content.blueprint, j.prev.state.content.blueprint).equal(j.prev.state.content.blueprint) {`, broken: `if true {`, test: "TestEveryReasonHasAHistory/BlueprintChanged"},
}), at("internal/checker/window.go", []mutant{
	{check: "auditor: nodes that return and leave", old: `!e.gone && node != nil {`, broken: `!e.gone && node != nil && false {`, test: "TestFaultsOfAPartOfTheWindow/the node returns and leaves"},
	{check: "auditor: what a pool vouched for", old: `got.allowed = parseInjected(e.state.injected)`, broken: `_ = e`, test: "TestFaultsOfAPartOfTheWindow/the pool vouches no more"},
}), at("internal/checker/injected.go", []mutant{
	{check: "auditor: injected paths", old: `if want == nil && in.allows(steps, elements, have) {`, broken: `if false {`, test: "TestWhatPoolsSay/injected leaves on the list"},
	{check: "auditor: injected paths excuse nothing that differs", old: `if want == nil && in.allows(steps, elements, have) {`, broken: `if in.allows(steps, elements, have) {
		return want
	}
	if false {`, test: "TestAListOfPathsExcusesNoLeafThatDiffers"},
}), at("internal/checker/options.go", []mutant{
	{check: "auditor: floors", old: `if strict[f.Strategy] > strict[s.name] &&`, broken: `if false &&`, test: "TestWhatTheConfigurationSays/a floor"},
	{check: "auditor: the configured default", old: `s := p.chosen(o.Strategy)`, broken: `s := p.chosen("")`, test: "TestWhatTheConfigurationSays/a stricter default"},
}), at("internal/checker/strategy.go", []mutant{
	{check: "auditor: no rolling where upstream recreates", old: `if p.annotated != "" && p.strategy == "Recreate" {`, broken: `if false {`, test: "TestWhatPoolsSay/an annotation to roll beside spec Recreate"},
}), at("internal/checker/difference.go", []mutant{
	{check: "auditor: no values in reports", old: `case shownLeaf.MatchString(path):`, broken: `case path != "":`, test: "TestValuesStayOutOfReports"},
}))
