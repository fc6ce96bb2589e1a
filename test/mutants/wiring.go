package main

import "slices"

// recognising decides which writes are judged at all.
var recognising = slices.Concat(at("internal/platform/agentsandbox/classify.go", []mutant{
	{check: "a claim that was there before is no bind", old: `&& !before[o.UID] {`, broken: `{`, test: "TestClassify/bound already"},
	{check: "a claim's UID under another kind was no claim", old: `before[o.UID] || o.Kind == kind`, broken: `true`, test: "TestClassify/then that claim itself"},
	{check: "a second claim is a bind", old: `case claim.UID != "" && op == admissionv1.Update:`, broken: `case claim.UID != "" && op == admissionv1.Update && len(ClaimsOf(old)) == 0:`, test: "TestClassify/a second claim beside the first"},
	{check: "a controller of another kind is judged", old: `case stranger.UID != "":`, broken: `case stranger.UID == "never":`, test: "TestClassify/a claim's UID under another kind"},
	{check: "plain owners of another kind have nothing", old: `if kind != freshness.OwnedByAnother || ref.Controller != nil && *ref.Controller {`, broken: `if true {`, test: "TestClassify/another plain owner"},
	{check: "a version without a group is no group", old: `if !named {`, broken: `if false {`, test: "TestClassify/a version without a group"},
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
var extracting = slices.Concat(at("internal/settings/pool.go", []mutant{
	{check: "injected paths: from the pool", old: `revision.ParseList(p[InjectedPathsKey])`, broken: `revision.ParseList("")`, pkg: "internal/platform/agentsandbox", test: "TestSnapshotHasWhatEachReasonDependsOn/a leaf that its pool's owner has"},
	{check: "a restart that cannot be read is none", old: `return time.Time{}`, broken: `return time.Now()`, test: "TestPool/nothing that can be read"},
	{check: "taken by name only: whatever the pool says", old: `p[ClaimsKey] != ""`, broken: `p[ClaimsKey] == byName`, test: "TestPool/by name, misspelt"},
}), at("internal/platform/agentsandbox/extract.go", []mutant{
	{check: "MemberTerminating: from the Sandbox", old: `Controller: controllerOf(obj), Deleting: obj.GetDeletionTimestamp() != nil,`, broken: `Controller: controllerOf(obj),`, test: "TestSnapshotHasWhatEachReasonDependsOn/member being deleted"},
	{check: "MemberUsed: from the Sandbox", old: `wasClaimed(obj)`, broken: `false`, test: "TestSnapshotHasWhatEachReasonDependsOn/member used before"},
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
	{check: "PodForeign: from the Pod", old: `podController(obj)`, broken: `"uid-m"`, test: "TestSnapshotHasWhatEachReasonDependsOn/pod of nobody"},
	{check: "PodTerminating: from the Pod", old: `Deleting: obj.GetDeletionTimestamp() != nil,
		Content: content,`, broken: `Content: content,`, test: "TestSnapshotHasWhatEachReasonDependsOn/pod being deleted"},
	{check: "PodFinished: from the Pod", old: `case "Failed", "Succeeded":`, broken: `case "Failed":`, test: "TestSnapshotHasWhatEachReasonDependsOn/pod done"},
	{check: "rolling: admit any, from the pool", old: `said.AdmitsAny()`, broken: `said[settings.AdmitKey] != ""`, test: "TestPoolOf/admits fresh"},
	{check: "taken by name only: from the pool", old: `said.ByName()`, broken: `false`, test: "TestPoolsThatAreTakenByName"},
	{check: "a claim that wants no pool gets none", old: `case "none":`, broken: `case "none!":`, test: "TestClaimOf/v1alpha1, no pool"},
	{check: "ClaimNamesAnother: the annotation", old: `claim.GetAnnotations()[sandboxNameKey], `, broken: ``, test: "TestClaimOf/annotation"},
	{check: "ClaimNamesAnother: the label", old: `, claim.GetLabels()[sandboxNameKey]}`, broken: `}`, test: "TestClaimOf/v1alpha1, label"},
}))

// rendering is what a template in force comes to.
var rendering = slices.Concat(at("internal/platform/agentsandbox/render.go", []mutant{
	{check: "secure defaults: no token", old: `podSpec["automountServiceAccountToken"] = false`, broken: `podSpec["automountServiceAccountToken"] = true`, test: "TestRenderMemberIsWhatUpstreamBuilds/plain"},
	{check: "secure defaults: a token that is wanted", old: `if podSpec["automountServiceAccountToken"] == nil {`, broken: `if true {`, test: "TestRenderMemberIsWhatUpstreamBuilds/token wanted"},
	{check: "secure defaults: DNS where the policy is managed", old: `str(podSpec, "dnsPolicy"); managed &&`, broken: `str(podSpec, "dnsPolicy"); (managed || true) &&`, test: "TestRenderMemberIsWhatUpstreamBuilds/network policy unmanaged"},
	{check: "a cold start has the claim's env", old: `if err := injectEnv(podSpec, claimSpec, str(template.Object, "spec", "envVarsInjectionPolicy")); err != nil {
		return nil, err
	}`, broken: ``, test: "TestRenderCold"},
	{check: "a cold start has the claim's volumes", old: `spec["volumeClaimTemplates"] = merged`, broken: ``, test: "TestRenderCold"},
}), at("internal/platform/agentsandbox/podpaths.go", []mutant{
	{check: "a Pod's defaults are no difference", old: `"podTemplate.spec.restartPolicy=Always",`, broken: ``, test: "TestSnapshotHasWhatEachReasonDependsOn/edited before, its pod is fresh"},
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
	{check: "nobody joins a read that has begun", old: `of.next = newRead()
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
}), at("internal/platform/agentsandbox/platform.go", []mutant{
	{check: "what cannot be read is not decided", old: `if liveread.IsAbsent(err) {`, broken: `if err != nil {`, test: "TestWhatCannotBeReadIsNotDecided/pod/python-abc"},
}), at("internal/platform/agentsandbox/reads.go", []mutant{
	{check: "ClaimHoldsAnother: under its own name", old: `names := append([]string{claim.GetName()}, namesOn(claim)...)`, broken: `names := namesOn(claim)`, test: "TestSnapshotJudged/cold sandbox held"},
	{check: "ClaimHoldsAnother: by its status", old: `for _, key := range []string{"name", "Name"} {`, broken: `for _, key := range []string{"never"} {`, test: "TestSnapshotJudged/held by status"},
	{check: "ClaimHoldsAnother: one that is going", old: `sandbox == nil || sandbox.GetDeletionTimestamp() != nil {`, broken: `sandbox == nil {`, test: "TestSnapshotJudged/the held one is going"},
	{check: "ClaimHoldsAnother: only its own", old: `return o.UID == uid })`, broken: `return o.UID != "never" }) || uid != ""`, test: "TestSnapshotJudged/of that name, not the claim's"},
}))
