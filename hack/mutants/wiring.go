package main

import "slices"

// recognising decides which writes are judged at all.
var recognising = slices.Concat(at("internal/platform/agentsandbox/classify.go", []mutant{
	{check: "a claim that was there before is no bind", old: `&& !before[o.UID] {`, broken: `{`, test: "TestClassify/bound already"},
	{check: "a claim's UID under another kind was no claim", old: `before[o.UID] || o.Kind == kind`, broken: `true`, test: "TestClassify/then that claim itself"},
	{check: "a second claim is a bind", old: `case claim.UID != "" && op == admissionv1.Update:`, broken: `case claim.UID != "" && op == admissionv1.Update && len(ClaimsOf(old)) == 0:`, test: "TestClassify/a second claim beside the first"},
	{check: "a controller of another kind is judged", old: `case stranger.UID != "":`, broken: `case stranger.UID == "never":`, test: "TestClassify/a claim's UID under another kind"},
	{check: "plain owners of another kind have nothing", old: `if kind != freshness.OwnedByAnother || ref.Controller != nil && *ref.Controller {`, broken: `if true {`, test: "TestClassify/another plain owner"},
	{check: "a version without a group is no group", old: `if !named {`, broken: `if !named && false {`, test: "TestClassify/a version without a group"},
	{check: "OwnerMismatch: from the write", old: `return o.Kind == w.Claim.Kind && o.UID == w.Claim.UID`, broken: `return true`, test: "TestSnapshotHasWhatEachReasonDependsOn/two claims in one write"},
	{check: "claims of other platforms are not ours", old: `gk.Group == ExtensionsGroup {`, broken: `gk.Group != "" {`, test: "TestClassify/claim of another platform"},
	{check: "references of any version count", old: `group, _, named := strings.Cut(apiVersion, "/")`, broken: `group, version, named := strings.Cut(apiVersion, "/")
	if version == "v1alpha1" {
		group = ""
	}`, test: "TestClassify/bind, reference of an older version"},
	{check: "a sandbox of pool and claim is a cold start", old: `case claim.UID != "":`, broken: `case claim.UID != "" && len(owners(obj)) < 2:`, test: "TestClassify/born with pool and claim"},
	{check: "an unmarked claim owns all the same", old: `if o.Kind == freshness.OwnedByClaim {
			return o`, broken: `if o.Kind == freshness.OwnedByClaim && ref.Controller != nil {
			return o`, test: "TestSnapshotHasWhatEachReasonDependsOn/member of an unmarked claim"},
}), at("internal/platform/agentsandbox/barepods.go", []mutant{
	{check: "a Pod that leaves its pool is judged", old: `leaves := pooled && !still && `, broken: `leaves := pooled && still && `, test: "TestClassifyPods/taken by v0.1.0"},
	{check: "a Pod given to another claim is judged", old: `leaves || taken`, broken: `leaves || false && taken`, test: "TestClassifyPods/taken again"},
	{check: "a Sandbox in a bare Pod is judged with it", old: `return name != "" && name != sandbox.GetName()`, broken: `return false && name != ""`, test: "TestClassifyPods/sandbox that names a pod"},
}))

