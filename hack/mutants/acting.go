package main

import "slices"

// answering is what becomes of a verdict.
var answering = slices.Concat(at("internal/platform/agentsandbox/answers.go", []mutant{
	{check: "a member at fault is answered 404", old: `case f == freshness.FaultMember:`, broken: `case false:`, test: "TestAnswer/bind, the member's fault"},
	{check: "a claim at fault is answered 409", old: `case f == freshness.FaultMember:`, broken: `case true:`, test: "TestAnswer/bind, the claim's fault"},
	{check: "a cold start is answered AlreadyExists", old: `return http.StatusConflict, metav1.StatusReasonAlreadyExists`, broken: `return http.StatusConflict, metav1.StatusReasonConflict`, test: "TestAnswer/cold start, whatever"},
	{check: "a birth is answered 403", old: `case op == freshness.Birth, `, broken: `case `, test: "TestAnswer/birth of a stale member"},
}), at("webhooks/mode.go", []mutant{
	{check: "undecided: what a member says it was made for", old: `settings.Mode(asked) == settings.Enforce || m.Pools == nil {`, broken: `m.Pools == nil {`, test: "TestGuard/undecided, the member says so"},
	{check: "undecided: a member switches no pool off", old: `settings.Mode(asked) == settings.Enforce || m.Pools == nil {`, broken: `asked != "" || m.Pools == nil {`, test: "TestGuard/undecided, the pool enforces, whatever the member says"},
	{check: "undecided: where no pool enforces it passes", old: `return settings.Pool(pool.GetAnnotations()).Enforces()`, broken: `return true`, test: "TestGuard/undecided, the pool audits"},
	{check: "waiting: a pool makes claims wait, too", old: `	return m.poolEnforces(ctx, namespace)`, broken: `	return false, nil`, test: "TestClaimsWaitWhereAnyPoolEnforces/a pool does"},
}), at("webhooks/guard.go", []mutant{
	{check: "mode audit denies nothing", old: `resp := admission.Allowed("")
	switch {
	case o.mode != settings.Enforce:`, broken: `resp := admission.Allowed("")
	switch {
	case false:`, test: "TestGuard/audited, not denied"},
	{check: "undecided: where a pool enforces it is refused", old: `asked = g.Modes.mayBeAsked(ctx, w.Judged())`, broken: `asked = ""`, test: "TestGuard/undecided, the pool enforces"},
	{check: "what is judged is asked of its own pool only", old: `	if err != nil {
		asked = g.Modes.mayBeAsked`, broken: `	if true {
		asked = g.Modes.mayBeAsked`, test: "TestGuard/judged, another pool enforces"},
	{check: "mode audit deletes and hides nothing", old: `if o.Allowed || o.mode != settings.Enforce {`, broken: `if o.Allowed {`, test: "TestGuard/audited, not denied"},
	{check: "mode enforce denies", old: `resp = g.denied(w, o)`, broken: ``, test: "TestGuard/the member's fault"},
	{check: "undecided is an error", old: `case o.err != nil && g.FailOpen:`, broken: `case o.err != nil:`, test: "TestGuard/undecided"},
	{check: "a dry run leaves nothing behind", old: `if !dryRun {`, broken: `if true {`, test: "TestGuard/dry run leaves nothing behind"},
	{check: "the controllers are told of a refusal", old: `g.Observer.Refused(w.Old, o.Reason.Fault())`, broken: ``, test: "TestGuard/the claim's fault"},
	{check: "the owners are told of a refusal", old: `g.Observer.Denied(Denial{Write: denied, Verdict: o.Verdict, Pool: o.pool, Mode: o.mode})`, broken: ``, test: "TestGuard/audited, not denied"},
	{check: "OwnerMismatch: the claim that a UID is of is told", old: `cmp.Or(w.Claim.Name, o.claim)`, broken: `cmp.Or(w.Claim.Name)`, test: "TestGuardTellsTheClaimThatAnotherKindPretendsToBe"},
	{check: "a Pod that left its pool is looked at once more", old: `if o.mode == settings.Enforce && w.Operation == freshness.Release && !o.byPerson && g.Released != nil {`, broken: `if false {`, test: "TestGuardOfBarePods/release"},
	{check: "not in mode audit", old: `if o.mode == settings.Enforce && w.Operation == freshness.Release && !o.byPerson && g.Released != nil {`, broken: `if w.Operation == freshness.Release && !o.byPerson && g.Released != nil {`, test: "TestGuardOfBarePods/release, audited"},
	{check: "a Pod that a person took out of its pool is theirs", old: `freshness.Release && !o.byPerson && g.Released`, broken: `freshness.Release && g.Released`, test: "TestGuardOfBarePods/release, by a person"},
}), at("webhooks/guard.go", []mutant{
	{check: "no claim gets what no policy holds for", old: `if v.Allowed && settings.Mode(asked) == settings.Enforce {`, broken: `if false {`, test: "TestNoClaimGetsASandboxThatNoPolicyHoldsFor/not labelled"},
	{check: "not labelled: a denial stays one", old: `if v.Allowed && settings.Mode(asked) == settings.Enforce {`, broken: `if mode == settings.Enforce {`, test: "TestNoClaimGetsASandboxThatNoPolicyHoldsFor/denied in any case"},
	{check: "not labelled: where the namespace enforces policies hold", old: `err != nil || mode == settings.Enforce {
		return err`, broken: `err != nil || mode == "" {
		return err`, test: "TestNoClaimGetsASandboxThatNoPolicyHoldsFor/the namespace enforces"},
	{check: "not labelled: what cannot be read may be so", old: `err != nil || mode == settings.Enforce {
		return err`, broken: `err != nil || mode == settings.Enforce {
		return nil`, test: "TestNoClaimGetsASandboxThatNoPolicyHoldsFor/the namespace cannot be read"},
	{check: "not labelled: only enforce counts", old: `settings.Mode(w.New.GetLabels()[settings.EnforcementKey]) == settings.Enforce {`, broken: `w.New.GetLabels()[settings.EnforcementKey] != "" {`, test: "TestNoClaimGetsASandboxThatNoPolicyHoldsFor/labelled otherwise"},
	{check: "not labelled: cold starts too", old: `case freshness.Bind, freshness.ColdStart, freshness.WarmStart:`, broken: `case freshness.Bind, freshness.WarmStart:`, test: "TestNoClaimGetsASandboxThatNoPolicyHoldsFor/a cold start"},
	{check: "not labelled: sandboxes in bare Pods too", old: `case freshness.Bind, freshness.ColdStart, freshness.WarmStart:`, broken: `case freshness.Bind, freshness.ColdStart:`, test: "TestNoClaimGetsASandboxThatNoPolicyHoldsFor/a sandbox in a bare pod"},
}), at("webhooks/mode.go", []mutant{
	{check: "a pool tightens the mode", old: `if settings.Mode(pool) == settings.Enforce {`, broken: `if false {`, test: "TestGuard/tightened by the pool"},
	{check: "the mode that was known decides how to fail", old: `return m.lastKnown(ctx, name), fmt.Errorf(`, broken: `return m.Defaults.Mode, fmt.Errorf(`, test: "TestGuard/mode unreadable, was enforced"},
	{check: "rounds: a namespace that was read is not read again", old: `if !namespace.Started() {`, broken: `if true {`, test: "TestRoundsOfReads/a cold start"},
}), at("webhooks/guard.go", []mutant{
	{check: "rounds: the mode comes with the snapshot", old: `facts.Namespace, asked)`, broken: `platform.Namespace{}, asked)`, test: "TestRoundsOfReads/a cold start"},
	{check: "mode: a refusal goes by what is stored", old: `v.Reason == freshness.Fresh && settings.Mode(asked)`, broken: `settings.Mode(asked)`, test: "TestGuard/mode unreadable, was enforced"},
	{check: "mode: a pool that enforces counts for what is fresh, too", old: `v.Reason == freshness.Fresh && settings.Mode(asked) != settings.Enforce`, broken: `v.Reason == freshness.Fresh`, test: "TestNoClaimGetsASandboxThatNoPolicyHoldsFor"},
	{check: "mode: what is fresh asks for no namespace", old: `w.Operation == freshness.Bind && v.Reason == freshness.Fresh`, broken: `false && v.Reason == freshness.Fresh`, test: "TestGuard/mode unreadable, fresh in any"},
}), at("internal/platform/agentsandbox/guess.go", []mutant{
	{check: "rounds: the claim's own sandbox is read with the rest", old: `if w.Claim.Name != "" && w.Claim.Name != m.Name {`, broken: `if false {`, pkg: "webhooks", test: "TestRoundsOfReads/a bind"},
	{check: "rounds: the node is read with the rest", old: `if p.CachedNode != nil {`, broken: `if false {`, pkg: "webhooks", test: "TestRoundsOfReads/a bind"},
	{check: "rounds: what was guessed is not read again", old: `if begun, ok := g.guesses[guess{gr, namespace, name}]; ok {`, broken: `if begun, ok := g.guesses[guess{gr, namespace, name}]; ok && false {`, pkg: "webhooks", test: "TestRoundsOfReads/a bind"},
	{check: "rounds: the namespace comes with what nobody guessed", old: `g.labels.Begin()`, broken: ``, pkg: "webhooks", test: "TestRoundsOfReads/that is refused, node not known"},
	{check: "rounds: a late cache decides nothing", old: `begin(ctx, all, guess{nodes, "", node})
	}`, broken: `begin(ctx, all, guess{nodes, "", node})
		all[guess{nodes, "", "node-1"}] = all[guess{nodes, "", node}]
	}`, pkg: "webhooks", test: "TestRoundsOfReads/a bind, the cache is late"},
}), at("webhooks/stamp.go", []mutant{
	{check: "bound when created: said on the Sandbox, a forged one taken off", old: `settings.BoundToKey: stamp.BoundTo,`, broken: ``, test: "TestStamp/says whose it is, and is not"},
	{check: "rounds: so does that of what is named", old: `req.Namespace, stamp.Namespace, `, broken: `req.Namespace, platform.Namespace{}, `, test: "TestRoundsOfReads/a cold start, named"},
}), at("internal/platform/namespace.go", []mutant{
	{check: "rounds: a namespace is read beside the rest", old: `go func() {`, broken: `func() {`, pkg: "webhooks", test: "TestRoundsOfReads/a bind"},
	{check: "a namespace that nobody read says nothing", old: `err := errors.New("the read ended without an answer")`, broken: `var err error`, test: "TestANamespaceThatCannotBeRead"},
}), at("internal/settings/defaults.go", []mutant{
	{check: "no label goes below a floor", old: ` || d.Floors.Enforces(namespace)`, broken: ``, test: "TestModeOf/nothing goes below a floor"},
	{check: "a pool's word on its mode counts", old: `Mode(pool) == Enforce || `, broken: ``, test: "TestModeOf/a pool tightens"},
	{check: "no strategy goes below a floor", old: `stricter(resolveStrategy(annotation, spec, d.Strategy), least)`, broken: `resolveStrategy(annotation, spec, d.Strategy)`, pkg: "internal/platform/agentsandbox", test: "TestStrategyIsNotBelowTheFloor/below"},
}), at("internal/platform/agentsandbox/extract.go", []mutant{
	{check: "no floors for strategies, no read", old: `if !p.Defaults.Floors.HasStrategy() {`, broken: `if false {`, test: "TestWithoutFloorsForStrategiesNoNamespaceIsReadForThem"},
}), at("webhooks/protect.go", []mutant{
	{check: "protect: denies", old: `if !v.Allowed && mode == settings.Enforce {`, broken: `if false {`, test: "TestProtect/in use"},
	{check: "protect: not in mode audit", old: `if !v.Allowed && mode == settings.Enforce {`, broken: `if !v.Allowed {`, test: "TestProtect/in use, audited"},
	{check: "protect: where a pool says so", old: `member.GetLabels()[settings.EnforcementKey])`, broken: `"")`, test: "TestProtect/in use, the pool enforces"},
	{check: "protect: no delete waits for a read", old: `log.Info("Let a delete pass unjudged", "sandbox", member.GetName(), "reason", err.Error())
		return admission.Allowed("")`, broken: `return admission.Errored(http.StatusInternalServerError, err)`, test: "TestProtect/undecided never waits"},
	{check: "protect: the last mode known will do", old: `	mode, _ := p.Modes.Of(ctx, req.Namespace, member.GetLabels()[settings.EnforcementKey])`, broken: `	mode, err := p.Modes.Of(ctx, req.Namespace, member.GetLabels()[settings.EnforcementKey])
	if err != nil {
		mode = settings.Audit
	}`, test: "TestProtect/mode unreadable, enforced"},
}), at("webhooks/stamp.go", []mutant{
	{check: "stamps: a forged one is replaced", old: `case value == carried:`, broken: `case value == carried || there:`, test: "TestStamp/forged"},
	{check: "stamps: a forged one does not stay", old: `case value == "" && there:`, broken: `case value == "":
		case value == "" && there:`, test: "TestStamp/forged, not found"},
	{check: "stamps: a Pod's comes from the Pod", old: `find = s.Revisions.PodRevision`, broken: ``, test: "TestStamp/a pod"},
	{check: "stamps: none in mode audit", old: `modeErr != nil || mode != settings.Enforce {`, broken: `modeErr != nil || mode == "" {`, test: "TestStamp/audit"},
	{check: "stamps: what passes without says why", old: `if err = cmp.Or(err, modeErr); err != nil {`, broken: `if err != nil {`, test: "TestNothingIsStampedWhileTheModeIsUnread"},
}))

