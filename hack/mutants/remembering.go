package main

import "slices"

// remembering is what is kept from one write to the next.
var remembering = slices.Concat(at("internal/platform/agentsandbox/memo.go", []mutant{
	{check: "renderings: of one content", old: `if fields.Equal(r.spec, spec) {`, broken: `if true || fields.Equal(r.spec, spec) {`, test: "TestMemoTellsTemplatesApart/after a restore of etcd"},
	{check: "renderings: of copies", old: `spec = runtime.DeepCopyJSONValue(spec)`, broken: `_ = runtime.DeepCopyJSONValue(spec)`, test: "TestMemoKeepsNothingOfOthers"},
	{check: "renderings: what templates say is counted", old: `b.Bytes() + fields.Bytes(spec)`, broken: `b.Bytes()`, test: "TestMemoCountsAllThatItKeeps"},
	{check: "renderings: few of one template", old: `known = known[:min(len(known), memoEach)]`, broken: ``, test: "TestMemoIsBoundedInBytes"},
	{check: "lists of paths: long ones are not kept", old: `len(list) > revision.MaxPathBytes`, broken: `false`, test: "TestListsOfPathsAreParsedOnceAndBounded"},
}), at("internal/bounded/cache.go", []mutant{
	{check: "caches are bounded in bytes", old: `for c.bytes+bytes > c.limit {`, broken: `for false {`, test: "TestCache/the one not used for longest goes"},
	{check: "one entry takes not the place of all", old: `if bytes > c.limit/4 {`, broken: `if bytes > c.limit {`, test: "TestCache/what would take a quarter and more"},
	{check: "what goes is no longer counted", old: `c.bytes -= e.bytes`, broken: ``, test: "TestCache/removed"},
}), at("internal/fair/turns.go", []mutant{
	{check: "one namespace has no more than its share", old: `if t.taken[key] >= t.share {`, broken: `if false {`, test: "TestOneKeyHasNoMoreThanItsShare"},
	{check: "one namespace waits in a bounded line", old: `if len(t.waiting[key]) >= maxWaiting {`, broken: `if false {`, test: "TestOneKeyWaitsInABoundedLine"},
	{check: "a place given too late goes on", old: `t.mu.Unlock() t.give(key)`, broken: `t.mu.Unlock()`, test: "TestAPlaceGivenTooLateGoesOn"},
}), at("webhooks/entrance.go", []mutant{
	{check: "bodies that do not come are not waited for", old: `SetReadDeadline(time.Now().Add(readWithin))`, broken: `SetReadDeadline(time.Time{}.Add(0 * readWithin))`, test: "TestABodyThatDoesNotComeIsNotWaitedFor/a large one that stops"},
	{check: "bodies that do not come are counted", old: `errors.Is(err, os.ErrDeadlineExceeded)`, broken: `false && errors.Is(err, os.ErrDeadlineExceeded)`, test: "TestABodyThatDoesNotComeIsNotWaitedFor/a small one that stops"},
	{check: "the API server's certificate is asked for", old: `if !e.RequireCertificate {`, broken: `if true {`, test: "TestOnlyTheAPIServerIsAnswered/no certificate"},
	{check: "a certificate has to be verified", old: `len(r.TLS.VerifiedChains) == 0 {`, broken: `len(r.TLS.PeerCertificates) == 0 {
		return false
	}
	if len(r.TLS.VerifiedChains) == 0 {
		return true
	}
	if false {`, test: "TestOnlyTheAPIServerIsAnswered/one that nobody verified"},
	{check: "a certificate has to be of the name", old: `return len(e.Names) == 0 ||`, broken: `return true ||`, test: "TestOnlyTheAPIServerIsAnswered/one of the CA, another name"},
	{check: "large requests of one namespace are bounded", old: `|| e.held[namespace]+size > maxNamespaceBytes {`, broken: `{`, test: "TestOneNamespaceTakesNoRoomFromOthers"},
}), at("internal/revision/budget.go", []mutant{
	{check: "comparing ends at its budget", old: `b.spent > b.limit {`, broken: `b.spent < 0 {`, test: "TestBudget"},
	{check: "comparing ends at the deadline", old: `if b.err = b.stop(); b.err != nil {`, broken: `if false {`, test: "TestBudget"},
}), at("internal/revision/difference.go", []mutant{
	{check: "values are not shown", old: `return shownWords.Has(value) ||`, broken: `return true ||`, test: "TestNoValueIsShown"},
}), at("internal/freshness/judge.go", []mutant{
	{check: "what was not compared to its end is no verdict", old: `if err := b.Err(); err != nil { return found,`, broken: `if err := b.Err(); err != nil && false {
		return found,`, test: "TestAVerdictCostsABoundedAmountOfWork/many variables"},
}), at("internal/platform/agentsandbox/platform.go", []mutant{
	{check: "older revisions have the claim's env", old: `if claim != nil && r.Template != nil {`, broken: `if false {`, test: "TestSnapshotJudged/cold start with env, late"},
}), at("webhooks/guard.go", []mutant{
	{check: "ClaimHoldsAnother: as was remembered", old: `w.MayHold = g.RecentBinds.hints(ctx, w)`, broken: ``, test: "TestGuardLooksWhereTheClaimMayHaveASandbox"},
	{check: "what passes is remembered", old: `g.RecentBinds.note(w)`, broken: ``, test: "TestGuardRemembersWhatItLetsPass/allowed"},
	{check: "the self-test's key holds in dry runs only", old: `dryRun && asked {`, broken: `asked {`, test: "TestGuardTakesOnlyDryRunsForSelfTests/a write with the key"},
	{check: "a dry run is no self-test by itself", old: `dryRun && asked {`, broken: `dryRun && (asked || !asked) {`, test: "TestGuardTakesOnlyDryRunsForSelfTests/a dry run without the key"},
}), at("internal/liveread/byuid.go", []mutant{
	{check: "one namespace lists once at a time", old: `fair.NewTurns(listsAtOnce, 1)`, broken: `fair.NewTurns(listsAtOnce, listsAtOnce)`, test: "TestOneNamespaceHasOneListAtOnce"},
}), at("internal/liveread/errors.go", []mutant{
	{check: "a 404 of a load balancer is no absence", old: `return !slices.ContainsFunc(details.Causes,`, broken: `return true || !slices.ContainsFunc(details.Causes,`, test: "TestAbsentOnlyWhenTheAnswerNamesTheObject/no answer of ours"},
}), at("internal/freshness/judge.go", []mutant{
	{check: "births of a former pool are let be", old: `s.Pool.UID != s.Member.Controller.UID || s.Pool.Deleting ||`, broken: `s.Pool.Deleting ||`, test: "TestJudgeOtherOperations/birth in a pool that is another one now"},
}), at("controllers/history/controller.go", []mutant{
	{check: "history: a deleted revision in force is recorded again", old: `return reconcile.Result{}, r.recordInForce(ctx, req.NamespacedName)`, broken: `return reconcile.Result{}, nil`, test: "TestADeletedRevisionInForceIsRecordedAgain/the template is there"},
	{check: "history: the latest ends as the newest", old: `i < len(waiting)-1 || len(errs) == 0 {`, broken: `i >= 0 {`, test: "TestARevisionThatCannotBeRecordedBlocksNoOther"},
	{check: "history: one that fails blocks no other", old: `errs = append(errs, err)`, broken: `return reconcile.Result{}, err`, test: "TestARevisionThatCannotBeRecordedBlocksNoOther"},
	{check: "history: in force again is the newest", old: `if cr.Revision == newest {`, broken: `if true {`, test: "TestARevisionInForceAgainIsTheNewest"},
	{check: "history: metadata is no version", old: `e.ObjectOld.GetGeneration() == e.ObjectNew.GetGeneration() &&`, broken: `false &&`, test: "TestWhatAWatchDeliversAsAVersion/a label"},
	{check: "history: a restored generation is another version", old: `&& reflect.DeepEqual(specOf(e.ObjectOld), specOf(e.ObjectNew))`, broken: `&& (true || reflect.DeepEqual(specOf(e.ObjectOld), specOf(e.ObjectNew)))`, test: "TestWhatAWatchDeliversAsAVersion/restored and edited"},
	{check: "history: what the platform makes is not recorded", old: `return owner != nil && schema.FromAPIVersionAndKind`, broken: `return false && schema.FromAPIVersionAndKind`, test: "TestWhatThePlatformMakesIsNotRecorded/of a snapshot"},
	{check: "history: it follows the mode", old: `if same != nil && hasValues(same) == keep {`, broken: `if same != nil {`, test: "TestHistoryFollowsTheMode"},
}), at("controllers/history/store.go", []mutant{
	{check: "history: namesakes have names of their own", old: `if sharedKind != "" {`, broken: `if false {`, test: "TestNamesakesHaveEachTheirHistory"},
	{check: "history: a revision is of its owner's kind", old: `of := metav1.GetControllerOfNoCopy(cr); of != nil {`, broken: `of := metav1.GetControllerOfNoCopy(cr); of != nil && false {`, test: "TestARevisionIsReadAsOneOfItsKind"},
}), at("controllers/history/write.go", []mutant{
	{check: "history: what others named stays", old: `if !sameTemplateName(&found, cr) {`, broken: `if false {`, test: "TestNamesOfOthersAreLeftAlone"},
	{check: "history: the place of the template before is taken", old: `case !apierrors.IsAlreadyExists(err):`, broken: `case apierrors.IsAlreadyExists(err):
		return nil
	default:`, test: "TestARevisionOfTheTemplateBeforeIsTaken"},
	{check: "history: no values stay in mode audit", old: `if !hasValues(old) {`, broken: `if true {`, test: "TestHistoryFollowsTheMode"},
}), at("controllers/history/values.go", []mutant{
	{check: "history: digests where they are asked for", old: `if v.never {`, broken: `if false {`, test: "TestValuesAreKeptWhereBindsAreEnforced/digests are asked for all the same"},
	{check: "history: no values in mode audit", old: `if kept, err := v.byPool(ctx, pool, template); kept || err != nil {
			return kept, err
		}
	}
	return false, nil`, broken: `if kept, err := v.byPool(ctx, pool, template); kept || err != nil {
			return kept, err
		}
	}
	return true, nil`, test: "TestValuesAreKeptWhereBindsAreEnforced/audited"},
	{check: "history: a late cache copies nothing", old: `kept, err := v.enforced(ctx, pool.GetNamespace(), pool.GetAnnotations()`, broken: `kept, err := v.enforced(ctx, pool.GetNamespace(), cached.GetAnnotations()`, test: "TestValuesAreKeptWhereBindsAreEnforced/a pool that enforced until now"},
	{check: "history: a namespace's labels say its mode", old: `if maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {`, broken: `if maps.Equal(e.ObjectOld.GetLabels(), e.ObjectOld.GetLabels()) {`, test: "TestWhatAsksForTemplatesAgain/a namespace's mode"},
}), at("controllers/history/pending.go", []mutant{
	{check: "history: what waits is bounded in number", old: `if len(list) == pendingEach {`, broken: `if false {`, test: "TestPendingIsBounded/many small ones of one"},
	{check: "history: what waits is bounded in bytes", old: `for p.bytes > pendingBytes {`, broken: `for false {`, test: "TestPendingIsBounded/large ones of one"},
	{check: "history: who holds the most loses a version", old: `p.dropOldest(p.largest())`, broken: `p.dropOldest(key)`, test: "TestOneNamespaceTakesNoVersionsFromOthers"},
	{check: "history: namespaces are compared first", old: `cmp.Compare(namespaces[a.Namespace], namespaces[b.Namespace]), `, broken: ``, test: "TestOneNamespaceTakesNoVersionsFromOthers"},
}), at("controllers/history/reader.go", []mutant{
	{check: "history: former lives are of one kind", old: `key := lifeOf{template.GroupVersionKind().GroupKind(), `, broken: `key := lifeOf{schema.GroupKind{}, `, test: "TestFormerLivesAreOfOneKind"},
	{check: "history: former lives are remembered", old: `return append(out, r.remember(template, out)...), nil`, broken: `r.remember(template, out)
	return out, nil`, test: "TestFormerLivesOfATemplateAreRemembered"},
}))

// connecting is what the process gives its handlers.
var connecting = at("internal/manager/assemble.go", []mutant{
	{check: "guards: know what claims were given", old: `RecentBinds: binds, `, broken: ``, test: "TestEveryGuardHasWhatItNeeds"},
	{check: "guards: limit retries", old: `retries := webhooks.NewRetryLimiter(clock.RealClock{})`, broken: `var retries *webhooks.RetryLimiter`, test: "TestEveryGuardHasWhatItNeeds"},
	{check: "guards: tell which pool was skipped", old: `PoolSkipped: to.poolSkipped, `, broken: ``, test: "TestEveryGuardHasWhatItNeeds"},
	{check: "guards: fail as their webhook does", old: `FailOpen: hook.FailOpen,`, broken: ``, test: "TestEveryGuardHasWhatItNeeds"},
	{check: "guards: every one is asked", old: `hooks := append(webhooks.Judged(), webhooks.BirthHook)`, broken: `hooks := webhooks.Judged()`, test: "TestEveryGuardHasWhatItNeeds"},
})