// extracting is what a verdict takes from the objects.
var extracting = slices.Concat(at("internal/platform/namespace.go", []mutant{
	{check: "a namespace is read in time to know how to fail", old: `time.AfterFunc(after, func() {`, broken: `time.AfterFunc(time.Hour, func() {`, test: "TestLaterNamespace/everything else takes long"},
	{check: "a namespace is read for nobody who has gone", old: `if ctx.Err() == nil {
			begun()`, broken: `if true {
			begun()`, test: "TestLaterNamespace/nobody asks"},
}), at("internal/platform/agentsandbox/platform.go", []mutant{
	{check: "rounds: floors of strategies come with the snapshot", old: ` || p.Defaults.Floors.HasStrategy()`, broken: ``, pkg: "webhooks", test: "TestRoundsOfReads/a bind, floors for strategies"},
}), at("internal/settings/pool.go", []mutant{
	{check: "restarts: one that lies ahead makes nothing stale", old: `!at.After(now) {`, broken: `true {`, test: "TestPool/restarted later"},
	{check: "injected paths: from the pool", old: `revision.ParseList(p[InjectedPathsKey])`, broken: `revision.ParseList("")`, pkg: "internal/platform/agentsandbox", test: "TestSnapshotHasWhatEachReasonDependsOn/a leaf that its pool's owner has"},
	{check: "a restart that cannot be read is none", old: `	if err != nil {
		return time.Time{}`, broken: `	if err != nil {
		return time.Unix(1, 0)`, test: "TestPool/nothing that can be read"},
	{check: "taken by name only: whatever the pool says", old: `p[ClaimsKey] != ""`, broken: `p[ClaimsKey] == byName`, test: "TestPool/by name, misspelt"},
}), at("internal/platform/agentsandbox/extract.go", []mutant{
	{check: "a claimed volume is the member's own", old: `volume+"persistentVolumeClaim.claimName="+platform.Quoted(name+"-"+sandbox.GetName())`, broken: `volume+"persistentVolumeClaim"`, test: "TestPodEqualsItsSandbox/a volume of another's"},
	{check: "PodForeign: who made the member", old: `!= settings.CreatedByPool,`, broken: `== settings.CreatedByPool,`, test: "TestSnapshotHasWhatEachReasonDependsOn/pod older than one made by hand"},
	{check: "MemberTerminating: from the Sandbox", old: `Controller: controllerOf(obj), Deleting: obj.GetDeletionTimestamp() != nil,`, broken: `Controller: controllerOf(obj),`, test: "TestSnapshotHasWhatEachReasonDependsOn/member being deleted"},
	{check: "MemberUsed: from the Sandbox", old: `wasClaimed(obj)`, broken: `false`, test: "TestSnapshotHasWhatEachReasonDependsOn/member used before"},
	{check: "a cold start that says whose it is was no claim's before", old: `wasClaimed(obj) && (w.Operation != freshness.ColdStart || claimedByUpstream(obj))`, broken: `wasClaimed(obj)`, test: "TestSnapshotOfBarePods/cold start, v0.1.0, with our mark"},
	{check: "MemberUsed: upstream's mark", old: `sandbox.GetLabels()[claimUIDLabel] != ""`, broken: `false`, test: "TestWasClaimed/mark on the sandbox only"},
	{check: "MemberUsed: upstream's mark on the Pod", old: `podLabels[claimUIDLabel] != ""`, broken: `false && podLabels != nil`, test: "TestWasClaimed/mark on the pod only"},
	{check: "MemberUsed: our mark", old: `sandbox.GetAnnotations()[settings.BoundToKey] != ""`, broken: `false`, test: "TestWasClaimed/our mark"},
	{check: "named first: known by the release's label", old: `obj.GetLabels()[podTemplateHashLabel] != ""`, broken: `false`, test: "TestSnapshotHasWhatEachReasonDependsOn/claim names nothing"},
	{check: "the Pod's name after the write", old: `PodNameOf(w.New)`, broken: `m.PodName`, test: "TestSnapshotHasWhatEachReasonDependsOn/the bind changes the pod"},
	{check: "generation: from the Sandbox", old: `Generation: obj.GetGeneration(),
		Template`, broken: `Generation: 1,
		Template`, test: "TestSnapshotHasWhatEachReasonDependsOn/edited before, its pod is another"},
	{check: "TemplateMismatch: from the Sandbox", old: `obj.GetAnnotations()[templateRefAnnotation]`, broken: `""`, test: "TestSnapshotJudged/pool switched"},
	{check: "BlueprintChanged: from the write", old: `if w.Operation == freshness.Bind {`, broken: `if false {`, test: "TestSnapshotHasWhatEachReasonDependsOn/the bind edits the member"},
	{check: "the Pod's name: from the annotation", old: `if name := sandbox.GetAnnotations()[podNameAnnotation]; name != "" {`, broken: `if name := ""; name != "" {`, test: "TestSnapshotHasWhatEachReasonDependsOn/pod of another name"},
	{check: "PodForeign: addresses from the status", old: `nestedStrings(obj.Object, "status", "podIPs")`, broken: `nil`, test: "TestSnapshotHasWhatEachReasonDependsOn/pod with another address"},
	{check: "rolling: admit any, from the pool", old: `annotations.AdmitsAny()`, broken: `annotations[settings.AdmitKey] != ""`, test: "TestPoolOf/admits fresh"},
	{check: "taken by name only: from the pool", old: `annotations.ByName()`, broken: `false`, test: "TestPoolsThatAreTakenByName"},
	{check: "a claim that wants no pool gets none", old: `case "none":`, broken: `case "none!":`, test: "TestClaimOf/v1alpha1, no pool"},
	{check: "ClaimNamesAnother: the annotation", old: `claim.GetAnnotations()[sandboxNameKey], `, broken: ``, test: "TestClaimOf/annotation"},
	{check: "ClaimNamesAnother: the label", old: `, claim.GetLabels()[sandboxNameKey]}`, broken: `}`, test: "TestClaimOf/v1alpha1, label"},
}), at("internal/platform/pod.go", []mutant{
	{check: "PodForeign: from the Pod", old: `ControllerUID(obj)`, broken: `"uid-m"`, pkg: "internal/platform/agentsandbox", test: "TestSnapshotHasWhatEachReasonDependsOn/pod of nobody"},
	{check: "PodTerminating: from the Pod", old: `Deleting: obj.GetDeletionTimestamp() != nil,
		Content: content,`, broken: `Content: content,`, pkg: "internal/platform/agentsandbox", test: "TestSnapshotHasWhatEachReasonDependsOn/pod being deleted"},
	{check: "PodForeign: its age, from the Pod", old: `Created: obj.GetCreationTimestamp().Time,`, broken: ``, pkg: "internal/platform/agentsandbox", test: "TestSnapshotHasWhatEachReasonDependsOn/pod of a sandbox that was"},
	{check: "PodFinished: from the Pod", old: `case "Failed", "Succeeded":`, broken: `case "Failed":`, pkg: "internal/platform/agentsandbox", test: "TestSnapshotHasWhatEachReasonDependsOn/pod done"},
}))