// installing is what the API server is told.
var installing = slices.Concat(at("webhooks/install.go", []mutant{
	{check: "binds wait for Freshbind", old: `Name: "bind.freshbind.dev", Path: "/bind", `, broken: `Name: "bind.freshbind.dev", Path: "/bind", FailOpen: true, `, test: "TestConfigurations"},
	{check: "cold starts wait for Freshbind", old: `Name: "coldstart.freshbind.dev", Path: "/coldstart", `, broken: `Name: "coldstart.freshbind.dev", Path: "/coldstart", FailOpen: true, `, test: "TestConfigurations"},
	{check: "deletes do not wait for Freshbind", old: `Path: "/protect", FailOpen: true,`, broken: `Path: "/protect",`, test: "TestConfigurations"},
	{check: "deletes of Pods do not wait for Freshbind", old: `Path: "/protect-pod", FailOpen: true,`, broken: `Path: "/protect-pod",`, test: "TestConfigurations"},
	{check: "births do not wait for Freshbind", old: `"birth.freshbind.dev", Path: "/birth", FailOpen: true,`, broken: `"birth.freshbind.dev", Path: "/birth",`, test: "TestConfigurations"},
	{check: "protect: by a pool's controller only", old: `h.before = platform.When("by-a-pool-controller", s.byAPoolController(a))`, broken: ``, test: "TestProtectIsAskedAboutDeletesByPoolControllersWithoutAUID/agent-sandbox's own"},
	{check: "protect: by the controllers that are configured", old: `if len(users) == 0 {`, broken: `if true {`, test: "TestProtectIsAskedAboutDeletesByPoolControllersWithoutAUID/as configured"},
	{check: "handlers answer in time", old: `return h.Timeout * 9 / 10`, broken: `return h.Timeout`, test: "TestHandlersAnswerBeforeTheAPIServerGivesUp"},
	{check: "the API server is sent to no redirect", old: `strings.TrimRight(e.URL, "/") + path`, broken: `strings.TrimRight(e.URL, "") + path`, test: "TestEndpointByURL/a slash at the end"},
}), at("internal/platform/admission.go", []mutant{
	{check: "protect: not when the delete names a UID", old: "`!request.?options.?preconditions.?uid.hasValue()`", broken: "`true`", pkg: "webhooks", test: "TestProtectIsAskedAboutDeletesByPoolControllersWithoutAUID/agent-sandbox's own"},
}), at("internal/platform/agentsandbox/admission.go", []mutant{
	{check: "protect: bare Pods only", old: "`oldObject.metadata.?generateName.orValue('') != '' && `+", broken: ``, pkg: "webhooks", test: "TestProtectIsAskedAboutDeletesByPoolControllersWithoutAUID/agent-sandbox's own"},
	{check: "protect: not an idle bare Pod", old: "`.exists(o, `+poolOwner+` || `+controls+` && !(`", broken: "`.exists(o, `+controls+` && !(`", pkg: "webhooks", test: "TestProtectIsAskedAboutDeletesByPoolControllersWithoutAUID/agent-sandbox's own"},
}), at("webhooks/policies.go", []mutant{
	{check: "policies: they deny", old: `admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}`, broken: `admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}`, test: "TestPoliciesHoldWhereverBindsAreEnforced/where a label says so"},
	{check: "policies: where binds are enforced", old: `settings.EnforcementKey: string(settings.Enforce)`, broken: `settings.EnforcementKey: string(settings.Audit)`, test: "TestPoliciesHoldWhereverBindsAreEnforced/where a label says so"},
	{check: "policies: where a floor says so", old: `range s.Enforced {`, broken: `range s.Enforced[:0] {`, test: "TestPoliciesHoldWhereverBindsAreEnforced/by floors"},
	{check: "policies: where a pool says so", old: `namespaces: s.namespaces(), objects: enforcing()}`, broken: `namespaces: s.namespaces()}`, test: "TestPoliciesHoldWhereverBindsAreEnforced/where a label says so"},
	{check: "policies: stamps are ours to write", old: `"freshbind-stamp", members(update), notUs,`, broken: `"freshbind-stamp", members(update), nil,`, test: "TestWhomThePoliciesExempt"},
	{check: "policies: what pools say is ours to write", old: `create, update), notUs, outputsStay`, broken: `create, update), nil, outputsStay`, test: "TestWhomThePoliciesExempt"},
	{check: "policies: what pools say holds everywhere", old: `everywhere := []place{{namespaces: s.namespaces()}}`, broken: `everywhere := places`, test: "TestPoliciesHoldWhereverBindsAreEnforced/by default"},
	{check: "policies: nobody gives a used sandbox back", old: `r.Name, members(update), r.Conditions, r.Validations...)`, broken: `r.Name, members(update), append(notUs, r.Conditions...), r.Validations...)`, test: "TestWhomThePoliciesExempt"},
}), asked, at("webhooks/stamp.go", []mutant{
	{check: "a birth is marked where it is the pool's", old: `if s.Birth {`, broken: `if true {`, test: "TestStamp/a member"},
	{check: "a pool's mode is on what it was made for", old: `if settings.Mode(stamp.Enforcement) == settings.Enforce {`, broken: `if false {`, test: "TestStamp/tightened"},
}), at("webhooks/restamp.go", []mutant{
	{check: "stamps are put back where binds are enforced", old: `); !act {`, broken: `); !act && false {`, test: "TestRestamp/audited"},
}))

