package main

import "slices"

// judging are the rules by which binds, cold starts and births are judged.
var judging = at("internal/freshness/judge.go", []mutant{
	{check: "StaleRevision", old: `if k.Hash == v.Expected {`, broken: `if k.Hash != v.Expected {`, test: "TestJudgeBind/stale, named by history"},
	{check: "StaleRevision", old: `if len(differences) == 0 {`, broken: `if len(differences) >= 0 {`, test: "TestJudgeBind/stale, named by history"},
	{check: "UnknownRevision", old: `if len(differences) == 0 {`, broken: `if len(differences) >= 0 {`, test: "TestJudgeBind/equal to nothing known"},
	{check: "UnknownRevision", old: `if s.Template.Unrenderable != "" {`, broken: `if s.Template.Unrenderable == "never" {`, test: "TestJudgeOtherOperations/cold start the template refuses"},
	{check: "MemberTerminating", old: `if s.Member.Deleting {`, broken: `if false {`, test: "TestJudgeBind/member being deleted"},
	{check: "PodTerminating", old: `case p.Deleting:`, broken: `case false:`, test: "TestJudgeBind/pod being deleted"},
	{check: "PodFinished", old: `case p.Finished:`, broken: `case false:`, test: "TestJudgeBind/pod ended"},
	{check: "PodFinished", old: `return deny(PodFinished, "pod %s is gone", m.PodName)`, broken: `return nil`, test: "TestJudgeBind/pod gone"},
	{check: "PodForeign", old: `case p.ControllerUID != m.UID:`, broken: `case false:`, test: "TestJudgeBind/pod of somebody else"},
	{check: "PodForeign: there before its Sandbox", old: `case !p.Deleting && !p.Finished && p.precedes(m):`, broken: `case false:`, test: "TestJudgeBind/pod of a sandbox that was"},
	{check: "PodForeign: clocks differ", old: `created = created.Add(clocks)`, broken: ``, test: "TestJudgeBind/pod as old as clocks may say"},
	{check: "PodForeign: no doubt for what was made by hand", old: `if !m.ByHand {`, broken: `if true {`, test: "TestJudgeBind/made by hand after its pod"},
	{check: "PodForeign: there before, and gone", old: `case !p.Deleting && !p.Finished && p.precedes(m):`, broken: `case p.precedes(m):`, test: "TestJudgeBind/pod of a sandbox that was, and ended"},
	{check: "PodForeign", old: `len(m.PodIPs) > 0 && !sameSet(m.PodIPs, p.IPs):`, broken: `false:`, test: "TestJudgeBind/status shows another pod's address"},
	{check: "PodNotYet", old: `case p == nil && len(m.PodIPs) == 0:`, broken: `case false:`, test: "TestJudgeBind/no pod yet"},
	{check: "NodeLeaving", old: `case p.NodeLeaving != "":`, broken: `case false:`, test: "TestJudgeBind/node about to go"},
	{check: "MemberUsed", old: `case s.Member.Used:`, broken: `case false:`, test: "TestJudgeBind/member used before"},
	{check: "MemberClaimed", old: `case c.Kind == OwnedByClaim:`, broken: `case false:`, test: "TestJudgeBind/member of another claim"},
	{check: "ClaimHoldsAnother", old: `if len(s.Held) == 0 {`, broken: `if len(s.Held) >= 0 {`, test: "TestJudgeBind/claim holds one already"},
	{check: "ClaimNamesAnother", old: `case slices.Contains(s.Claim.Names, s.Member.Name), `, broken: `case len(s.Claim.Names) > 0, `, test: "TestJudgeBind/claim names another member"},
	{check: "ClaimNamesAnother: named first", old: `len(s.Claim.Names) == 0 && !s.Member.NamedFirst:`, broken: `len(s.Claim.Names) == 0:`, test: "TestJudgeBind/claim names nothing"},
	{check: "ClaimNamesAnother: old releases name nothing", old: `len(s.Claim.Names) == 0 && !s.Member.NamedFirst:`, broken: `false:`, test: "TestJudgeBind/claim names nothing (old releases)"},
	{check: "ClaimGone", old: `case s.Claim.Deleting:`, broken: `case false:`, test: "TestJudgeBind/claim being deleted"},
	{check: "ClaimGone", old: `return deny(ClaimGone, "claim %s does not exist", s.ClaimRef.Name)`, broken: `return &Verdict{Allowed: true, Reason: Fresh}`, test: "TestJudgeBind/claim gone"},
	{check: "ClaimReplaced", old: `case s.Claim.UID != s.ClaimRef.UID:`, broken: `case false:`, test: "TestJudgeBind/claim of the same name, another one"},
	{check: "PoolGone", old: `case s.Pool.UID != s.Member.Controller.UID:`, broken: `case false:`, test: "TestJudgeBind/pool of the same name, another one"},
	{check: "PoolGone", old: `case s.Pool.Deleting:`, broken: `case false:`, test: "TestJudgeBind/pool being deleted"},
	{check: "PoolGone", old: `if s.Pool.Deleting {`, broken: `if false {`, test: "TestJudgeOtherOperations/cold start, pool going"},
	{check: "PoolMismatch", old: `case s.Operation == Bind && !s.Claim.asksFor(s.Pool):`, broken: `case false:`, test: "TestJudgeBind/claim asks for another pool"},
	{check: "PoolMismatch: taken by name only", old: `return c.AnyPool && !p.ByName || `, broken: `return c.AnyPool || `, test: "TestPoolsThatAreTakenByName/any pool"},
	{check: "PoolMismatch: the claim's own template", old: `if c.Template != "" && c.Template != p.Template {`, broken: `if false {`, test: "TestJudgeBind/claim asks for any pool of u"},
	{check: "TemplateGone", old: `return deny(TemplateGone, "the template in force does not exist")`, broken: `return nil`, test: "TestJudgeBind/template gone"},
	{check: "TemplateMismatch", old: `case s.Member.Template != "" && s.Member.Template != s.Pool.Template:`, broken: `case false:`, test: "TestJudgeBind/pool switched to another template"},
	{check: "TemplateMismatch", old: `if forClaim && s.Member.Template != "" && s.Member.Template != s.Template.Name {`, broken: `if false {`, test: "TestJudgeOtherOperations/cold start, pool switched its template"},
	{check: "NotAMember", old: `case c.Kind != OwnedByPool && (`, broken: `case false && (`, test: "TestJudgeBind/nobody's sandbox"},
	{check: "BlueprintChanged", old: `revision.PathSet{}); len(d) > 0 {`, broken: `revision.PathSet{}); len(d) < 0 {`, test: "TestJudgeBind/the bind makes a stale one look fresh"},

	{check: "injected paths of a member", old: `differences := s.work.Compare(r.Content, content, injected)`, broken: `differences := s.work.Compare(r.Content, content, revision.PathSet{})`, test: "TestJudgeBind/an injected leaf on the list"},
	{check: "Recreate serves nothing stale", old: `return st == OnReplenish || `, broken: `return st == Recreate || st == OnReplenish || `, test: "TestJudgeBind/stale, named by history"},
	{check: "OnReplenish tolerates", old: `return st == OnReplenish || `, broken: `return `, test: "TestJudgeBind/stale under OnReplenish"},
	{check: "rolling pools serve stale ones if they say so", old: `st == RollingUpdate && admitAny`, broken: `st == RollingUpdate`, test: "TestJudgeBind/stale while rolling, admit fresh"},
	{check: "a stale birth is refused", old: `v := firstOf(s, belongs, contentIsCurrent)`, broken: `v := firstOf(s, belongs)`, test: "TestJudgeOtherOperations/birth, stale"},
	{check: "an unknown birth is not refused", old: `if v.Reason == UnknownRevision {
		v.Allowed = true`, broken: `if v.Reason == UnknownRevision {
		v.Allowed = false`, test: "TestJudgeOtherOperations/birth of something unknown"},
	{check: "a birth for another template is refused", old: `v := firstOf(s, belongs, contentIsCurrent)`, broken: `v := firstOf(s, contentIsCurrent)`, test: "TestJudgeOtherOperations/birth from the template of before"},
})