// rendering is what a template in force comes to.
var rendering = slices.Concat(at("internal/platform/agentsandbox/render.go", []mutant{
	{check: "secure defaults: no token", old: `podSpec["automountServiceAccountToken"] = false`, broken: `podSpec["automountServiceAccountToken"] = true`, test: "TestRenderMemberIsWhatUpstreamBuilds/plain"},
	{check: "secure defaults: a token that is wanted", old: `if podSpec["automountServiceAccountToken"] == nil {`, broken: `if true {`, test: "TestRenderMemberIsWhatUpstreamBuilds/token wanted"},
	{check: "secure defaults: DNS where the policy is managed", old: `if dns && str(podSpec, "dnsPolicy") == "" {`, broken: `if str(podSpec, "dnsPolicy") == "" {`, test: "TestRenderMemberIsWhatUpstreamBuilds/network policy unmanaged"},
	{check: "v0.1.1: a cold start has no DNS of its own", old: `managesNetwork(template.Object, "Managed"))`, broken: `managesNetwork(template.Object, "", "Managed"))`, test: "TestSandboxesOfV011/current"},
	{check: "v0.1.1: and gets none", old: `managesNetwork(template.Object, "Managed"))`, broken: `managesNetwork(template.Object, "", "Managed"))`, test: "TestSandboxesOfV011/late"},
	{check: "a template's own network policy leaves DNS alone", old: `return spec["networkPolicy"] == nil && `, broken: `return `, test: "TestRenderMemberIsWhatUpstreamBuilds/network policy of its own"},
	{check: "of a template in a file agent-sandbox manages the network", old: `managesNetwork(template.Object, "", "Managed"))`, broken: `managesNetwork(template.Object, "Managed"))`, test: "TestRenderMemberIsWhatUpstreamBuilds/nothing said of the network policy"},
	{check: "a cold start has the claim's env", old: `if err := injectEnv(podSpec, claimSpec, str(template.Object, "spec", "envVarsInjectionPolicy")); err != nil {
		return nil, err
	}`, broken: ``, test: "TestRenderCold"},
	{check: "a cold start has the claim's volumes", old: `spec["volumeClaimTemplates"] = merged`, broken: ``, test: "TestRenderCold"},
	{check: "of equal names the first is overridden", old: `slices.Backward(list)`, broken: `list`, test: "FuzzEnvIsSetAsUpstreamSetsIt"},
}), at("internal/platform/agentsandbox/adviseclaim.go", []mutant{
	{check: "advice on a claim's env takes a turn", old: `a.Platform.Turns.Take(ctx, claim.GetNamespace())`, broken: `func() (func(), error) { return func() {}, nil }()`, test: "TestAdviceWaitsForItsTurn/what a claim asks for"},
}), at("internal/platform/agentsandbox/platform.go", []mutant{
	{check: "no revision is rendered for nobody", old: `if err := ctx.Err(); err != nil {`, broken: `if err := ctx.Err(); err != nil && false {`, test: "TestRevisionsAreNotRenderedForNobody"},
}), at("internal/platform/podpaths.go", []mutant{
	{check: "a Pod's defaults are no difference", old: `"podTemplate.spec.restartPolicy=Always",`, broken: ``, pkg: "internal/platform/agentsandbox", test: "TestSnapshotHasWhatEachReasonDependsOn/edited before, its pod is fresh"},
}))