// asked is what the API server evaluates by itself.
var asked = slices.Concat(at("internal/platform/agentsandbox/conditions.go", in("test/cel", []mutant{
	{check: "CEL: a claim that was there before as a claim", old: "`.exists(p, ` + ofP(condition) + ` && p.uid == o.uid))`", broken: "`.exists(p, p.uid == o.uid))`", test: "TestWrites/then to that claim"},
	{check: "CEL: a claim of any version", old: "claimOwner = `o.kind == 'SandboxClaim' && o.apiVersion.startsWith('` + ExtensionsGroup + `/')`", broken: "claimOwner = `o.kind == 'SandboxClaim' && o.apiVersion == '` + ExtensionsGroup + `/v1beta1'`", test: "TestWrites/bind by an earlier version"},
	{check: "CEL: claims of our group", old: "claimOwner = `o.kind == 'SandboxClaim' && o.apiVersion.startsWith('` + ExtensionsGroup + `/')`", broken: "claimOwner = `o.kind == 'SandboxClaim' && o.apiVersion.startsWith('` + ExtensionsGroup + `')`", test: "TestWrites/given to a version without a group"},
	{check: "CEL: only controllers of another kind", old: "foreignController = controls + ` && !(`", broken: "foreignController = `!(`", test: "TestWrites/another plain owner"},
})), at("webhooks/policies.go", in("test/cel", []mutant{
	{check: "policies: what a pool says stays", old: "[k] == ` + annotationsOf(\"oldObject\")", broken: "[k] == ` + annotationsOf(\"object\")", test: "TestWhatFreshbindSaysOfPoolsIsItsOwn/another status"},
	{check: "policies: no new pool says what loosens verdicts", old: "`!(` + createsIt + `) || !('`", broken: "`true || !('`", test: "TestWhatFreshbindSaysOfPoolsIsItsOwn/created, any"},
})), at("internal/platform/agentsandbox/policyrules.go", in("test/cel", []mutant{
	{check: "policies: used by our mark", old: "`oldObject` + boundToOf + ` != '' || oldObject.metadata", broken: "`oldObject.metadata", test: "TestWrites/used, back to the pool"},
	{check: "policies: used by upstream's mark on the Pod", old: "`oldObject.?spec.?podTemplate.?metadata.?labels[` + celClaimLabel + `].orValue('') != ''`", broken: "`false`", test: "TestWrites/used by upstream's mark on the pod, back"},
	{check: "policies: a pool that becomes the controller again", old: "(` + ofP(controls) + ` || !(` + controls + `))", broken: "(true || ` + ofP(controls) + ` || !(` + controls + `))", test: "TestWrites/used, the pool was there, now controls"},
	{check: "policies: what is there already may stay", old: "&& p.uid == o.uid && (`", broken: "&& p.uid == 'x' && (`", test: "TestWrites/used and the pool's, written to"},
	{check: "policies: a claim leaves a mark", old: "|| ` + celOldOwners + `.all(o, !(`", broken: "|| true || ` + celOldOwners + `.all(o, !(`", test: "TestWrites/taken off its claim, no mark"},
	{check: "policies: the UID of a claim that is there", old: "+ celOldOwners + `).exists(p, ` + ofP(claimOwner)", broken: "+ celOldOwners + `).exists(p, false && ` + ofP(claimOwner)", test: "TestWrites/a claim's, another kind with its UID too"},
	{check: "policies: the UID of a claim that was there", old: "`!(o.uid in [object` + boundToOf + `, oldObject` + boundToOf + `, `", broken: "`!(o.uid in [`", test: "TestWrites/used, another kind has its claim's UID"},
	{check: "policies: a member goes to claims only", old: "` + foreignController + `)`,", broken: "false && ` + foreignController + `)`,", test: "TestWrites/given to another kind with a claim's UID"},
})))

