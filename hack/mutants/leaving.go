package main

import "slices"

// leaving is what stays when Freshbind goes.
var leaving = slices.Concat(at("internal/release/decide.go", []mutant{
	{check: "release: a hidden member is shown", old: `return hidden, uid`, broken: `return foreign, uid`, test: "TestReleaseOfEachObject/hidden", pkg: leavingTests},
	{check: "release: nobody's sandbox is left alone", old: `d.Controller.Kind != freshness.OwnedByPool`, broken: `false && d.Controller.Kind != freshness.OwnedByPool`, test: "TestReleaseOfEachObject/nobody's", pkg: leavingTests},
	{check: "release: what is being deleted is left alone", old: `member.GetDeletionTimestamp() != nil`, broken: `false`, test: "TestReleaseOfEachObject/being_deleted", pkg: leavingTests},
	{check: "release: a member that is not ready is not offered", old: `case d.Shown && d.ReadySince.IsZero():`, broken: `case false:`, test: "TestReleaseOfEachObject/starting", pkg: leavingTests},
	{check: "release: what the user says to a pool stays", old: `keysOf(pool.GetAnnotations(), settings.IsOutput)`, broken: `keysOf(pool.GetAnnotations(), nil)`, test: "TestReleaseOfEachObject", pkg: leavingTests},
}), at("internal/release/release.go", []mutant{
	{check: "release: marks go", old: `if err := r.unmark(ctx, sandbox, marksOf(sandbox)); err != nil {`, broken: `if err := r.unmark(ctx, sandbox, marks{}); err != nil {`, test: "TestReleaseOfEachObject", pkg: leavingTests},
	{check: "release: a member that was shown is not offered once more", old: `is != shownReady || done ||`, broken: `is == foreign || done && false ||`, test: "TestReleaseOfEachObject", pkg: leavingTests},
	{check: "release: what fails for one platform holds up no other", old: `if errs[i] == nil {`, broken: `if errors.Join(errs...) == nil {`, test: "TestReleaseOfTwoPlatforms/the_first_cannot_list", pkg: "internal/cli"},
}), at("cmd/freshbind/app/platforms.go", []mutant{
	{check: "release: every platform is released", old: `range commandedPlatforms() {`, broken: `range commandedPlatforms()[:1] {`, test: "TestReleaseLooksAtEveryPlatform"},
}), at("cmd/freshbind/app/targets.go", []mutant{
	{check: "a kind of another platform is no object of this one", old: `if wordAmong(kinds, s.kind) == "" {`, broken: `if false {`, test: "TestCLIUsage/rollout:_another_platform's"},
}), at("internal/release/stop.go", []mutant{
	{check: "release: bindings by floor go", old: `|-by-floor-[0-9]+`, broken: ``, test: "TestReleaseDeletesWhatIsInstalled", pkg: leavingTests},
	{check: "release: every policy goes", old: `|own-[a-z]+)`, broken: `)`, test: "TestReleaseDeletesWhatIsInstalled", pkg: leavingTests},
	{check: "release: what only looks like ours stays", old: `(-by-pool|-by-floor-[0-9]+)?$`, broken: `(-by-pool|-by-floor-[0-9]+)?`, test: "TestReleaseStopsFreshbindFirst", pkg: leavingTests},
	{check: "release: mutating policies go", old: `"MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy",`, broken: ``, test: "TestReleaseDeletesWhatIsInstalled", pkg: leavingTests},
}), at("controllers/anchor/anchor.go", []mutant{
	{check: "anchor: the configuration goes before its namespace", old: `if ns.DeletionTimestamp != nil {`, broken: `if false {`, test: "TestTheConfigurationGoesBeforeItsNamespace/ours"},
	{check: "anchor: what another install serves stays", old: `if at == elsewhere {`, broken: `if false {`, test: "TestTheConfigurationGoesBeforeItsNamespace/taken_over_by_another"},
	{check: "anchor: what was just installed goes", old: `len(o.OwnerReferences) == 0 && at != here {`, broken: `len(o.OwnerReferences) == 0 {`, test: "TestTheConfigurationGoesBeforeItsNamespace/not_owned_yet"},
	{check: "anchor: what nobody says is ours stays", old: `len(o.OwnerReferences) == 0 && at != here {`, broken: `false {`, test: "TestTheConfigurationGoesBeforeItsNamespace/not_owned,_called_by_URL"},
	{check: "anchor: what somebody owns too stays", old: `if others || len`, broken: `if others && false || len`, test: "TestTheConfigurationGoesBeforeItsNamespace/somebody's"},
	{check: "anchor: what came in its place stays", old: `client.Preconditions{UID: &o.UID, `, broken: `client.Preconditions{`, test: "TestOnlyWhatWasLookedAtIsDeleted"},
	{check: "anchor: what has another owner by now stays", old: `, ResourceVersion: &o.ResourceVersion}`, broken: `}`, test: "TestOnlyWhatWasLookedAtIsDeleted"},
	{check: "anchor: a failure holds up no other object", old: `errs = append(errs, fmt.Errorf("%s %s %s: %w", doing, o.Kind, o.Name, err))`, broken: `return fmt.Errorf("%s %s %s: %w", doing, o.Kind, o.Name, err)`, test: "TestADeletionThatFailsHoldsUpNoOther"},
	{check: "anchor: a failed deletion is tried again at once", old: `return reconcile.Result{RequeueAfter: deletedInterval}, err`, broken: `_ = err; return reconcile.Result{RequeueAfter: deletedInterval}, nil`, test: "TestADeletionThatFailsHoldsUpNoOther"},
	{check: "anchor: a namespace that cannot be read is read again", old: `return reconcile.Result{}, client.IgnoreNotFound(err)`, broken: `return reconcile.Result{}, nil`, test: "TestWhatCannotBeReadIsTriedAgain/the_namespace"},
	{check: "anchor: webhooks that cannot be read are read again", old: `client.IgnoreNotFound(err) != nil {`, broken: `client.IgnoreNotFound(err) != nil && false {`, test: "TestWhatCannotBeReadIsTriedAgain/the_webhooks"},
	{check: "anchor: floors are anchored", old: `objects = append(objects, c)`, broken: `_ = c`, test: "TestTheNamespaceOwnsWhatIsThere"},
	{check: "anchor: policies are anchored", old: `range append(objects, webhooks.NewPolicies(admission, scope).Objects()...) {`, broken: `range objects {`, test: "TestTheNamespaceOwnsWhatIsThere"},
	{check: "anchor: a failure is told once", old: `&& err.Error() != a.failing {`, broken: `{`, test: "TestAnAnchorThatFailsIsToldOnce"},
	{check: "anchor: the next failure is told", old: `a.failing = ""`, broken: ``, test: "TestAnAnchorThatFailsIsToldOnce"},
	{check: "anchor: no other namespace becomes an owner", old: `return o.GetName() == namespace })`, broken: `return true })`, test: "TestWhichNamespacesAreLookedAt"},
}), at("internal/manager/manager.go", []mutant{
	{check: "leave: after an end that was not in order", old: `if err != nil && ctx.Err() == nil {`, broken: `if err != nil {`, test: "TestWhenItLeaves/told to stop, and no leader now"},
	{check: "leave: not for a restart", old: `if err != nil && ctx.Err() == nil {`, broken: `if false {`, test: "TestWhenItLeaves/no leader any more"},
}), at("internal/manager/leave.go", []mutant{
	{check: "leave: the configuration goes with the last", old: `if why == namespaceGoes {`, broken: `if false {`, test: "TestTheConfigurationGoesWithTheLast"},
	{check: "leave: what stays is told", old: `errs = append(errs, o.dropConfiguration(ctx, c, namespace, platforms))`, broken: `_ = o.dropConfiguration(ctx, c, namespace, platforms)`, test: "TestTheConfigurationGoesWithTheLast/cannot_be_deleted"},
}), at("cmd/freshbind/app/release.go", []mutant{
	{check: "release: only the configured namespaces", old: `namespaces = f.Namespaces
`, broken: `_ = f.Namespaces
`, test: "TestReleaseKeepsToTheConfiguredNamespaces"},
	{check: "release: a dry run deletes nothing", old: `Silent: o.dry == cli.ClientSide, DryRun: o.dry == cli.ServerSide,`, broken: `Silent: false, DryRun: false,`, test: "TestReleaseDryRun"},
}))

const leavingTests = "cmd/freshbind/app"