// asking decides which rules are asked about which writes, and in which order.
var asking = at("internal/freshness/rules.go", []mutant{
	{check: "ClaimHoldsAnother", old: `{"claimHoldsNone", []Operation{Bind, ColdStart,`, broken: `{"claimHoldsNone", []Operation{Bind,`, test: "TestJudgeOtherOperations/cold start beside a warm one"},
	{check: "the claim's fault comes first", old: `{"oneOwner", []Operation{`, broken: `{"contentIsCurrent", []Operation{Bind}, contentIsCurrent}, {"oneOwner", []Operation{`, test: "TestJudgeBind/the claim's fault before the member's"},
	{check: "an idle member's Pod is compared", old: `{"podIsCurrent", []Operation{Bind, Return, Idle,`, broken: `{"podIsCurrent", []Operation{Bind, Return,`, test: "TestJudgeOtherOperations/idle, spec edited and the pod is stale"},
	{check: "a release changes no blueprint", old: `{"blueprintKept", []Operation{Bind, Release, Return}`, broken: `{"blueprintKept", []Operation{Bind, Return}`, test: "TestJudgeBarePods/the write changes its spec"},
	{check: "what nobody knows is judged as a bind", old: `return op } return Bind`, broken: `return op
	}
	return op`, test: "TestAnOperationThatIsNotKnownIsJudgedAsABind"},
	{check: "rules are left out where that is asked for", old: `slices.Contains(rules[i].Operations, op)`, broken: `slices.Contains(Rules()[i].Operations, op)`, test: "TestJudgeByFewerRules"},
})