// reading is how the state of the moment is read.
var reading = slices.Concat(at("internal/liveread/errors.go", []mutant{
	{check: "only a 404 that names the object is absence", old: `return &unservedError{ref, err}`, broken: `return &absentError{ref, err}`, test: "TestAbsentOnlyWhenTheAnswerNamesTheObject/names nothing"},
	{check: "a 404 of another name", old: `details.Name != ref.Name || `, broken: ``, test: "TestAbsentOnlyWhenTheAnswerNamesTheObject/names another"},
	{check: "a 404 of another resource", old: ` || details.Kind != ref.GVR.Resource {`, broken: ` {`, test: "TestAbsentOnlyWhenTheAnswerNamesTheObject/names another resource"},
	{check: "a 404 of another group", old: ` || details.Group != ref.GVR.Group`, broken: ``, test: "TestAbsentOnlyWhenTheAnswerNamesTheObject/names another group"},
	{check: "every other error is no absence", old: `case !apierrors.IsNotFound(err):
		return undecided(ref, err)
	case namesObject(ref, err):`, broken: `case namesObject(ref, err):`, test: "TestAbsentOnlyWhenTheAnswerNamesTheObject/forbidden"},
}), at("internal/liveread/reader.go", []mutant{
	{check: "nobody joins a read that has begun", old: `of.next = newRead(ctx)
	default:`, broken: `of.running.waiting++
		return of.running
	default:`, test: "TestNobodySeesTheStateBeforeAWriteThatReturned"},
	{check: "those who wait share one read", old: `case of.next == nil:`, broken: `case true:`, test: "TestAThousandCallersCostOneMoreRead"},
	{check: "a read has a deadline", old: `context.WithTimeout(context.Background(), r.timeout)`, broken: `context.WithCancel(context.Background())`, test: "TestAReadHasATimeOfItsOwn"},
	{check: "a read goes on for those who wait", old: `if left.waiting > 0 {`, broken: `if false {`, test: "TestACallerThatGivesUp/does not end the read for the others"},
}), at("internal/liveread/client.go", []mutant{
	{check: "reads are linearizable", old: `metav1.GetOptions{})`, broken: `metav1.GetOptions{ResourceVersion: "0"})`, test: "TestReadsAskForNoResourceVersion"},
}), at("internal/liveread/resolver.go", []mutant{
	{check: "discovery is asked again after a 404", old: `if !recent {`, broken: `if !recent && false {`, test: "TestResolver"},
	{check: "nobody waits for discovery of what is known", old: `r.asking.DoChan("", r.discover) } }`, broken: `<-r.asking.DoChan("", r.discover)
	}
}`, test: "TestNobodyWaitsForDiscoveryOfWhatIsKnown"},
	{check: "all who wait share one discovery", old: `if gvr, known := r.lookUp(gr); known {`, broken: `if gvr, known := r.lookUp(gr); known && r.await(ctx) == nil {`, test: "TestNobodyWaitsForDiscoveryOfWhatIsKnown"},
	{check: "who is gone waits for no discovery", old: `case <-ctx.Done():`, broken: `case <-make(chan int):`, test: "TestNobodyWaitsForDiscoveryOfWhatIsKnown"},
	{check: "what discovery leaves out stays known", old: `if gvr, served := r.choose(mapper, gr); served {`, broken: `if gvr, served := r.choose(mapper, gr); served || true {`, test: "TestWhatIsKnownOutlivesADiscoveryThatFails"},
}), at("internal/platform/sources.go", []mutant{
	{check: "what cannot be read is not decided", old: `if liveread.IsAbsent(err) {`, broken: `if err != nil {`, pkg: "internal/platform/agentsandbox", test: "TestWhatCannotBeReadIsNotDecided/pod/python-abc"},
}), at("internal/platform/agentsandbox/reads.go", []mutant{
	{check: "ClaimHoldsAnother: under its own name", old: `names := append([]string{claim.GetName()}, namesOn(claim)...)`, broken: `names := namesOn(claim)`, test: "TestSnapshotJudged/cold sandbox held"},
	{check: "ClaimHoldsAnother: by its status", old: `for _, key := range []string{"name", "Name"} {`, broken: `for _, key := range []string{"never"} {`, test: "TestSnapshotJudged/held by status"},
	{check: "ClaimHoldsAnother: one that is going", old: `sandbox == nil || sandbox.GetDeletionTimestamp() != nil {`, broken: `sandbox == nil {`, test: "TestSnapshotJudged/the held one is going"},
	{check: "ClaimHoldsAnother: only its own", old: `return o.UID == uid })`, broken: `return o.UID != "never" }) || uid != ""`, test: "TestSnapshotJudged/of that name, not the claim's"},
	{check: "ClaimHoldsAnother: what is not read may be its", old: `if err == nil && unread > 0`, broken: `if false && unread > 0`, test: "TestHowManySandboxesOfAClaimAreRead/one more, none is its"},
	{check: "ClaimHoldsAnother: a bounded number is read", old: `max(0, len(more)-maxMayHold)`, broken: `0`, test: "TestHowManySandboxesOfAClaimAreRead/many, it has one of those"},
	{check: "ClaimHoldsAnother: a few are read at once", old: `reads.SetLimit(heldAtOnce)`, broken: ``, test: "TestSandboxesOfAClaimAreReadAFewAtOnce"},
}))

