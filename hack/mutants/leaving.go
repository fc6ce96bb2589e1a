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
}), at("internal/release/stop.go", []mutant{
	{check: "release: bindings by floor go", old: `|-by-floor-[0-9]+`, broken: ``, test: "TestReleaseDeletesWhatIsInstalled", pkg: leavingTests},
	{check: "release: every policy goes", old: `|own-[a-z]+)`, broken: `)`, test: "TestReleaseDeletesWhatIsInstalled", pkg: leavingTests},
	{check: "release: what only looks like ours stays", old: `(-by-pool|-by-floor-[0-9]+)?$`, broken: `(-by-pool|-by-floor-[0-9]+)?`, test: "TestReleaseStopsFreshbindFirst", pkg: leavingTests},
	{check: "release: mutating policies go", old: `"MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy",`, broken: ``, test: "TestReleaseDeletesWhatIsInstalled", pkg: leavingTests},
}), at("controllers/anchor/anchor.go", []mutant{
	{check: "anchor: the configuration goes before its namespace", old: `return reconcile.Result{}, a.each(ctx, "deleting", a.drop, &ns)`, broken: `return reconcile.Result{}, nil`, test: "TestTheConfigurationGoesBeforeItsNamespace/ours"},
	{check: "anchor: another install's stays", old: `if len(o.OwnerReferences) == 0 || others {`, broken: `if others {`, test: "TestTheConfigurationGoesBeforeItsNamespace/nobody's"},
	{check: "anchor: what somebody owns too stays", old: `if len(o.OwnerReferences) == 0 || others {`, broken: `if len(o.OwnerReferences) == 0 || others && false {`, test: "TestTheConfigurationGoesBeforeItsNamespace/somebody's"},
	{check: "anchor: what came in its place stays", old: `client.Preconditions{UID: &uid}`, broken: `client.Preconditions{ResourceVersion: (*string)(&uid)}`, test: "TestOnlyWhatWasLookedAtIsDeleted"},
	{check: "anchor: a deletion that failed is tried again", old: `	return client.IgnoreNotFound(err)
`, broken: `	return nil
`, test: "TestADeletionThatFailsIsTriedAgain"},
}), at("internal/manager/leave.go", []mutant{
	{check: "leave: the configuration goes with the last", old: `if why == namespaceGoes {`, broken: `if false {`, test: "TestTheConfigurationGoesWithTheLast"},
}), at("cmd/freshbind/app/release.go", []mutant{
	{check: "release: only the configured namespaces", old: `namespaces = f.Namespaces
`, broken: `_ = f.Namespaces
`, test: "TestReleaseKeepsToTheConfiguredNamespaces"},
	{check: "release: a dry run deletes nothing", old: `Silent: o.dry == cli.ClientSide, DryRun: o.dry == cli.ServerSide,`, broken: `Silent: false, DryRun: false,`, test: "TestReleaseDryRun"},
}))

const leavingTests = "cmd/freshbind/app"