// suspensions are the rules for what nobody understands, and for restarts.
var suspensions = slices.Concat(at("internal/freshness/judge.go", []mutant{
	{check: "suspension: unknown members are let through", old: `if s.Pool != nil && s.Pool.Suspended == v.Expected`, broken: `if s.Pool == nil && s.Pool.Suspended == v.Expected`, test: "TestJudgeWhileAttributionIsSuspended/unknown"},
	{check: "suspension: for the revision in force only", old: `s.Pool.Suspended == v.Expected`, broken: `s.Pool.Suspended != ""`, test: "TestJudgeWhileAttributionIsSuspended/unknown, suspended for a revision"},
	{check: "suspension: not one that is nearer to an older one", old: `&& !nearerToOlder {`, broken: `{`, test: "TestJudgeWhileAttributionIsSuspended/unknown, nearer to an older one"},
	{check: "suspension: never one that is known to be stale", old: `v.Reason, v.Found = StaleRevision, k.Hash return tolerate(s, v)`, broken: `v.Reason, v.Found = StaleRevision, k.Hash
			return tolerate(s, suspend(s, v, false))`, test: "TestJudgeWhileAttributionIsSuspended/known to be older"},
	{check: "a restart makes stale what was there before", old: `|| s.Member.Created.After(s.Pool.Restarted) {`, broken: `|| !s.Member.Created.IsZero() {`, test: "TestJudgeAfterARestart/born before"},
	{check: "a restart counts for its whole second", old: `s.Member.Created.After(s.Pool.Restarted) {`, broken: `!s.Member.Created.Before(s.Pool.Restarted) {`, test: "TestJudgeAfterARestart/born in its second"},
}), at("internal/freshness/owners.go", []mutant{
	{check: "OwnerMismatch", old: `if len(s.Besides) == 0 {`, broken: `if true {`, test: "TestWhoOwnsAfterAWrite/two claims/bind"},
	{check: "OwnerMismatch", old: `s.Claim.UID != s.ClaimRef.UID {`, broken: `s.Claim.UID != "" {`, test: "TestWhoOwnsAfterAWrite/another kind with a claim's UID/foreigncontroller"},
	{check: "BlueprintChanged", old: `m.ProposedPodName == m.PodName:`, broken: `m.ProposedPodName != "":`, test: "TestWhoOwnsAfterAWrite/the pod changed by the write/bind"},
	{check: "PodForeign: another Pod", old: `case m.namesAnotherPod():`, broken: `case false:`, test: "TestWhoOwnsAfterAWrite/the pod of another name/bind"},
}), at("internal/freshness/rules.go", []mutant{
	{check: "PodForeign: another Pod, of an idle member", old: `{"podKept", []Operation{Bind, Idle, Stored}`, broken: `{"podKept", []Operation{Bind, Stored}`, test: "TestWhoOwnsAfterAWrite/the pod of another name/idle"},
	{check: "PodForeign: another Pod, by a cache", old: `{"podKept", []Operation{Bind, Idle, Stored}`, broken: `{"podKept", []Operation{Bind, Idle}`, test: "TestWhoOwnsAfterAWrite/the pod of another name/stored"},
}), at("internal/freshness/rollout.go", []mutant{
	{check: "rollouts: an edit leaves what is inherited", old: `true, r.Inherited`, broken: `true, false`, test: "TestWhatTheNextRolloutInherits"},
	{check: "suspension: only what the pool's controller made", old: `!m.Edited && m.ByPool`, broken: `!m.Edited`, test: "TestSuspendsAttribution/made by hand"},
	{check: "suspension: one unknown member suspends nothing", old: `newer >= enough`, broken: `newer > 0`, test: "TestSuspendsAttribution/four are not enough"},
	{check: "suspension: only members of the template in force count", old: `m.Class == Unknown && m.bornSince(since)`, broken: `m.Class == Unknown`, test: "TestSuspendsAttribution/from before the template changed"},
}))