// in completes mutants whose tests are all in one folder.
func in(pkg string, list []mutant) []mutant {
	for i := range list {
		list[i].pkg = pkg
	}
	return list
}

// settling is what follows from a refused bind.
var settling = slices.Concat(at("controllers/pools/slowstart.go", []mutant{
	{check: "an API server that refuses all is not asked on", old: `i < end && !w.over()`, broken: `i < end`, test: "TestSlowStart/all are refused"},
	{check: "nor when it begins to later", old: `w.failures >= tolerated`, broken: `w.failures >= 1000`, test: "TestSlowStart/all the others are refused"},
	{check: "what failed before a success is forgotten", old: `w.failures = 0`, broken: ``, test: "TestSlowStart/some are refused between others"},
	{check: "writes end with the lease", old: `w.stopped = w.stopped || ended ||`, broken: `w.stopped = w.stopped ||`, test: "TestSlowStart/one finds the lease over"},
	{check: "writes in flight are bounded", old: `group.SetLimit(atOnce)`, broken: `group.SetLimit(2 * atOnce)`, test: "TestWritesInFlightAreBounded"},
}), at("controllers/pools/refused.go", []mutant{
	{check: "refused: nothing is deleted under audit", old: `if !act {`, broken: `if false && !act {`, test: "TestSettlingARefusedMember/at fault, but audited by now"},
	{check: "refused: nor in a mode that cannot be read", old: `return 0, fmt.Errorf("reading the mode`, broken: `_ = fmt.Errorf("reading the mode`, test: "TestSettlingARefusedMember/at fault, in a mode that cannot be read"},
	{check: "only the version that was judged is deleted", old: `UID: ptr.To(member.GetUID()), ResourceVersion: ptr.To(member.GetResourceVersion()),`, broken: `UID: ptr.To(member.GetUID()),`, test: "TestSettlingARefusedMember/at fault: exactly that version is deleted"},
	{check: "only the member that was judged is deleted", old: `UID: ptr.To(member.GetUID()), ResourceVersion: ptr.To(member.GetResourceVersion()),`, broken: `ResourceVersion: ptr.To(member.GetResourceVersion()),`, test: "TestSettlingARefusedMember/at fault: exactly that version is deleted"},
	{check: "a hint on another incarnation is void", old: ` || member.GetUID() != req.UID`, broken: ``, test: "TestSettlingARefusedMember/another one of that name"},
	{check: "what a claim has is not settled", old: `if facts.Member.Controller.Kind != freshness.OwnedByPool || v.Allowed &&`, broken: `if v.Allowed &&`, test: "TestSettlingARefusedMember/taken meanwhile"},
	{check: "what can never be taken is deleted", old: `case v.Reason.Fault() == freshness.FaultMember:`, broken: `case false:`, test: "TestSettlingARefusedMember/at fault: exactly that version is deleted"},
	{check: "a state that passes deletes nothing", old: `case v.Reason.Fault() == freshness.FaultMember:`, broken: `case true:`, test: "TestSettlingARefusedMember/passes by itself: looked at again"},
}), at("controllers/pools/pods.go", []mutant{
	{check: "refused Pods: nothing is deleted under audit", old: `err != nil || !act {
		return leave, err`, broken: `err != nil || false && !act {
		return leave, err`, test: "TestSettlingARefusedPod/member at fault, but audited by now"},
	{check: "refused Pods: are looked at less often", old: `p.waits.next(req, recheck, maxRecheck)`, broken: `recheck`, test: "TestWhatDoesNotPassIsLookedAtLessOften/a bare Pod"},
	{check: "only the version of a Pod that was judged", old: `UID: ptr.To(pod.GetUID()), ResourceVersion: ptr.To(pod.GetResourceVersion()),`, broken: `UID: ptr.To(pod.GetUID()),`, test: "TestSettlingARefusedPod/member at fault"},
	{check: "a Pod that a Sandbox runs in stays", old: `return p.objects.PodOf(&s) == pod.GetName() })`, broken: `return false })`, test: "TestSettlingARefusedPod/given, and its sandbox is there"},
	{check: "a Pod that a claim waits for stays", old: `case waiting && !served && !fault:`, broken: `case !waiting && !served && !fault:`, test: "TestSettlingARefusedPod/given to a claim that waits"},
	{check: "a Pod that was never a pool's stays", old: `if !p.released.WasMember(pod, facts.Pool) {`, broken: `if false {`, test: "TestSettlingARefusedPod/never a pool's"},
	{check: "a Pod that v0.1.0 took just now stays", old: `case claim == "" && !fault && !overdue:`, broken: `case false:`, test: "TestSettlingARefusedPod/released and not marked, a moment ago"},
	{check: "a Pod that left its pool is given time", old: `p.hints.Note(overdue, released)`, broken: `p.hints.Note(overdue, 0)`, test: "TestWhenPodsAreLookedAt/released"},
}), at("controllers/pools/setup.go", []mutant{
	{check: "pools: an edited template waits for nothing", old: `after = 0`, broken: `after = batchPeriod`, test: "TestPoolsOfAnEditedTemplateAreLookedAtAtOnce/edited"},
	{check: "pools: what is no edit waits", old: `if edited && urgent`, broken: `if urgent`, test: "TestPoolsOfAnEditedTemplateAreLookedAtAtOnce/not its spec"},
	{check: "pools: edits without end wait", old: ` && urgent.TryAccept()`, broken: ``, test: "TestPoolsOfAnEditedTemplateAreLookedAtAtOnce/edited again and again"},
	{check: "pools: templates are what is urgent", old: `v.poolsOfTemplate(""), edits}`, broken: `v.poolsOfTemplate(""), nil}`, test: "TestEditsOfTemplatesAreUrgent"},
	{check: "pools: shared templates, too", old: `v.poolsOfTemplate(shared.Kind), edits}`, broken: `v.poolsOfTemplate(shared.Kind), nil}`, test: "TestEditsOfTemplatesAreUrgent"},
	{check: "NodeLeaving: pools of Pods hear of it", old: `if leaves && v.hasBarePods(v.kinds.Pools) {`, broken: `if false {`, test: "TestPoolsOnANode/leaving, bare pods"},
	{check: "nodes that stay concern nobody", old: `node.Leaving(nil) != ""`, broken: `node.Leaving(nil) != "never"`, test: "TestPoolsOnANode/stays, bare pods"},
	{check: "nodes that Pods tolerate concern nobody", old: `if pod.MustLeave(node) || pod.IsUnwelcome(node) {`, broken: `if true {`, test: "TestPoolsOnANode/set aside, tolerated"},
}), at("internal/platform/agentsandbox/offer.go", []mutant{
	{check: "offering applies to one version", old: `, "resourceVersion": obj.GetResourceVersion()}`, broken: `}`, test: "TestPatchesApplyToOneVersionOnly"},
	{check: "offering applies to one member", old: `"uid": obj.GetUID(),`, broken: ``, test: "TestPatchesApplyToOneVersionOnly"},
}), at("controllers/holdings/controller.go", []mutant{
	{check: "one to one: two sandboxes are reported", old: `len(live) > 1 {`, broken: `len(live) > 2 {`, test: "TestFindings/two"},
	{check: "one to one: two claims are reported", old: `len(owners) > 1 {`, broken: `len(owners) > 2 {`, test: "TestFindings/one for two claims"},
	{check: "MemberUsed: a bound sandbox is marked", old: `!= "" || s.DeletionTimestamp != nil {`, broken: `!= "never" {`, test: "TestMark/its first sight"},
	{check: "mode audit marks nothing", old: `err != nil || !enforced {`, broken: `err != nil || enforced {`, test: "TestMark/audited"},
}), at("controllers/waiting/claims.go", []mutant{
	{check: "a claim that waits is woken", old: `if !enforced || !c.waiting(claim) {`, broken: `if enforced || !c.waiting(claim) {`, test: "TestReconcile/waits"},
	{check: "a claim that is served is left alone", old: `if !enforced || !c.waiting(claim) {`, broken: `if !enforced {`, test: "TestReconcile/has its sandbox"},
	{check: "all who wait are woken when we are back", old: `ok && c.waiting(claim) {`, broken: `ok && !c.waiting(claim) {`, test: "TestSweepQueuesThoseThatWait"},
}), at("controllers/pools/dispositions.go", []mutant{
	{check: "no bare Pods: a pool's Pod is nobody's", old: `if f.barePods == nil {`, broken: `if false {`, test: "TestDispositionsLooksNothingUpForOthersPods"},
	{check: "scheduling: what no cache shows is read", old: `return f.ofUnseen(ctx, namespace, owner)`, broken: `return freshness.PodDisposition{}, nil`, test: "TestDispositionsOfMembersThatNoCacheShows/stale"},
	{check: "scheduling: what a claim has is not read", old: `seen.UID == owner.UID || `, broken: `false || `, test: "TestDispositionsOfMembersThatNoCacheShows/a claim's, as is shown"},
	{check: "scheduling: nothing is read out of scope", old: ` || !f.view.covers(namespace)`, broken: ``, test: "TestDispositionsOfMembersThatNoCacheShows/of a namespace out of it"},
	{check: "scheduling: a scheduler is not held up", old: `context.WithTimeout(ctx, unseenWithin)`, broken: `context.WithCancel(ctx)`, test: "TestDispositionsOfMembersThatNoCacheShows/current"},
	{check: "scheduling: another Sandbox of that name says nothing", old: `sandbox == nil || sandbox.GetUID() != owner.UID`, broken: `sandbox == nil`, test: "TestDispositionsOfMembersThatNoCacheShows/another one of its name"},
	{check: "scheduling: of what is no idle member nothing is said", old: `member := f.view.members.Reduce(sandbox); member.Pooled`, broken: `member := f.view.members.Reduce(sandbox); true`, test: "TestDispositionsOfMembersThatNoCacheShows/its pool's by name only"},
}), at("controllers/pools/view.go", []mutant{
	{check: "scheduling: namespaces in scope are looked at", old: `slices.Contains(v.only, namespace)`, broken: `false`, test: "TestDispositionsOfMembersThatNoCacheShows/of a namespace in scope"},
}), at("controllers/pools/reoffer.go", []mutant{
	{check: "only the pool's own members are offered again", old: `|| owner.Name != p.Name {`, broken: `{`, test: "TestSkippedMembersAreOfferedAgain"},
}), at("internal/manager/observer.go", []mutant{
	{check: "no bare Pods: none is followed", old: `if barePods == nil {`, broken: `if false {`, test: "TestAPlatformWithoutBarePodsAndClaims"},
	{check: "no bare Pods: a refused Pod is nobody's", old: `		if a.pods != nil {
			a.pods.Note(member)
		}`, broken: `		a.pods.Note(member)`, test: "TestAPlatformWithoutBarePodsAndClaims"},
	{check: "no claim objects: none is woken", old: `if a.waiting != nil {`, broken: `if true {`, test: "TestAPlatformWithoutBarePodsAndClaims"},
	{check: "no claim objects: denials are reported at once", old: `a.names == nil || `, broken: ``, test: "TestAPlatformWithoutBarePodsAndClaims"},
	{check: "bare Pods need claims that are objects", old: `if of.Keep.Claims == nil {`, broken: `if false {`, test: "TestBarePodsNeedClaimsThatAreObjects"},
}), at("internal/manager/assemble.go", []mutant{
	{check: "no claim objects: nobody keeps books", old: `if claims == nil {`, broken: `if false {`, test: "TestAPlatformWithoutBarePodsAndClaims"},
}), at("controllers/history/controller.go", []mutant{
	{check: "a revision that a member has is kept", old: `if !used {`, broken: `if used || !used {`, test: "TestPruneKeepsWhatAMemberHas"},
}))

