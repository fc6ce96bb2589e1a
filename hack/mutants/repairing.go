package main

import "slices"

// repairing is what is rewritten, and what is left as somebody made it.
var repairing = slices.Concat(at("internal/freshness/repair.go", []mutant{
	{check: "repair: cold starts only", old: `if s.Operation != ColdStart && !birth {`, broken: `if false && birth {`, test: "TestRepairOf/a birth"},
	{check: "repair: births that nobody undoes", old: `s.Pool != nil && s.Pool.Replenishes`, broken: `s.Pool != nil`, test: "TestRepairOf/a birth"},
	{check: "repair: no bind", old: `birth := s.Operation == Birth && s.Pool`, broken: `birth := s.Pool`, test: "TestRepairOf/a bind to one nobody undoes"},
	{check: "repair: what is allowed stays", old: `if v.Allowed || v.Reason != StaleRevision {`, broken: `if v.Reason != StaleRevision {`, test: "TestRepairOf/in a pool that serves stale ones"},
	{check: "repair: a claim's own fault stays", old: `if v.Allowed || v.Reason != StaleRevision {`, broken: `if v.Allowed || s.Template == nil {`, test: "TestRepairOf/by a claim that has one"},
	{check: "repair: somebody's edit stays", old: `revision.PathSet{}, 1) == 0`, broken: `s.Injected, 1) == 0`, test: "TestRepairOf/older, and edited where the pool allows for it"},
	{check: "repair: what is unknown stays", old: `revision.PathSet{}, 1) == 0`, broken: `revision.PathSet{}, 9) < 9`, test: "TestRepairOf/older, and edited where the pool allows for it"},
	{check: "repair: as it was rendered", old: `To: v.Expected, Plain: true}`, broken: `To: v.Expected}`, test: "TestRepairOf/without secure defaults"},
}), at("internal/platform/agentsandbox/repair.go", []mutant{
	{check: "repair: off", old: `if p.RepairOff || `, broken: `if `, test: "TestWhatIsNotRepaired/switched off"},
	{check: "repair: off for a pool", old: `settings.Pool(objs.pool.GetAnnotations()).RefusesRepair()`, broken: `false`, test: "TestWhatIsNotRepaired/switched off for the pool"},
	{check: "repair: with the claim's own values", old: `coldSpec(objs.template, objs.claim)`, broken: `coldSpec(objs.template, &unstructured.Unstructured{})`, test: "TestRepairKeepsTheClaims"},
	{check: "repair: without secure defaults where there were none", old: `case found.Plain:`, broken: `case false:`, test: "TestRepairWithoutSecureDefaults"},
	{check: "repair: volumes, too", old: `{"volumeClaimTemplates"}, `, broken: ``, test: "TestRepairs/a volume grown"},
	{check: "repair: the service, too", old: `, {"service"}}`, broken: `}`, test: "TestRepairs/a service added"},
	{check: "repair: the pod's metadata is upstream's", old: `{"podTemplate", "spec"}, {"vol`, broken: `{"podTemplate"}, {"vol`, test: "TestRepairs/metadata of the pod's"},
	{check: "repair: a member is no older one to upstream", old: `Value: NameHash(settings.Domain + "/" + revision)`, broken: `Value: str(sandbox.Object, at...)`, test: "TestBirthsAreRepaired"},
	{check: "repair: a member gets no claim's values", old: `case f.Operation == freshness.Birth:`, broken: `case false:`, test: "TestBirthsAreRepaired"},
}), at("internal/platform/repair.go", []mutant{
	{check: "repair: a note of what it is not", old: `|| !ok || to != hash || !older {`, broken: `|| !ok || to == "" || !older {`, pkg: "internal/platform/agentsandbox", test: "TestForgedNotesOfRepairs/to what it is not"},
	{check: "repair: a note from nowhere", old: `|| !ok || to != hash || !older {`, broken: `|| !ok || to != hash || older && false {`, pkg: "internal/platform/agentsandbox", test: "TestForgedNotesOfRepairs/from what never was"},
	{check: "repair: a note on a member", old: `if !mayBe || !ok`, broken: `if !ok || mayBe && false`, pkg: "internal/platform/agentsandbox", test: "TestForgedNotesOfRepairs/on a member"},
}), at("internal/platform/kruise/repair.go", []mutant{
	{check: "kruise: repair: off", old: `if p.RepairOff || `, broken: `if `, test: "TestWhatIsNotRepaired/switched off"},
	{check: "kruise: repair: off for a pool", old: `settings.Pool(objs.set.GetAnnotations()).RefusesRepair()`, broken: `false`, test: "TestWhatIsNotRepaired/switched off for the pool"},
	{check: "kruise: repair: a reference by a reference only", old: ` || objs.refers() != refers {`, broken: ` {`, test: "TestWhatIsNotRepaired/the pool refers to a template now"},
	{check: "kruise: repair: what has no Pod", old: `if hasPod == refers || err`, broken: `if hasPod && refers || err`, test: "TestWhatIsNotRepaired/it has no Pod"},
	{check: "kruise: repair: the reference, too", old: `{"templateRef"}, `, broken: ``, test: "TestRepairsOfReferences/for uid-c"},
	{check: "kruise: repair: by what a reference says itself", old: `f.Member.Template, f.Member.Content, f.Member.Proposed, f.Known = ""`, broken: `f.Member.Template, f.Member.Content, f.Member.Proposed, f.Known = f.Member.Template`, test: "TestRepairsOfReferences/for uid-c"},
	{check: "kruise: repair: with the claim's own values", old: `carried(objs.set, sandbox, objs.asksCold())`, broken: `carried(objs.set, sandbox, ask{})`, test: "TestRepairs/what the claim asks for stays for uid-c"},
	{check: "kruise: repair: with no other values", old: `carried(objs.set, sandbox, objs.asksCold())`, broken: `carried(objs.set, sandbox, ask{unspecified: true})`, test: "TestRepairs/an image for uid-c"},
	{check: "kruise: repair: volumes, too", old: `{"volumeClaimTemplates"}, `, broken: ``, test: "TestRepairs/a volume added for uid-c"},
	{check: "kruise: repair: contents, too", old: `{"persistentContents"}, `, broken: ``, test: "TestRepairs/contents for uid-c"},
	{check: "kruise: repair: runtimes, too", old: `{"runtimes"}, `, broken: ``, test: "TestRepairs/runtimes for uid-c"},
	{check: "kruise: repair: pauses, too", old: `, {"pauseStrategy"}}`, broken: `}`, test: "TestRepairs/how it pauses for uid-c"},
	{check: "kruise: repair: the Pod's metadata stays", old: `{"template", "spec"}, {"templateRef"}`, broken: `{"template"}, {"templateRef"}`, test: "TestRepairs/metadata of the Pod's for uid-c"},
}), at("internal/platform/kruise/platform.go", []mutant{
	{check: "kruise: repair: never a birth", old: `AdmitAny: annotations.AdmitsAny(), Restarted`, broken: `Replenishes: true, AdmitAny: annotations.AdmitsAny(), Restarted`, test: "TestForgedNotesOfRepairs/on a member"},
	{check: "kruise: repair: the claim is whose UID it is", old: `	if poolOf(sandbox).UID == "" {
		w.Operation, w.Claim = freshness.ColdStart, claimOf(sandbox)`, broken: `	if poolOf(sandbox).UID == "" {
		w.Operation, w.Claim = freshness.ColdStart, freshness.Owner{}`, test: "TestWhatIsNotRepaired/the claim is another"},
}), at("internal/platform/agentsandbox/stamp.go", []mutant{
	{check: "a Pod's stamp: its Sandbox's, if that is as it was stamped", old: `sandbox.GetGeneration() != 1`, broken: `false`, test: "TestReadsForThePodOfAStampedSandbox/the Sandbox edited"},
	{check: "a Pod's stamp: its Sandbox's, if it says what that does", old: `if !as {`, broken: `if !as && err != nil {`, test: "TestReadsForThePodOfAStampedSandbox/something else"},
	{check: "a Pod's stamp: nothing more is read than its Sandbox", old: `err != nil || stamp != nil`, broken: `err != nil`, test: "TestReadsForThePodOfAStampedSandbox/what it says"},
	{check: "bound when created: cold starts only", old: `BoundTo: f.ClaimRef.UID`, broken: `BoundTo: ""`, test: "TestAColdStartIsBoundWhenItIsCreated/a cold start"},
	{check: "refusal cache: not what runs in a bare pod", old: `if namesBarePod(sandbox) {`, broken: `if false {`, test: "TestRefusalsArePredicted/unknown, for a bare pod"},
	{check: "refusal cache: only what is refused", old: `if err == nil && !v.Allowed {`, broken: `if err == nil {`, test: "TestRefusalsArePredicted/current"},
	{check: "refusal cache: not what is repaired", old: `if err != nil || stamp.Repair != nil || f.Op`, broken: `if err != nil || f.Op`, test: "TestRefusalsArePredicted/repaired"},
	{check: "refusal cache: the content counts", old: `besides(w), m, content)`, broken: `besides(w), m, len(content))`, test: "TestQuestions"},
	{check: "refusal cache: the claim counts", old: `w.Claim, besides(w), m,`, broken: `besides(w), m.Name,`, test: "TestQuestions"},
	{check: "refusal cache: what the API server adds does not count", old: `m.UID, m.Generation, m.Created = "", 0, time.Time{}`, broken: `m.Created = time.Time{}`, test: "TestRefusalsArePredicted/unknown"},
}), at("webhooks/refusalcache.go", []mutant{
	{check: "refusal cache: once", old: `f.refusals.Remove(question)`, broken: ``, test: "TestRefusalCache/a second time"},
	{check: "refusal cache: for a moment", old: `known && f.clock.Since(r.at) < refusalKeptFor`, broken: `known`, test: "TestRefusalCache/too late"},
	{check: "refusal cache: refusals only", old: `if f == nil || v.Allowed {`, broken: `if f == nil {`, test: "TestRefusalCache/what is allowed"},
}), at("webhooks/existingnames.go", []mutant{
	{check: "what exists: it is there now", old: `return err == nil && obj != nil`, broken: `return true`, test: "TestStampAnswersThatASandboxExists/gone"},
	{check: "what exists: could be read", old: `return err == nil && obj != nil`, broken: `return err != nil || obj != nil`, test: "TestStampAnswersThatASandboxExists/unreadable"},
	{check: "what exists: what is gone is forgotten", old: `e.names.Remove(key)`, broken: ``, test: "TestStampAnswersThatASandboxExists/gone"},
	{check: "what exists: names that come again", old: `|| w.New.GetGenerateName() != ""`, broken: ``, test: "TestGuardRemembersWhatMayExist/a generated name"},
	{check: "what exists: sandboxes of claims", old: `w.Operation != freshness.ColdStart ||`, broken: ``, test: "TestGuardRemembersWhatMayExist/a bind"},
}), at("webhooks/guard.go", []mutant{
	{check: "what exists: in mode enforce only", old: `if o.mode == settings.Enforce { g.Existing.note(w)`, broken: `if true {
		g.Existing.note(w)`, test: "TestGuardRemembersWhatMayExist/audited"},
}), at("webhooks/stamp.go", []mutant{
	{check: "what exists: not where nothing is denied", old: `s.Modes.lastKnown(ctx, req.Namespace) == settings.Enforce &&`, broken: `true &&`, test: "TestStampAnswersThatASandboxExists/audit"},
	{check: "what exists: no births", old: `return !s.Birth &&`, broken: `return`, test: "TestStampAnswersThatASandboxExists/a birth"},
	{check: "repair: in mode enforce only", old: `modeErr != nil || mode != settings.Enforce {
		return admission.Allowed("")`, broken: `modeErr != nil && mode != settings.Enforce {
		return admission.Allowed("")`, test: "TestStamp/to be repaired, audit"},
	{check: "repair: fields that are to go", old: `if f.Value == nil {`, broken: `if false {`, test: "TestStamp/repaired"},
	{check: "repair: missed, where only the revision is known", old: `stamp.Hash = ""`, broken: ``, test: "TestStamp/named, and no repair found"},
	{check: "repair: the note is not the writer's", old: `, settings.RepairedKey: stamp.Repaired,`, broken: `,`, test: "TestStamp/never repaired"},
}), at("webhooks/guard.go", []mutant{
	{check: "repair: missed, tried again", old: `(o.err != nil || missedRepair(w, o.Verdict))`, broken: `o.err != nil`, test: "TestWhoseMissedRepairIsTriedAgain/stale"},
	{check: "repair: seen, and not to be repaired", old: `w.New.GetLabels()[settings.StampKey] == ""`, broken: `true`, test: "TestWhoseMissedRepairIsTriedAgain/seen"},
	{check: "repair: missed, and let pass", old: `v.Reason == freshness.StaleRevision && !v.Allowed &&`, broken: `v.Reason == freshness.StaleRevision &&`, test: "TestWhoseMissedRepairIsTriedAgain/stale and let pass"},
	{check: "repair: missed, with another fault", old: `v.Reason == freshness.StaleRevision && !v.Allowed &&`, broken: `!v.Allowed &&`, test: "TestWhoseMissedRepairIsTriedAgain/has another"},
	{check: "repair: of cold starts", old: `return w.Operation == freshness.ColdStart && v.Reason`, broken: `return v.Reason`, test: "TestWhoseMissedRepairIsTriedAgain/a bind"},
	{check: "repair: missed, in mode enforce", old: `return o.mode == settings.Enforce && w.Claim.Name != "" && (`, broken: `return w.Claim.Name != "" && (`, test: "TestWhoseMissedRepairIsTriedAgain/audited"},
	{check: "repair: told once it is let through", old: `if o.repaired != "" && w.Claim.Name != "" {`, broken: `if false {`, test: "TestWhoIsToldOfARepair/let through"},
	{check: "repair: not told in mode audit", old: `w.Operation == freshness.Birth) && o.mode == settings.Enforce {`, broken: `w.Operation == freshness.Birth) {`, test: "TestWhoIsToldOfARepair/mode audit"},
	{check: "repair: only what is a note", old: `platform.IsRepaired(note) {`, broken: `true {`, test: "TestWhoIsToldOfARepair/of nobody's note"},
	{check: "unheard: told of what is enforced only", old: `		g.Existing.note(w)
		if w.Claim`, broken: `		g.Existing.note(w)
	}
	{
		if w.Claim`, test: "TestWhoIsToldThatAClaimGetsASandbox/an audited bind"},
	{check: "unheard: told of claims only", old: `if w.Claim.Name != "" && g.Allowed != nil {`, broken: `if g.Allowed != nil {`, test: "TestWhoIsToldThatAClaimGetsASandbox/a birth"},
	{check: "unheard: told", old: `g.Allowed(w.Judged().GetNamespace(), w.Claim.Name, types.UID(w.Claim.UID))`, broken: `_ = types.UID("")`, test: "TestWhoIsToldThatAClaimGetsASandbox/a bind"},
}), at("controllers/waiting/unheard.go", []mutant{
	{check: "unheard: who has a sandbox", old: `if len(u.holds(ctx, a.Namespace, string(a.uid))) > 0 {`, broken: `if false {`, test: "TestWhomAnAnswerWasLostFor/the cache shows a sandbox"},
	{check: "unheard: another claim of that name", old: `claim.GetUID() != a.uid ||`, broken: ``, test: "TestWhomAnAnswerWasLostFor/another one of that name"},
	{check: "unheard: who has one that no cache shows", old: ` || !u.claims.waiting(claim) {`, broken: ` {`, test: "TestWhomAnAnswerWasLostFor/it has one that no cache shows"},
	{check: "unheard: who waits for something else", old: `if !failedCall(claim) {`, broken: `if false {`, test: "TestWhomAnAnswerWasLostFor/no quota"},
	{check: "unheard: webhooks of others", old: `"[^"]+\.freshbind\.dev"`, broken: `"`, test: "TestWhomAnAnswerWasLostFor/somebody else's webhook"},
	{check: "unheard: woken", old: `u.claims.Note(a.Namespace, a.Name)`, broken: ``, test: "TestWhomAnAnswerWasLostFor/our webhook gave no answer"},
	{check: "unheard: looked at again", old: `reconcile.Result{RequeueAfter: unheardAgain}`, broken: `reconcile.Result{}`, test: "TestWhomAnAnswerWasLostFor/our webhook gave no answer"},
	{check: "unheard: looked at twice", old: `u.hints.Note(a, unheardAgain)`, broken: ``, test: "TestWhomAnAnswerWasLostFor/nothing said"},
	{check: "unheard: not three times", old: `if !a.again {`, broken: `if true {`, test: "TestWhomAnAnswerWasLostFor/nothing said, the second time"},
	{check: "unheard: not at once", old: `uid: uid}, heardWithin)`, broken: `uid: uid}, 0)`, test: "TestAnAnswerHasTimeToBeHeard"},
}), at("webhooks/coldstarts.go", []mutant{
	{check: "repair: a wrong one is counted", old: `c.repaired(w, o, repairRefused)`, broken: ``, test: "TestRepairsAreCounted/refused, then let"},
	{check: "repair: only what was repaired is counted", old: `if o.repaired != "" {`, broken: `if true {`, test: "TestRepairsAreCounted/refused, and not touched"},
}))