// planning decides which members are replaced.
var planning = slices.Concat(at("internal/freshness/replacementpolicy.go", []mutant{
	{check: "what can never be bound goes, under every strategy", old: `m.ReadySince.IsZero():
		return !m.Leaving
	case`, broken: `m.ReadySince.IsZero():
		return !m.Leaving && o.replaces()
	case`, test: "TestMakePlan/unusable ones go under every strategy"},
	{check: "unknown members stay while attribution is suspended", old: `return !o.Suspended && (`, broken: `return (`, test: "TestMakePlan/recreate, attribution suspended: only what is known to be stale"},
	{check: "unknown members stay until one is born current", old: `o.Understood || !m.bornSince(o.Started)`, broken: `true`, test: "TestMakePlan/recreate: unknown ones born of this revision wait for one that is current"},
	{check: "a rollout that makes no progress stops", old: `o.Failed && o.Strategy == RollingUpdate`, broken: `false`, test: "TestAFailedRolloutReplacesNothing/overdue"},
	{check: "a paused rollout deletes nothing", old: `if o.Paused || o.Failed`, broken: `if o.Failed`, test: "TestMakePlan/rolling, paused"},
	{check: "a pause holds what is of another template", old: `return !m.Leaving && !o.Paused`, broken: `return !m.Leaving`, test: "TestFormerMembers/on replenish, paused"},
}), at("internal/freshness/replacement.go", []mutant{
	{check: "claims' gaps are filled before", old: `before := min(n, g.Ahead)`, broken: `before := 0`, test: "TestReplacements/claims took some before"},
	{check: "no more is replaced than is missing", old: `r.Fill(r.Awaited() - max(n, 0))`, broken: `r`, test: "TestReplacements/no more than is missing"},
	{check: "nothing is awaited in the places of what never started", old: `max(0, missing-unavailable-stuck)`, broken: `max(0, missing-unavailable)`, test: "TestReplacements/the others are to go, too"},
}), at("internal/freshness/plan.go", []mutant{
	{check: "rollouts: what is missing at a takeover may have gone before deletes", old: `if s.Rollout.Inherited {`, broken: `if false {`, test: "TestResume/progressing"},
	{check: "a rollout keeps to its step", old: `max(0, p.MaxUnavailable-p.deleting(wanted).Deleted())`, broken: `len(steps)`, test: "TestMakePlan/rolling: a step of its size"},
	{check: "a failed rollout goes on when nothing is replaced", old: `== Failed && r.Deleted() > 0`, broken: `== Failed`, test: "TestAFailedRolloutReplacesNothing/overdue, and nothing is being replaced"},
	{check: "what was not deleted is not replaced", old: `{ return p.before.deleting(deleted) }`, broken: `{ return p.Rollout.Replacing }`, test: "TestWhatIsReplacedWhenDeletesFail/none"},
	{check: "a plan deletes no more than the pace allows", old: `min(len(wanted), p.Deletes)`, broken: `len(wanted)`, test: "TestMakePlan/recreate: no more than may be deleted now, and the others are hidden"},
	{check: "a plan keeps to its grant", old: `most := max(already, p.Granted)`, broken: `most := len(p.Members)`, test: "TestAPlanKeepsToItsGrant"},
	{check: "what may be asked for still is hidden first", old: ` && p.hiddenLongEnough(m)`, broken: ``, test: "TestMakePlan/hidden first: not for long enough"},
	{check: "what cannot be written to holds up nobody", old: `!m.BackedOff && which(m)`, broken: `which(m)`, test: "TestMakePlan/rolling: what claims have replaced is no progress"},
	{check: "what claims have replaced is no progress", old: `p.awaits && m.ReadySince`, broken: `m.ReadySince`, test: "TestMakePlan/rolling: what claims have replaced is no progress"},
	{check: "what is withheld waits for no claim", old: `if left == 0 || p.Withholds {`, broken: `if left == 0 {`, test: "TestMakePlan/a strategy of the platform's own, stale ones withheld"},
	{check: "clocks: no rollout began later than now", old: `p.Rollout = p.Rollout.By(s.Now)`, broken: ``, test: "TestPlanWithClocksThatDiffer"},
	{check: "budget: a pool is looked at when it holds up others no more", old: `p.again(r.stallsIn(p.Deadline, p.Now))`, broken: ``, test: "TestOutcome/paused, not late"},
	{check: "clocks: no member became ready later than now", old: `notAfter(m.ReadySince, p.Now)`, broken: `m.ReadySince`, test: "TestPlanWithClocksThatDiffer"},
}), at("internal/freshness/show.go", []mutant{
	{check: "what is shown is not deleted for having been hidden once", old: `	if m.Shown {
		return false
	}
	wait :=`, broken: `	wait :=`, test: "TestMakePlan/hidden first: what claims still see is hidden"},
	{check: "what cannot be hidden goes all the same", old: `!p.Hideable || m.WriteFailed ||`, broken: `!p.Hideable ||`, test: "TestMakePlan/hidden first: one that cannot be written to might never be"},
	{check: "what serves until it goes is not hidden first", old: `m.WriteFailed || p.served(m) {`, broken: `m.WriteFailed {`, test: "TestMakePlan/hidden first: what serves until it goes cannot be"},
	{check: "nobody is given what is of another template", old: `case m.Class == Unusable, m.Class == Former:`, broken: `case m.Class == Unusable:`, test: "TestFormerMembers/on replenish, paused"},
	{check: "where the platform deletes hidden members none is hidden", old: `case !served && m.Shown && p.Hideable && !goes[i]:`, broken: `case !served && m.Shown && !goes[i]:`, test: "TestMakePlan/rolling: the platform would delete what is hidden"},
	{check: "what is refused whoever replaces it is hidden", old: `return !p.Withholds && ServesStale`, broken: `return ServesStale`, test: "TestMakePlan/a strategy of the platform's own, stale ones withheld"},
	{check: "no ghosts: what is current again is shown", old: `case served && !m.Shown:`, broken: `case false:`, test: "TestMakePlan/a rollback shows what is current again"},
}), at("internal/freshness/rollout.go", []mutant{
	{check: "budget: no deadline holds up other pools for longer", old: `min(deadline, longestHold)`, broken: `deadline`, test: "TestOutcome/no progress for ten minutes"},
	{check: "clocks: what they show is compared", old: `at.Round(0).After(now.Round(0))`, broken: `at.After(now)`, test: "TestNotAfterComparesWhatClocksShow"},
}), at("internal/freshness/poolstate.go", []mutant{
	{check: "clocks: one that is ahead makes nobody wait longer", old: `min(m.ReadySince.Add(s.MinReady).Sub(s.Now), s.MinReady)`, broken: `m.ReadySince.Add(s.MinReady).Sub(s.Now)`, test: "TestAvailableByAnotherClock/a clock that is ahead"},
}))

