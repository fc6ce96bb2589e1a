package main

import "slices"

// keeping is how pools are kept current: by what was seen, and no longer than this
// process leads.
var keeping = slices.Concat(at("controllers/pools/controller.go", []mutant{
	{check: "labels are written whatever cannot be deleted", old: `next, stampErr := p.stamp(ctx, m, s)`, broken: `if err != nil {
		return reconcile.Result{}, err
	}
	next, stampErr := p.stamp(ctx, m, s)`, test: "TestAMemberThatCannotBeDeletedHoldsUpNoStamp"},
	{check: "a delete that failed is an error", old: `errors.Join(err, stampErr)`, broken: `errors.Join(stampErr)`, test: "TestDeletesThatFailAreTriedAgain"},
	{check: "rollouts: a member fills one place", old: `s, err := p.look(ctx, m, pool, template)`, broken: `s, err := p.look(ctx, m, pool, template)
	if s != nil {
		_ = p.compare(ctx, m, s)
	}`, test: "TestAMemberFillsOnePlace/the cached pool is older"},
	{check: "rollouts: no plan goes back to an older template", old: `template != nil && m.template.isAfter(`, broken: `false && m.template.isAfter(`, test: "TestAPlanDoesNotGoBackToAnOlderTemplate"},
	{check: "rollouts: nor does a leader", old: `	p.loadRollout(m, pool)
	if m.version`, broken: `	defer p.loadRollout(m, pool)
	if m.version`, test: "TestALeaderDoesNotGoBackToAnOlderTemplate"},
	{check: "restarts: a pool is looked at when one is due", old: `	again = sooner(again, settings.Pool(s.pool.GetAnnotations()).RestartsIn(s.Now))
`, broken: ``, test: "TestAPoolIsLookedAtWhenItsRestartIsDue"},
	{check: "budget: what cannot be planned counts for its deadline", old: `m.account(m.rollout.Stalled(settings.Pool(pool.GetAnnotations()).Deadline(), p.clock.Now()))`, broken: `m.account(false)`, test: "TestAPoolThatCannotBePlannedHoldsUpOthersForItsDeadline"},
	{check: "budget: before a pool is proven it has what is stored", old: `	p.loadRollout(m, pool)
	p.budget.Settle`, broken: `	p.budget.Settle`, test: "TestAPoolThatIsNotProvenHasWhatIsStored"},
	{check: "budget: a pool that is created again owes nothing", old: `		p.budget.Forget(m.pool)
		delete(p.ready, m.pool)
	}
	if m == nil`, broken: `		delete(p.ready, m.pool)
	}
	if m == nil`, test: "TestAPoolThatIsCreatedAgainOwesNothing/the same leader"},
	{check: "the mode is read live before deletes", old: `if act, err := p.actsOn(ctx, pool); err != nil || !act {`, broken: `if act, err := p.actsOn(ctx, pool); err != nil || false && !act {`, test: "TestAuditIsObeyedBeforeTheCacheShowsIt/deletes"},
	{check: "the mode is read live before words", old: `s.live, s.withheld = act, !act
	return act, err`, broken: `s.live, s.withheld = act, !act
	return true, err`, test: "TestAuditIsObeyedBeforeTheCacheShowsIt/words"},
	{check: "a rest is looked for", old: `len(nodes.leaving) == 0 && m.rests(s) {`, broken: `len(nodes.leaving) > 0 && m.rests(s) {`, test: "TestAPoolAtRestIsNotPlanned"},
	{check: "pace: deletes that were not carried out come back", old: `p.budget.Return(granted.Deletes - s.deletes())`, broken: ``, test: "TestADeleteThatIsRefusedCostsNoOtherPoolOne"},
}), at("controllers/pools/pace.go", []mutant{
	{check: "pace: what is owed in part does not go", old: `(owed + p.Every - 1) / p.Every`, broken: `owed / p.Every`, test: "TestPace/not yet"},
	{check: "pace: in steps", old: `if p.Burst-used < least {`, broken: `if p.Burst-used < 1 {`, test: "TestPaceInSteps"},
	{check: "pace: never more than at first", old: `max(0, p.settled.Sub(now))`, broken: `p.settled.Sub(now)`, test: "TestPace/never more"},
	{check: "pace: a clock that is set back stops nothing", old: `min(max(0, p.settled.Sub(now)), p.Every*time.Duration(p.Burst))`, broken: `max(0, p.settled.Sub(now))`, test: "TestPace/the clock was set back for long"},
}), at("controllers/pools/budget.go", []mutant{
	{check: "pace: deletes count", old: `b.pace.take(replacements)`, broken: ``, test: "TestDeletesGoAtAPace"},
	{check: "pace: no more is replaced than may be deleted", old: `min(b.size-b.used(pool)-has.Replacing, deletes)`, broken: `b.size - b.used(pool) - has.Replacing`, test: "TestDeletesGoAtAPace"},
	{check: "pace: what is replaced again waits, too", old: `granted := min(want, free)`, broken: `granted := max(want, 0*free)`, test: "TestWhatIsReplacedAgainKeepsToThePace"},
	{check: "pace: so do members on nodes that leave", old: `granted := min(want, free)`, broken: `granted := max(want, 0*free)`, test: "TestMembersOnATaintedNodeGoAtThePace"},
	{check: "pace: and is woken", old: `b.wake(key, wait)`, broken: `_ = wait`, test: "TestWhatIsReplacedAgainKeepsToThePace"},
	{check: "pace: the next pool is woken", old: `if at != nil && free > deletes && wait > 0 {`, broken: `if false {`, test: "TestThePaceWakesOnePoolAfterTheOther"},
	{check: "pace: a pool that does not go on holds up no other", old: `		// It could not use what it would get.
		b.leave(pool)`, broken: ``, test: "TestAPoolThatCannotBePlannedPassesItsTurn"},
}), at("controllers/pools/setup.go", []mutant{
	{check: "pace: the budget has one", old: `PaceOf(size, c)`, broken: `Pace{}`, test: "TestTheBudgetOfAControllerHasItsPace"},
}), at("controllers/pools/publish.go", []mutant{
	{check: "words end with the lease", old: `if !p.leads() {
		return errNotLeading
	}`, broken: ``, test: "TestTheOutcomeIsNotWrittenWithoutALease"},
}), at("controllers/pools/handover.go", []mutant{
	{check: "takeover: what others replace counts first", old: `Account{rollout.Replacing.Deleted(), rollout.State == freshness.Failed}`, broken: `Account{0 * rollout.Replacing.Deleted(), rollout.State == freshness.Failed}`, test: "TestANewLeaderKnowsWhatIsBeingReplaced"},
	{check: "takeover: nothing goes at once", old: `p.budget.Exhaust()`, broken: ``, test: "TestANewLeaderBeginsSlowly"},
	{check: "takeover: a pool that is created again owes nothing", old: `if ok && was.pool != pool.GetUID() {`, broken: `if ok && false {`, test: "TestAPoolThatIsCreatedAgainOwesNothing/the next one"},
	{check: "takeover: pools are listed once", old: `h.taken = true`, broken: ``, test: "TestALeaderReadsWhatTheLastOneLeftOnce"},
}), at("controllers/pools/poolstate.go", []mutant{
	{check: "isAfter: another template", old: `t.uid != "" && t.uid != shown.uid`, broken: `false`, test: "TestWhichTemplateMayBeOlder/another one"},
	{check: "isAfter: generations", old: `return t.generation > shown.generation`, broken: `return false`, test: "TestWhichTemplateMayBeOlder/an older one"},
	{check: "turned: another template of that name", old: `return replaced || missed ||`, broken: `return replaced && false || missed ||`, test: "TestWhenMembersAreOfferedAgain/another template of that name"},
	{check: "turned: changes that were not seen", old: `return replaced || missed ||`, broken: `return replaced || missed && false ||`, test: "TestWhenMembersAreOfferedAgain/changes that were not seen between"},
	{check: "turned: another revision", old: `return replaced || missed || m.rollout.Revision != revision`, broken: `return replaced || missed`, test: "TestWhenMembersAreOfferedAgain/another revision"},
	{check: "turned: not at first", old: `if m.template.generation == 0 {`, broken: `if false {`, test: "TestWhenMembersAreOfferedAgain"},
}), at("controllers/pools/apply.go", []mutant{
	{check: "a delete that is unclear has the pool proven again", old: `m.proven, m.unclear = false, true`, broken: ``, test: "TestAnUnclearDeleteIsProvenByALaterList"},
	{check: "a delete that is unclear counts", old: `o.unclear, o.went = o.unclear+1, append(o.went, k)`, broken: `o.unclear = o.unclear + 1`, test: "TestAnUnclearDeleteIsProvenByALaterList"},
}), at("controllers/pools/view.go", []mutant{
	{check: "shows: what was listed is shown", old: `if seen, ok := shown[uid]; !ok || older(seen, rv) {`, broken: `if seen, ok := shown[uid]; ok && older(seen, rv) {`, test: "TestWhatACacheShows/one is not shown"},
	{check: "shows: in no older version", old: `if seen, ok := shown[uid]; !ok || older(seen, rv) {`, broken: `if seen, ok := shown[uid]; !ok || false && older(seen, rv) {`, test: "TestWhatACacheShows/an older version"},
	{check: "shows: nothing that was deleted", old: `!ok && idle(pool, m) && !older(l.at, m.ResourceVersion) {`, broken: `!ok && false {`, test: "TestWhatACacheShows/one is gone"},
	{check: "shows: younger than the list", old: `!ok && idle(pool, m) && !older(l.at, m.ResourceVersion) {`, broken: `!ok && idle(pool, m) {`, test: "TestWhatACacheShows/one is younger"},
	{check: "shows: a list selects only what claims may be given", old: `!ok && idle(pool, m) && !older(l.at, m.ResourceVersion) {`, broken: `!ok && !older(l.at, m.ResourceVersion) {`, test: "TestAMemberThatNobodyMayBeGivenLeavesNothingUnproven/another list selects it not"},
	{check: "a template of the kind that the pool says", old: `	if is.TemplateKind != "" {
		if kind`, broken: `	if false {
		if kind`, test: "TestTemplatesOfTwoKinds"},
	{check: "no template of a kind that is not served", old: `kind.Kind != is.TemplateKind {`, broken: `false {`, test: "TestTemplatesOfTwoKinds"},
}), at("controllers/pools/roster.go", []mutant{
	{check: "another template does not have members hidden anew", old: `since, before := m.hidden[uid]`, broken: `since, before := time.Time{}, false`, test: "TestMembersAreHiddenBeforeTheyGo"},
	{check: "nothing is remembered of members that are gone", old: `	m.hidden = hidden
`, broken: `	for uid, since := range m.hidden {
		hidden[uid] = since
	}
	m.hidden = hidden
`, test: "TestMembersAreHiddenBeforeTheyGo"},
	{check: "a member is judged once", old: `known && r.entries[old].WithPod == is {`, broken: `false {`, test: "TestAMemberIsJudgedOnce/nothing"},
	{check: "another Pod is judged", old: `known && r.entries[old].WithPod == is {`, broken: `known && r.entries[old].Member == is.Member {`, test: "TestAMemberIsJudgedOnce/another pod"},
	{check: "another template is judged", old: `if r == nil || r.by != inspection {`, broken: `if r == nil {`, test: "TestAMemberIsJudgedOnce/another template"},
	{check: "what a claim takes is no member", old: `if !idle(pool, is) {`, broken: `if false {`, test: "TestAMemberIsJudgedOnce/a claim takes one"},
}), at("controllers/pools/rest.go", []mutant{
	{check: "a rest ends with time", old: `!is.until.IsZero() && !s.Now.Before(is.until) {`, broken: `false {`, test: "TestWhenAPoolRests/later, then"},
	{check: "no rest before words are seen", old: `|| s.Now.Sub(m.writtenAt) < readBack`, broken: ``, test: "TestWhenAPoolRests/words not seen yet"},
	{check: "no rest while deletes are unseen", old: `len(m.leaving)+len(m.failures)`, broken: `len(m.failures)`, test: "TestWhenAPoolRests/a delete that is unseen"},
	{check: "no rest where words are withheld", old: `|| s.withheld`, broken: ``, test: "TestWhenAPoolRests/words withheld"},
}), at("controllers/pools/outage.go", []mutant{
	{check: "an outage lasts a while", old: `o.down && now.Sub(o.at) < outageKept {`, broken: `false {`, test: "TestAMemberIsGivenUpOnlyByNodesAsTheyAre/bad news are for a while"},
	{check: "that there is no outage is never kept", old: `o.down && now.Sub(o.at) < outageKept {`, broken: `!o.at.IsZero() && now.Sub(o.at) < outageKept { return o.down, nil`, test: "TestAMemberIsGivenUpOnlyByNodesAsTheyAre/good news are never old"},
	{check: "a late cache knows no outage", old: `o.down || !showNode(list.Items, node), nil`, broken: `o.down, nil`, test: "TestAMemberIsGivenUpOnlyByNodesAsTheyAre/a late cache"},
	{check: "a late cache may lack the node", old: `		return read.ResourceVersion == ""`, broken: `		return true`, test: "TestAMemberIsGivenUpOnlyByNodesAsTheyAre/a late cache that lacks it"},
	{check: "a late cache may have a node that is gone", old: `return read.ResourceVersion != "" && !older`, broken: `return read.ResourceVersion == "" || !older`, test: "TestAMemberIsGivenUpOnlyByNodesAsTheyAre/a late cache that has it still"},
}), at("internal/platform/inspection.go", []mutant{
	{check: "PodForeign: another Pod, of one among equals", old: `elsewhere: m.podName != nil}`, broken: `}`, test: "TestWhatAnInspectionFoundIsItsOwn"},
	{check: "Same: the paths that are injected", old: `i.injected != o.injected ||`, broken: ``, pkg: "internal/platform/agentsandbox", test: "TestInspectionsThatSayTheSame/other paths are injected"},
	{check: "Same: the pool", old: `if !reflect.DeepEqual(a, b) {`, broken: `if false {`, pkg: "internal/platform/agentsandbox", test: "TestInspectionsThatSayTheSame/a restart"},
	{check: "Same: the template", old: `t.Name != u.Name || !t.Content.Equal(u.Content)`, broken: `t.Name != u.Name`, pkg: "internal/platform/agentsandbox", test: "TestInspectionsThatSayTheSame/an edit"},
	{check: "Same: the history", old: `return a.Hash == b.Hash })`, broken: `return true })`, pkg: "internal/platform/agentsandbox", test: "TestInspectionsThatSayTheSame/another history"},
	{check: "Same: not what is admitted", old: `a.AdmitAny, a.Suspended = b.AdmitAny, b.Suspended`, broken: ``, pkg: "internal/platform/agentsandbox", test: "TestInspectionsThatSayTheSame/what is admitted"},
	{check: "a Pod is looked at whatever its member is", old: `|| alone.Class == freshness.Unclassified {`, broken: `|| alone.Class != freshness.Current {`, pkg: "internal/platform/agentsandbox", test: "TestMembersAreTheSameHoweverTheyAreRead/older, and debugged"},
	{check: "a reference tells nothing without its Pod", old: `if m.ByReference && alone.Class == freshness.Current {`, broken: `if false {`, pkg: "internal/platform/kruise", test: "TestMembersThatRefer/without a pod"},
	{check: "a reference says that it has the Pod in force", old: `if ok && m.ByReference && `, broken: `if ok && false && `, pkg: "internal/platform/kruise", test: "TestMembersThatRefer/fresh"},
	{check: "a reference is named by its Pod", old: `	if !m.ByReference {
		j.Found = alone.Found`, broken: `	if true {
		j.Found = alone.Found`, pkg: "internal/platform/kruise", test: "TestMembersThatRefer/of an older command"},
	{check: "images name no revision", old: `} else if !shown.Whole && j.Class == freshness.Current {`, broken: `} else if false {`, pkg: "internal/platform/kruise", test: "TestMembersThatRefer/of more than is kept"},
	{check: "a Pod may have what the API server added", old: `PodInjections(nil, s.PodInjected, added...)`, broken: `PodInjections(nil, s.PodInjected)`, pkg: "internal/platform/kruise", test: "TestMembersThatRefer/with what the API server added"},
}), at("internal/platform/member.go", []mutant{
	{check: "what is kept of members is bounded", old: `if r.kept.Add(size) > MaxContents {`, broken: `if r.kept.Add(size) < 0 {`, pkg: "internal/platform/agentsandbox", test: "TestWhatIsKeptOfMembersIsBounded"},
	{check: "a reference vouches for no Pod", old: `		generation = 0
`, broken: ``, pkg: "internal/platform/kruise", test: "TestMembersThatRefer/edited by hand"},
}), at("internal/platform/memberpod.go", []mutant{
	{check: "all of a reference's Pod is compared", old: `if m.ByReference && p.whole != nil {`, broken: `if false {`, pkg: "internal/platform/kruise", test: "TestMembersThatRefer/of an older command"},
	{check: "LacksStamp: its own Pod", old: `!p.deleting && p.of(m.UID) }`, broken: `!p.deleting }`, pkg: "controllers/pools", test: "TestStampsOfPodsThatLackThem/another's"},
	{check: "LacksStamp: not one that goes", old: `p.stamp == "" && !p.deleting`, broken: `p.stamp == ""`, pkg: "controllers/pools", test: "TestStampsOfPodsThatLackThem/being deleted"},
	{check: "SameButVersion: another Pod", old: `return p.UID == o.UID &&`, broken: `return`, pkg: "internal/platform/agentsandbox", test: "TestPodsThatAreTheSameButForTheirVersions/another one of that name"},
	{check: "SameButVersion: what it runs", old: `p.podTraits == o.podTraits &&`, broken: ``, pkg: "internal/platform/agentsandbox", test: "TestPodsThatAreTheSameButForTheirVersions/another image"},
	{check: "SameButVersion: its node", old: `p.node == o.node &&`, broken: ``, pkg: "internal/platform/agentsandbox", test: "TestPodsThatAreTheSameButForTheirVersions/another node"},
	{check: "SameButVersion: its deletion", old: `p.deleting == o.deleting &&`, broken: ``, pkg: "internal/platform/agentsandbox", test: "TestPodsThatAreTheSameButForTheirVersions/deleting"},
}), at("internal/members/store.go", []mutant{
	{check: "a member is shown in a Pod that comes later", old: `m.PodName() == m.Name { s.runs(m, now)`, broken: `m.PodName() == m.Name {`, test: "TestMembersWithTheirPods/the pod comes last"},
	{check: "a member is shown in a Pod of another name", old: `for _, m := range s.inPod[key] {`, broken: `for _, m := range s.inPod[key][:0] {`, test: "TestMembersWithTheirPods/another name, comes last"},
}), at("internal/members/table.go", []mutant{
	{check: "what a list has is no later version", old: `now, err := t.listed(obj)`, broken: `now, err := t.seen(obj)`, test: "TestWhatAListHasIsNoLaterVersion/as it is"},
}), at("internal/members/reflect.go", []mutant{
	{check: "what a list has is no later version, on its way", old: `f.table.listed(obj)`, broken: `f.table.seen(obj)`, test: "TestWhatAListHasIsNoLaterVersion/reduced on the way"},
}), at("internal/members/metadata.go", []mutant{
	{check: "isKindOf: lists named as their items", old: `gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")`, broken: `if gvk.Kind == c.kind.Kind { return false }; gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")`, test: "TestMetadataOfSandboxes"},
	{check: "isKindOf: lists of that kind only", old: `if !ok || !c.isKindOf(into) {`, broken: `if !ok {`, test: "TestListsOfOtherKinds"},
}))