// returning is what becomes of a pool that returns to mode audit.
var returning = slices.Concat(at("controllers/pools/controller.go", []mutant{
	{check: "audit: members are loosened", old: `return p.loosen(ctx, pool)`, broken: `return reconcile.Result{}, nil`, test: "TestMembersOfAPoolThatReturnsToAudit/audited by now"},
}), at("controllers/pools/stamps.go", []mutant{
	{check: "audit: a late cache loosens nothing", old: `if act, err := p.actsOn(ctx, stored); err != nil || act {`, broken: `if act, err := p.actsOn(ctx, stored); err != nil || act && false {`, test: "TestMembersOfAPoolThatReturnsToAudit/enforced, as is stored"},
	{check: "audit: nothing is read for nothing", old: `if err != nil || len(missing) == 0 {`, broken: `if err != nil {`, test: "TestWhatWritesNothingReadsNoMode"},
	{check: "stamps: a Pod gets one that its webhook had no answer for", old: `if member.podLacksStamp {`, broken: `if false {`, test: "TestStampsOfPodsThatLackThem"},
	{check: "stamps: a Pod's is found by the Pod", old: `done, err = p.label(ctx, s, podKind, pod, stamp.Hash)`, broken: `done, err = p.label(ctx, s, podKind, pod, s.roster.by.Revision())`, test: "TestStampsOfPodsThatLackThem"},
	{check: "stamps: a Pod that has one keeps it", old: ` || pod.GetLabels()[settings.StampKey] != "" {`, broken: ` {`, test: "TestStampsOfPodsThatLackThem/had none a moment ago"},
	{check: "stamps: another Pod of that name is left alone", old: ` || pod.GetUID() != seen.GetUID()`, broken: ``, test: "TestStampsOfPodsThatLackThem/another one by now"},
	{check: "stamps: a Pod that cannot be named waits", old: `return wait && of.member == nil`, broken: `return wait && false`, test: "TestAPodThatCannotBeNamedIsTriedLater"},
	{check: "stamps: a Pod without a revision waits", old: `if stamp.Hash == "" {`, broken: `if false {`, test: "TestAPodThatCannotBeNamedIsTriedLater"},
	{check: "stamps: a Pod is named again later", old: `m.unstamped.note(of.uid, s.Now)`, broken: `m.unstamped.note(of.uid, s.Now.Add(time.Hour))`, test: "TestAPodThatCannotBeNamedIsTriedLater"},
	{check: "stamps: what was named does not wait", old: `keepPresent(m.unstamped, lacking)`, broken: ``, test: "TestAPodThatCannotBeNamedIsTriedLater/unreadable"},
	{check: "stamps: bare Pods that lack one are asked for", old: `if s.bare && len(s.members) == 0 {`, broken: `if false {`, test: "TestStampsOfBarePods"},
	{check: "stamps: only bare Pods that lack one", old: `p.view.BarePods(ctx, s.pool, withoutStamp)`, broken: `p.view.BarePods(ctx, s.pool)`, test: "TestStampsOfBarePods"},
	{check: "stamps: not of a Pod that goes", old: ` || pod.GetDeletionTimestamp() != nil`, broken: ``, test: "TestStampsOfBarePods"},
	{check: "stamps: a member with a Pod that cannot be named gets its own", old: `return wait && of.member == nil`, broken: `return wait`, test: "TestAMemberIsStampedWhileItsPodCannotBe"},
	{check: "stamps: what was just deleted is not named", old: ` || leaving[member.UID]`, broken: ``, test: "TestMembersByTheirPods"},
	{check: "audit: Pods are loosened", old: `p.mark(ctx, podKind, pod, off)`, broken: `true, error(nil)`, test: "TestMembersOfAPoolThatReturnsToAudit/audited by now"},
}), at("internal/manager/claimnames.go", []mutant{
	{check: "denials that wait hold no objects", old: `case c.hints <- withoutContent(d):`, broken: `case c.hints <- d:`, test: "TestClaimNames"},
}), at("internal/platform/agentsandbox/platform.go", []mutant{
	{check: "enforcement: of what is no pool's any more", old: `} else if w.Operation == freshness.Bind {`, broken: `} else if false {`, test: "TestABindOfWhatIsNoPoolsIsEnforcedAllTheSame/its own pool said so"},
}), at("internal/platform/agentsandbox/reads.go", []mutant{
	{check: "enforcement: by the claim's pool", old: `m.Controller.Kind != freshness.OwnedByPool && pool != ""`, broken: `false && pool != ""`, test: "TestABindOfWhatIsNoPoolsIsEnforcedAllTheSame/nobody's, the claim's pool says so"},
}), at("controllers/holdings/controller.go", []mutant{
	{check: "enforcement: of what was made while nobody looked", old: `if err == nil && !enforced && enforcement == "" {`, broken: `if false {`, test: "TestMark/made while nobody looked"},
}), at("internal/manager/asked.go", []mutant{
	{check: "enforcement: claims are read where pools say something", old: `[settings.EnforcementKey] != "" {`, broken: `[settings.EnforcementKey] != "never" {`, test: "TestAskedByPools"},
}), at("internal/platform/agentsandbox/foreign.go", []mutant{
	{check: "OwnerMismatch: the claim's name is the stored one", old: `claimOf(claim), claim.GetName()`, broken: `claimOf(claim), ""`, test: "TestAControllerOfAnotherKindIsNoClaim/a claim's UID"},
}))