// barePods are the rules of the releases whose members are Pods.
var barePods = slices.Concat(at("internal/freshness/barepods.go", []mutant{
	{check: "PodForeign: a bare Pod", old: `case p.ControllerUID != "":`, broken: `case false:`, test: "TestJudgeWarmStart/pod of a sandbox, or a pool"},
	{check: "MemberClaimed: a bare Pod", old: `case p.ClaimUID != "" && p.ClaimUID != s.ClaimRef.UID:`, broken: `case false:`, test: "TestJudgeWarmStart/pod given to another claim"},
	{check: "PodTerminating: a bare Pod", old: `return podGoesOn(name, p)`, broken: `return nil`, test: "TestJudgeWarmStart/pod being deleted"},
	{check: "StaleRevision: a bare Pod", old: `return attribute(s, s.Plain.podOnly(), s.Pod.Content, s.PodInjected)`, broken: `return nil`, test: "TestJudgeWarmStart/stale pod"},
}), at("internal/freshness/judge.go", []mutant{
	{check: "MemberUsed: a released Pod", old: `case c.Kind != OwnedByPool && (!s.Member.Bare || !s.Member.Used):`, broken: `case c.Kind != OwnedByPool:`, test: "TestJudgeBarePods/given to another claim"},
	{check: "secure defaults are no difference for v0.1", old: `plain == nil || plain.Reason == StaleRevision {`, broken: `plain != nil {`, test: "TestJudgeWarmStart/no secure defaults"},
}))