// kruiseGuard is what differs for OpenKruise Agents.
var kruiseGuard = slices.Concat(at("internal/platform/kruise/classify.go", []mutant{
	{check: "kruise: a bind loses its pool", old: `poolOf(obj).UID != pool.UID`, broken: `poolOf(obj).UID == pool.UID`, test: "TestClassify/let go for nobody"},
	{check: "kruise: another pool is no owner that stays", old: `poolOf(obj).UID != pool.UID`, broken: `poolOf(obj).UID == ""`, test: "TestClassify/given to another pool"},
	{check: "kruise: overtaking is judged", old: `|| isGained(old, obj)`, broken: ``, test: "TestClassify/overtaken"},
	{check: "kruise: so is giving what nobody has", old: `return has != "" && has != claimOf(old).UID`, broken: `return has != "" && claimOf(old).UID != "" && has != claimOf(old).UID`, test: "TestClassify/given on, by nobody"},
	{check: "kruise: so is giving what stays in its pool", old: `return has != "" && has != claimOf(old).UID`, broken: `return poolOf(old).UID == "" && has != "" && has != claimOf(old).UID`, test: "TestClassify/given, and in its pool"},
	{check: "kruise: who has it may write to it", old: `return has != "" && has != claimOf(old).UID`, broken: `return has != ""`, test: "TestClassify/paused"},
	{check: "kruise: clones are left alone", old: `return isClaimed(obj) && (ofPool || forClaim)`, broken: `_, _ = ofPool, forClaim; return isClaimed(obj)`, test: "TestClassify/a clone"},
	{check: "kruise: a claim cannot hide its pool", old: `return isClaimed(obj) && (ofPool || forClaim)`, broken: `return isClaimed(obj) && (ofPool && obj.GetLabels()[poolLabel] != "" || forClaim && false)`, test: "TestClassify/made, and of no pool"},
	{check: "kruise: nor that it is one", old: `return isClaimed(obj) && (ofPool || forClaim)`, broken: `_ = forClaim; return isClaimed(obj) && ofPool`, test: "TestClassify/made, and named by nobody"},
	{check: "kruise: what is made by hand is left alone", old: `return isClaimed(obj) && (ofPool`, broken: `return (ofPool`, test: "TestClassify/made by hand"},
}), at("internal/platform/kruise/objects.go", []mutant{
	{check: "kruise: a lock for deletion is nobody's claim", old: `id == "" || id == scaleDown`, broken: `id == ""`, test: "TestBindsByReason/about to be deleted"},
	{check: "kruise: used, by who has it", old: `return claimOf(sandbox).UID != "" || isClaimed(sandbox) || recycled > 0`, broken: `return isClaimed(sandbox) || recycled > 0`, test: "TestBindsByReason/somebody's"},
	{check: "kruise: used, by its label", old: `|| isClaimed(sandbox) || recycled > 0`, broken: `|| recycled > 0`, test: "TestBindsByReason/claimed already"},
	{check: "kruise: used, by count", old: `|| isClaimed(sandbox) || recycled > 0 ||`, broken: `|| isClaimed(sandbox) || recycled > 99 ||`, test: "TestBindsByReason/used before, by count"},
	{check: "kruise: not back yet", old: `== phaseRecycling`, broken: `== "never"`, test: "TestBindsByReason/not back yet"},
	{check: "kruise: the pool recycles", old: `"annotations", cleanupAnnotation) == yes`, broken: `"annotations", cleanupAnnotation) == "never"`, test: "TestBindsByReason/used, and the pool recycles"},
	{check: "kruise: owners of the same word in other groups", old: `GroupKind() == schema.GroupKind{Group: Group, Kind: kindSet}`, broken: `Kind == kindSet`, test: "TestClassify/another's, of the same word"},
	{check: "kruise: of a template the Pod alone counts", old: `	if template.GetKind() == kindTemplate {
`, broken: `	if false {
`, pkg: "controllers/history", test: "TestARevisionIsReadAsOneOfItsKind"},
	{check: "kruise: what says its Pod itself leaves it to nobody", old: `return templateRef(sandbox) != "" && pod == nil`, broken: `_ = pod; return templateRef(sandbox) != ""`, test: "TestBindsByReference/cold, that says another pod, too"},
	{check: "kruise: what claims write is no Pod", old: `pod, _, err := unstructured.NestedFieldNoCopy(sandbox.Object, "spec", "template", "spec")`, broken: `pod, _, err := unstructured.NestedFieldNoCopy(sandbox.Object, "spec", "template")`, test: "TestBindsByReference/that has what claims write, too"},
	{check: "kruise: what a pool says beside its reference", old: `append([]string{"volumeClaimTemplates"}, ownFields...)`, broken: `[]string{}`, test: "TestBindsByReference/stale runtimes"},
}), at("internal/platform/kruise/advise.go", []mutant{
	{check: "kruise: advice counts who is there for anybody", old: ` && claimOf(sandbox).UID == "" &&`, broken: ` &&`, test: "TestAdviceOnSandboxSets/whoever is no idle member"},
	{check: "kruise: advice: no floor rolls what nobody asked for", old: `if !isLeftToItself(set) {`, broken: `if set != nil {`, test: "TestAdviceOnSandboxSets/a floor rolls nothing that nobody asked for"},
	{check: "kruise: advice: SandboxSets enforce", old: ` || annotations.Enforces()`, broken: ``, test: "TestAdviceOnSandboxSets/enforced by the SandboxSet"},
	{check: "kruise: advice: injected paths", old: `settings.Pool(set.GetAnnotations()).InjectedPaths()`, broken: `settings.Pool(nil).InjectedPaths()`, test: "TestAdviceOnSandboxSets/what was injected is no difference"},
}), at("internal/platform/kruise/content.go", []mutant{
	{check: "kruise: volumes count", old: `out["volumeClaimTemplates"] = volumes`, broken: `_ = volumes`, test: "TestBindsByReason/stale volumes"},
	{check: "kruise: runtimes count", old: `"runtimes", `, broken: ``, test: "TestBindsByReason/stale runtimes"},
	{check: "kruise: the reference counts", old: `out["templateRef"] = ref`, broken: `_ = ref`, test: "TestBindsByReason/another template by a user"},
	{check: "kruise: in place, the image that was asked for", old: `a.image != "" && image == a.image`, broken: `a.image != ""`, test: "TestBindsByReason/changed to another image"},
	{check: "kruise: in place, the amounts that were asked for", old: `return is && sameAmount(want, amount)`, broken: `return is || sameAmount(want, amount)`, test: "TestBindsByReason/changed to another amount"},
	{check: "kruise: in place, CPU alone for a user", old: `return name == "cpu"`, broken: `return name != ""`, test: "TestBindsByReason/memory changed by a user"},
}), at("internal/platform/kruise/member.go", []mutant{
	{check: "kruise: locked for deletion", old: ` || sandbox.GetAnnotations()[ownerAnnotation] == scaleDown`, broken: ``, test: "TestBindsByReason/about to be deleted"},
	{check: "kruise: of a reference the Pod is the proof", old: `		m.Generation = 0
`, broken: ``, test: "TestBindsByReason/by reference, a stale command"},
	{check: "kruise: what is not asked for is no change in place", old: `return asked(s.claim)`, broken: `return ask{unspecified: true}`, test: "TestBindsByReason/changed what was not asked"},
	{check: "kruise: a cold start changes what was asked", old: `content, err = undone(w.New, s.inForce(), by)`, broken: `_ = by`, test: "TestBindsByReason/cold, changed as asked"},
	{check: "kruise: claims of another pool", old: `Pool: poolAsked(s.claim)}`, broken: `AnyPool: true}`, test: "TestBindsByReason/claim of another pool"},
	{check: "kruise: an empty name is a claim's too", old: `; !isClaim || w.Claim.UID == "" {`, broken: `; !isClaim || w.New.GetLabels()[claimNameLabel] == "" || w.Claim.UID == "" {`, test: "TestBindsByReason/claim that hides its name"},
	{check: "kruise: a reference that its pool has not", old: `(built || s.refers())`, broken: `(built || true)`, test: "TestBindsByReference/cold to a namesake of the pool"},
	{check: "kruise: the Pod shows what a reference does not", old: `(built || s.refers())`, broken: `(false && built || s.refers())`, test: "TestBindsByReference/and the pool is inline"},
	{check: "kruise: for nobody", old: `if w.Operation == freshness.Bind && w.Claim.UID == "" {`, broken: `if false {`, test: "TestBindsByReason/for nobody"},
}), at("internal/platform/kruise/reads.go", []mutant{
	{check: "kruise: a claim's name is a hint", old: `found, err := p.ByUID.Get(`, broken: `found, err := p.Reader.Get(`, test: "TestBindsByReason/claim renamed by its own label"},
	{check: "kruise: as many as the claim wants", old: `if int64(len(held)) < wants {`, broken: `if len(held) < 1 {`, test: "TestBindsByReason/claim that wants two"},
	{check: "kruise: no more than the claim wants", old: `if int64(len(held)) < wants {`, broken: `if true {`, test: "TestBindsByReason/claim that has one"},
	{check: "kruise: as many as its status says", old: `counted >= wants && len(held) == 0`, broken: `false`, test: "TestBindsByReason/claim that has all, by its status"},
	{check: "kruise: the claim's own pool is what a cold start is of", old: `asks != "" && asks != poolNameOf(w)`, broken: `false`, test: "TestBindsByReason/cold, with another's label"},
}), at("internal/platform/kruise/history.go", []mutant{
	{check: "kruise: older revisions are known", old: `out = append(out, k)`, broken: `_ = k`, test: "TestWhatIsStaleIsNamed/a member"},
	{check: "kruise: without a history nobody decides", old: `return nil, fmt.Errorf("reading history of %s: %w", of.GetName(), err)`, broken: `return nil, nil`, test: "TestAHistoryThatCannotBeReadIsNoVerdict"},
	{check: "kruise: a SandboxSet's own history counts where it refers", old: `freshness.Known{Hash: s.Hash, Content: content})
		}
	}
	return out, nil`, broken: `freshness.Known{Hash: s.Hash, Content: content})
		}
	}
	return nil, nil`, test: "TestWhatIsStaleIsNamed/by reference, when its pool said less"},
	{check: "kruise: of a SandboxSet that referred to another, nothing", old: ` || templateRef(s.Template) != templateRef(objs.set) {`, broken: ` {`, test: "TestWhatIsStaleIsNamed/by reference, when its pool referred to another"},
	{check: "kruise: what is known of SandboxSets is bounded", old: `sets[:min(len(sets), maxOwnRevisions)]`, broken: `sets`, test: "TestWhatIsStaleIsNamed/by reference, when its pool said less long ago"},
	{check: "kruise: an older cold start has what was asked", old: `return undone(carried(r.Template, sandbox, by), objs.inForce(), by)`, broken: `return r.Rendered, nil`, test: "TestWhatIsStaleIsNamed/a cold start as its claim asks"},
	{check: "kruise: an older template has what its pool says besides", old: `return contentOf(referring(objs.set, r.Template))`, broken: `return r.Rendered, nil`, test: "TestWhatIsStaleIsNamed/of a pool that refers to a template, and says more"},
	{check: "kruise: a cold start has what was asked, and no more", old: `if image, is := from["image"]; is && by.allowsImage(image) {`, broken: `if image, is := from["image"]; is {`, test: "TestWhatIsStaleIsNamed/a cold start as another claim asks"},
	{check: "kruise: a user's cold start has nothing of its own", old: `		return ask{}
	}
	return asked(s.claim)`, broken: `		return ask{unspecified: true}
	}
	return asked(s.claim)`, test: "TestWhatIsStaleIsNamed/a cold start as a user likes"},
	{check: "kruise: amounts that were asked for", old: `inner(inner(to, "resources"), list)[name] = amount`, broken: `_ = amount`, test: "TestWhatIsStaleIsNamed/a cold start of other amounts"},
}), at("internal/platform/kruise/cli.go", []mutant{
	{check: "kruise: an undo puts references back", old: `append(keys, "templateRef", "volumeClaimTemplates")`, broken: `append(keys, "volumeClaimTemplates")`, test: "TestRestore/a reference in place of a template"},
	{check: "kruise: an undo puts runtimes back", old: `keys = append(keys, ownFields...)`, broken: `_ = ownFields`, test: "TestRestore/what went comes"},
	{check: "kruise: an undo takes away what came since", old: `delete(spec, key)`, broken: `_ = key`, test: "TestRestore/what was added goes"},
	{check: "kruise: an undo of a template puts its Pod back alone", old: `if template.GetKind() != kindTemplate {`, broken: `if true {`, test: "TestRestore/of a template its Pod"},
}), at("internal/cli/cluster.go", []mutant{
	{check: "a pool that refers to a template is none itself", old: `err == nil && c.Objects.Pool(own).RefersTo("", name)`, broken: `err == nil`, test: "TestTemplatesByName/a pool that refers to a namesake"},
	{check: "a pool's template is of the kind that it says", old: `if is.TemplateKind != "" {`, broken: `if false {`, test: "TestTemplatesByName/a template"},
}), at("cmd/freshbind/app/targets.go", []mutant{
	{check: "a kind that is named is that kind", old: `if isWritten(kinds.SharedTemplate, s.kind) {
		template, err`, broken: `if isWritten(kinds.SharedTemplate, s.kind) && false {
		template, err`, test: "TestWhatARolloutIsAbout/a template, by its kind"},
}), at("internal/platform/kruise/pods.go", []mutant{
	{check: "kruise: Pods are alike on another node", old: `	delete(spec, "nodeName")
`, broken: ``, test: "TestPodsOfAPoolHaveOneContent"},
	{check: "kruise: Pods are alike with another token", old: `of["name"] = tokenVolume + "x"`, broken: `_ = of`, test: "TestPodsOfAPoolHaveOneContent"},
	{check: "kruise: Pods are alike with volumes made for them", old: `claim["claimName"] = name`, broken: `_ = claim`, test: "TestPodsOfAPoolHaveOneContent"},
	{check: "kruise: Pods differ by other volumes", old: `fields.String(claim, "claimName") == name+"-"+pod.GetName() {`, broken: `claim != nil {`, test: "TestPodsOfAPoolHaveOneContent"},
	{check: "kruise: a node in a template", old: `return fields.String(template.Object, "spec", "template", "spec", "nodeName") != ""`, broken: `return false`, test: "TestMembersThatRefer/of a template that names a node"},
}), at("internal/platform/objects.go", []mutant{
	{check: "a template of another kind is another one", old: `return p.TemplateKind == kind && p.Template == template`, broken: `return p.Template == template`, pkg: "controllers/history", test: "TestValuesOfAPoolThatIsItsOwnTemplate/one enforces with a namesake"},
}), at("internal/platform/kruise/platform.go", []mutant{
	{check: "kruise: another Pod than the status shows", old: `shown != "" && shown != string(objs.pod.GetUID())`, broken: `shown == "never"`, test: "TestBindsByReason/pod exchanged"},
	{check: "kruise: stale ones are not wanted", old: `Strategy: freshness.Recreate}`, broken: `Strategy: freshness.OnReplenish}`, test: "TestWhoServesStaleMembers"},
	{check: "kruise: enforced as it was", old: `w.Judged().GetLabels()[settings.EnforcementKey]`, broken: `""`, test: "TestAMemberWhosePoolIsGoneIsEnforcedAsItWas"},
}), at("internal/platform/kruise/kept.go", []mutant{
	{check: "kruise: what is claimed is no idle member", old: `&& !isClaimed(sandbox) && !isLocked`, broken: `&& !isLocked`, test: "TestWhatCachesKeepOfMembers/claimed by its label"},
	{check: "kruise: what somebody has is no idle member", old: `pool.UID != "" && claim.UID == "" &&`, broken: `pool.UID != "" &&`, test: "TestWhatCachesKeepOfMembers/claimed by its owner"},
	{check: "kruise: what is locked is no idle member", old: ` && !isLocked(sandbox)`, broken: ``, test: "TestWhatCachesKeepOfMembers/locked for deletion"},
	{check: "kruise: what comes back is no idle member", old: ` && !isReturning(sandbox),`, broken: `,`, test: "TestWhatCachesKeepOfMembers/not back yet"},
	{check: "kruise: phases in which nobody is given one", old: `if slices.Contains(notAvailable, fields.String(status, "phase")) {`, broken: `if false {`, test: "TestReadySince/ready, and failed"},
	{check: "kruise: its own rolling is left alone", old: `f.Pool.Strategy = freshness.PlatformOwned`, broken: `_ = f`, test: "TestWhoRollsAPool/#00"},
	{check: "kruise: what is hidden is not shown", old: `Shown: Objects{}.IsShown(sandbox)`, broken: `Shown: true`, test: "TestHideAndShow/a member"},
	{check: "kruise: a member can be hidden", old: `Hideable: pool.UID != ""`, broken: `Hideable: false`, test: "TestHideAndShow/a member"},
}), at("internal/platform/kruise/hide.go", []mutant{
	{check: "kruise: hidden twice, it is noted once", old: `	if labels[templateLabel] == hiddenTemplate {`, broken: `	if false {`, test: "TestHideAndShow/a member"},
	{check: "kruise: what is shown is left alone", old: `	if labels[templateLabel] != hiddenTemplate {`, broken: `	if false {`, test: "TestHideAndShow/of a template by reference"},
	{check: "kruise: it is found by what it was found by", old: `settings.ShownAsKey: orNone(labels[templateLabel])`, broken: `settings.ShownAsKey: nil`, test: "TestHideAndShow/of a template by reference"},
	{check: "kruise: what is noted goes", old: `map[string]any{settings.ShownAsKey: nil}`, broken: `nil`, test: "TestHideAndShow/a member"},
	{check: "kruise: a note that hides keeps nothing hidden", old: `was == hiddenTemplate || `, broken: ``, test: "TestShowsWhateverIsNoted"},
	{check: "kruise: a note that is no label keeps nothing hidden", old: ` || len(validation.IsValidLabelValue(was)) > 0`, broken: ``, test: "TestShowsWhateverIsNoted"},
	{check: "kruise: hiding is of one version", old: `, "resourceVersion": sandbox.GetResourceVersion()`, broken: ``, test: "TestPatchesAreOfOneVersion"},
}), at("internal/platform/kruise/objects.go", []mutant{
	{check: "kruise: members are hidden before they go", old: `, HiddenFirst: hiddenFirst}`, broken: `}`, test: "TestWhoRollsAPool/#00"},
	{check: "kruise: pools that nobody rolls withhold", old: `, Withholds: isLeftToItself(set)`, broken: ``, test: "TestWhoRollsAPool/#00"},
}), at("internal/platform/kruise/member.go", []mutant{
	{check: "kruise: a used member is of no use to anybody", old: `case freshness.Bind, freshness.Idle:`, broken: `case freshness.Bind:`, test: "TestIdleMembers/used"},
	{check: "kruise: what comes back is left alone", old: `w.Operation == freshness.Bind && isReturning(sandbox)`, broken: `isReturning(sandbox)`, test: "TestIdleMembers/not back yet"},
}), at("internal/managed/controller.go", []mutant{
	{check: "no object is left alone for long", old: `longestRetry = 30 * time.Second`, broken: `longestRetry = 1000 * time.Second`, test: "TestRetries"},
}), at("controllers/pools/poolstate.go", []mutant{
	{check: "nothing is said of members that nobody can compare", old: `if inspection.Revision() == "" {`, broken: `if false {`, test: "TestNothingIsSaidOfMembersThatCannotBeCompared"},
}), at("internal/manager/scheduler.go", []mutant{
	{check: "Pods that nobody sent away are not fetched back", old: `if !a.SendsPods {`, broken: `if false {`, test: "TestWhoSchedulesMembers"},
}), at("internal/platform/kruise/answers.go", []mutant{
	{check: "kruise: every answer is a conflict", old: `return p.Answer(op, freshness.FaultNobody)`, broken: `return http.StatusInternalServerError, ""`, test: "TestAnswers"},
}), at("webhooks/install.go", []mutant{
	{check: "platforms have paths of their own", old: `h.Path = a.PathPrefix + h.Path`, broken: `h.Path = "" + h.Path`, pkg: "cmd/freshbind/app", test: "TestWebhookConfigOfOtherPlatforms"},
	{check: "platforms have names of their own", old: `return ConfigurationName + a.Suffix`, broken: `return ConfigurationName`, pkg: "cmd/freshbind/app", test: "TestWebhookConfigOfOtherPlatforms"},
}), at("cmd/freshbind/app/hashcrds.go", []mutant{
	{check: "hash: versions that a CRD does not serve", old: `if !v.Served || s == nil {`, broken: `if s == nil {`, test: "TestHashWithCRDsFromFiles/another version"},
	{check: "hash: a file without a CRD", old: `if len(d.known) == before {`, broken: `if len(d.known) < before {`, test: "TestHashWithCRDsFromFiles/a file without one"},
	{check: "hash: the kind that every object has", old: `if s.Properties[key] == nil {`, broken: `if false {`, test: "TestHashWithCRDsFromFiles/a default"},
}))