var scoping = at("webhooks/scope.go", []mutant{
	{check: "our own namespace is exempt", old: `append([]string{metav1.NamespaceSystem}, s.Exempt...)`, broken: `[]string{metav1.NamespaceSystem}`, test: "TestConfigurations"},
	{check: "only the named namespaces", old: `if len(s.Only) > 0 {`, broken: `if false {`, test: "TestABindWaitsWhereEnforceIsSaid/by a pool out of scope"},
	{check: "a path says that its failurePolicy is Ignore", old: `h.Path += "/open"`, broken: ``, test: "TestFailurePoliciesOfBindsAndColdStarts/binds open"},
	{check: "one webhook for each namespace", old: `h.not = s.Open`, broken: ``, test: "TestABindWaitsWhereEnforceIsSaid/open"},
	{check: "open in the open namespaces only", old: `OpenPrefix+h.Name, s.Open`, broken: `OpenPrefix+h.Name, nil`, test: "TestABindWaitsWhereEnforceIsSaid/open elsewhere"},
	{check: "policies: where that is the default", old: `says(selector, metav1.LabelSelectorOpNotIn, settings.Audit)`, broken: `selector.MatchLabels = enforcing().MatchLabels`, test: "TestPoliciesHoldWhereverBindsAreEnforced/by default"},
	{check: "audit does not wait for Freshbind", old: `AuditPrefix+hooks[i].Name, true`, broken: `AuditPrefix+hooks[i].Name, hooks[i].FailOpen`, test: "TestABindWaitsWhereEnforceIsSaid/a namespace that says nothing"},
	{check: "audit is what the label says, against the default", old: `says(selector, metav1.LabelSelectorOpIn, settings.Audit)`, broken: ``, test: "TestABindWaitsWhereEnforceIsSaid/by default"},
	{check: "audit leaves out what is enforced by label", old: `says(selector, metav1.LabelSelectorOpNotIn, settings.Enforce)`, broken: ``, test: "TestABindWaitsWhereEnforceIsSaid/its label says enforce"},
	{check: "audit leaves out what a floor enforces", old: `s.closed(s.besides(s.Enforced))`, broken: `s.closed(s.besides(nil))`, test: "TestABindWaitsWhereEnforceIsSaid/by a floor"},
	{check: "floors do not ask twice", old: `s.besides(s.Enforced[:i])`, broken: `s.besides(nil)`, test: "TestABindWaitsWhereEnforceIsSaid/by two floors"},
	{check: "floors select by their labels", old: `in.MatchLabels = floor.MatchLabels`, broken: ``, test: "TestABindWaitsWhereEnforceIsSaid/outside of a floor"},
	{check: "a floor for all leaves nothing out", old: `	case 0:
`, broken: `	case 0:
		return nil
`, test: "TestABindWaitsWhereEnforceIsSaid/by a floor for all"},
	{check: "what a floor does not select", old: `requirements[0].Operator = opposite[requirements[0].Operator]`, broken: ``, test: "TestABindWaitsWhereEnforceIsSaid/outside of a floor"},
})