// deletes are the rules by which a claim's sandbox is kept from its pool.
var deletes = slices.Concat(at("internal/freshness/protect.go", []mutant{
	{check: "protect: the claim lives", old: `d.ClaimExpired, d.SandboxExpired:`, broken: `d.ClaimExpired, d.SandboxExpired, d.Claim != nil:`, test: "TestJudgeDelete/a claim's sandbox"},
	{check: "protect: not when the claim is going", old: `d.Claim.UID != d.Owner.UID, d.Claim.Deleting,`, broken: `d.Claim.UID != d.Owner.UID,`, test: "TestJudgeDelete/claim being deleted"},
	{check: "protect: not for another claim of that name", old: `d.Claim.UID != d.Owner.UID, `, broken: ``, test: "TestJudgeDelete/claim of that name, a new one"},
	{check: "protect: not when the claim's time is up", old: `d.ClaimExpired, d.SandboxExpired:`, broken: `d.SandboxExpired:`, test: "TestJudgeDelete/claim expired"},
	{check: "protect: not when the sandbox's time is up", old: `d.ClaimExpired, d.SandboxExpired:`, broken: `d.ClaimExpired:`, test: "TestJudgeDelete/sandbox past its time"},
	{check: "protect: not an idle member", old: `d.Owner.Kind != OwnedByClaim,`, broken: ``, test: "TestJudgeDelete/an idle member"},
}), at("internal/platform/agentsandbox/protect.go", []mutant{
	{check: "protect: a pool's controller is done with it", old: `return http.StatusNotFound, metav1.StatusReasonNotFound`, broken: `return http.StatusConflict, metav1.StatusReasonConflict`, test: "TestDeletesOfPoolsAreDone"},
	{check: "protect: shutdownTime of the sandbox", old: `platform.Past(str(sandbox.Object, "spec", "shutdownTime"), now)`, broken: `false`, test: "TestDeletion/sandbox past its own time"},
	{check: "protect: shutdownTime of the claim", old: `if platform.Past(str(claim.Object, "spec", "lifecycle", "shutdownTime"), now) {`, broken: `if false {`, test: "TestDeletion/claim's time is up"},
	{check: "protect: time to live after the end", old: `case "Finished":`, broken: `case "Never":`, test: "TestDeletion/finished, time to live is up"},
	{check: "protect: time to live is to come", old: `!finished.Add(time.Duration(ttl)*time.Second).After(now.Add(platform.ExpiryMargin))`, broken: `!finished.After(now.Add(platform.ExpiryMargin * time.Duration(1+ttl-ttl)))`, test: "TestDeletion/finished, time to live to come"},
	{check: "protect: the status says expired", old: `if str(c, "reason") == "ClaimExpired" {`, broken: `if false {`, test: "TestDeletion/expired, its status says"},
	{check: "protect: an unreadable claim is not gone", old: `return freshness.Deletion{}, fmt.Errorf("judging the delete`, broken: `return d, nil
	}
	if false {
		return d, fmt.Errorf("judging the delete`, test: "TestDeletion/unreadable"},
}), at("internal/platform/expiry.go", []mutant{
	{check: "protect: clocks differ", old: `!t.After(now.Add(ExpiryMargin))`, broken: `!t.After(now)`, pkg: "internal/platform/agentsandbox", test: "TestDeletion/claim's time is up by a clock that is ahead of ours"},
}), at("internal/platform/kruise/protect.go", []mutant{
	{check: "kruise: protect: no idle member", old: `if poolOf(sandbox).UID != "" || `, broken: `if `, test: "TestDeletion/a pool's, and marked"},
	{check: "kruise: protect: what says that somebody has it", old: ` || !isClaimed(sandbox)`, broken: ``, test: "TestDeletion/nobody's"},
	{check: "kruise: protect: not what is let go", old: ` || isLetGo(sandbox)`, broken: ``, test: "TestDeletion/it is being recycled"},
	{check: "kruise: protect: not what is to be recycled", old: ` || sandbox.GetAnnotations()[letGoAnnotation] == yes`, broken: ``, test: "TestDeletion/it was let go"},
	{check: "kruise: protect: not what has ended", old: ` || hasEnded(sandbox)`, broken: ``, test: "TestDeletion/it has failed"},
	{check: "kruise: protect: not when its time is up", old: `d.SandboxExpired = platform.Past(`, broken: `_ = platform.Past(`, test: "TestDeletion/its time is up"},
	{check: "kruise: protect: users without an object", old: `if !isClaim {`, broken: `if !isClaim && false {`, test: "TestDeletion/a user's"},
	{check: "kruise: protect: what fails for a claim goes", old: `claim != nil && fields.String(claim.Object, "status", "phase") == phaseCompleted`, broken: `claim != nil`, test: "TestDeletion/a claim's that fails"},
	{check: "kruise: protect: not when the claim is going", old: `, Deleting: claim.GetDeletionTimestamp() != nil}`, broken: `}`, test: "TestDeletion/a claim's that is being deleted"},
	{check: "kruise: protect: upstream looks again", old: `return http.StatusConflict, metav1.StatusReasonConflict`, broken: `return http.StatusNotFound, metav1.StatusReasonNotFound`, test: "TestUpstreamLooksAgain"},
	{check: "kruise: protect: an unreadable claim is not gone", old: `if err != nil {
		return freshness.Deletion{}, fmt`, broken: `if false {
		return freshness.Deletion{}, fmt`, test: "TestAClaimThatCannotBeReadIsNotGone"},
}), at("webhooks/protect.go", []mutant{
	{check: "protect: the platform says how", old: `Code: code, Reason: reason,`, broken: `Code: code - 5, Reason: reason,`, test: "TestProtect/in use"},
}), at("internal/platform/agentsandbox/protectpods.go", []mutant{
	{check: "protect: the Pod's sandbox is this one", old: `sandbox != nil && sandbox.GetUID() != owner.UID {`, broken: `false {`, test: "TestPodDeletion/its sandbox is another one"},
	{check: "protect: the Pod's sandbox lives", old: `case sandbox == nil, sandbox.GetDeletionTimestamp() != nil,`, broken: `case sandbox == nil,`, test: "TestPodDeletion/its sandbox is being deleted"},
	{check: "protect: the Pod's sandbox wants a Pod", old: `found && replicas == 0 ||`, broken: `replicas < 0 || found && `, test: "TestPodDeletion/its sandbox is scaled to zero"},
	{check: "protect: the Pod's sandbox is not suspended", old: `str(sandbox.Object, "spec", "operatingMode") == "Suspended"`, broken: `false`, test: "TestPodDeletion/its sandbox is suspended"},
	{check: "protect: a Pod that only a sandbox names", old: `if PodNameOf(s) == pod.GetName() {`, broken: `if false {`, test: "TestPodDeletion/nobody's yet, a sandbox names it"},
	{check: "protect: a Pod that its claim has no use for", old: `if served[uid] || `, broken: `if `, test: "TestPodDeletion/promised, the claim has another"},
	{check: "protect: a Pod that a claim is promised", old: `if !freshness.JudgeDelete(d).Allowed {`, broken: `if false {`, test: "TestPodDeletion/promised"},
	{check: "protect: not for a claim that it is not promised", old: `promisedTo != "" && promisedTo != uid`, broken: `promisedTo != "" && uid == ""`, test: "TestPodDeletion/promised, only another claim waits"},
	{check: "protect: a Pod that does not say for whom it left", old: `promisedTo != "" && promisedTo != uid`, broken: `promisedTo != uid`, test: "TestPodDeletion/nobody's yet, a claim waits"},
	{check: "protect: a later claim may be the one", old: `if !freshness.JudgeDelete(d).Allowed {`, broken: `if true {`, test: "TestPodDeletion/nobody's yet, the next claim waits"},
	{check: "protect: not when the promised claim's time is up", old: `ClaimExpired: claimExpired(c, now),`, broken: ``, test: "TestPodDeletion/promised, the claim's time is up"},
	{check: "protect: a Pod's unreadable sandbox is not gone", old: `case err != nil:
		return freshness.Deletion{}, fmt.Errorf("judging the delete of pod %s: %w", pod.GetName(), err)`, broken: ``, test: "TestPodDeletion/unreadable: its sandbox"},
}))