// closing is what keeps the configuration closed by pools.
var closing = slices.Concat(at("webhooks/closing.go", []mutant{
	{check: "closing: what is closed by pools fails closed", old: `h.FailurePolicy = ptr.To(admissionregistrationv1.Fail)`, broken: ``, test: "TestABindWaitsWhereEnforceIsSaid/by a pool"},
	{check: "closing: only where a pool enforces", old: `if len(namespaces) <= maxClosedByName {`, broken: `if false {`, test: "TestABindWaitsWhereEnforceIsSaid/by a pool elsewhere"},
	{check: "closing: everywhere when there are too many", old: `if len(namespaces) <= maxClosedByName {`, broken: `if true {`, test: "TestABindWaitsWhereEnforceIsSaid/by more pools than can be named"},
	{check: "closing: nothing is asked twice", old: `h.MatchConditions = append(h.MatchConditions, admissionregistrationv1.MatchCondition{
			Name: NoPoolCondition, Expression: notIn(namespaces),
		})`, broken: ``, test: "TestABindWaitsWhereEnforceIsSaid/by a pool"},
	{check: "closing: not where somebody chose Ignore", old: `len(namespaces) == 0 || !failsClosed(hooks, name)`, broken: `len(namespaces) == 0`, test: "TestABindWaitsWhereEnforceIsSaid/open everywhere"},
	{check: "closing: what was closed opens again", old: `return strings.HasPrefix(h.Name, PoolPrefix)`, broken: `return false`, test: "TestPoolsCloseAsTheySayNow"},
	{check: "closing: what was taken off audit comes back", old: `return m.Name == NoPoolCondition`, broken: `return false`, test: "TestPoolsCloseAsTheySayNow"},
}), at("controllers/closing/controller.go", []mutant{
	{check: "closing: by pools that enforce", old: `if settings.Pool(pools.Items[i].GetAnnotations()).Enforces() {`, broken: `if pools.Items[i].GetAnnotations()[settings.EnforcementKey] != "" {`, test: "TestTheConfigurationIsAsThePoolsSay/pools that audit"},
	{check: "closing: it checks again", old: `	return reconcile.Result{RequeueAfter: again}, nil
}`, broken: `	return reconcile.Result{}, nil
}`, test: "TestTheConfigurationIsAsThePoolsSay/pools that enforce"},
}))