// reasons decide what can mend a denial, and with it how it is answered.
var reasons = slices.Concat(at("internal/freshness/reasons.go", []mutant{
	{check: "a used member is at fault itself", old: `MemberUsed:        FaultMember,`, broken: ``, test: "TestEveryDenialHasAFault"},
	{check: "a confused claim leaves the member to others", old: `ClaimHoldsAnother: FaultClaim,`, broken: `ClaimHoldsAnother: FaultMember,`, pkg: "internal/platform/agentsandbox", test: "TestAnswer/bind, the claim's fault"},
	{check: "no Pod yet is nobody's fault", old: `NodeLeaving:       FaultMember,`, broken: `NodeLeaving: FaultMember, PodNotYet: FaultMember,`, test: "TestEveryDenialHasAFault"},
}), at("internal/settings/strategy.go", []mutant{
	{check: "what cannot be parsed is strict", old: `if err != nil || st == freshness.RollingUpdate`, broken: `if err == nil && st == freshness.RollingUpdate`, test: "TestResolveStrategy/annotation cannot be parsed"},
	{check: "no rolling where upstream recreates", old: `st == freshness.RollingUpdate && spec == string(freshness.Recreate)`, broken: `false`, test: "TestResolveStrategy/rolling, while upstream deletes"},
	{check: "a strategy of the platform's own is left to it", old: `return freshness.PlatformOwned`, broken: `return byDefault`, test: "TestResolveStrategy/a strategy of theirs"},
}))

// contents are the rules by which two blueprints are the same.
var contents = at("internal/revision/compare.go", []mutant{
	{check: "a leaf too many is a difference", old: `&& !c.allowed.allowsLeaf(c.steps, leaf) {`, broken: `&& false {`, test: "TestCompare/leaf more"},
	{check: "a leaf too few is a difference", old: `c.report(root, func() (string, string) { return compact(leaf), "" })`, broken: ``, test: "TestCompare/leaf less"},
	{check: "another value is a difference", old: `if c.differ(want, got) {`, broken: `if false {`, test: "TestCompare/changed leaf"},
	{check: "what overrides is no difference", old: ` && !c.allowed.overrides(c.steps, got)`, broken: ``, test: "TestOverriding/its value"},
	{check: "another order is a difference", old: `if !inOrder {`, broken: `if false {`, test: "TestCompare/another order"},
})
