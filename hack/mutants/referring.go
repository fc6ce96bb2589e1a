package main

import "slices"

// referring are pools that refer to a template, where they could be their own.
var referring = slices.Concat(at("internal/platform/inspection.go", []mutant{
	{check: "references: read in full, by all of the Pod", old: `		s.Pod.Whole = true
`, broken: ``, pkg: "internal/platform/kruise", test: "TestMembersThatRefer/of an older command"},
	{check: "references: read in full, the Pod in force is no difference", old: `s.Member.Content = s.Member.Content.WithPodOf(s.Template.Content)`, broken: `_ = s.Template`, pkg: "internal/platform/kruise", test: "TestMembersThatRefer/fresh"},
	{check: "references: read in full, what the API server added", old: `PodInjections(nil, s.PodInjected, admitted(pod)...)`, broken: `PodInjections(nil, s.PodInjected)`, pkg: "internal/platform/kruise", test: "TestMembersThatRefer/with what the API server added"},
	{check: "references: read in full, nothing tells without a Pod", old: `shown || freshness.ClassOf(v) != freshness.Current {`, broken: `true {`, pkg: "internal/platform/kruise", test: "TestMembersThatRefer/without a pod"},
	{check: "references: read in full, another's Pod tells nothing", old: `s.Pod != nil && s.Pod.ControllerUID == s.Member.UID`, broken: `s.Pod != nil`, pkg: "internal/platform/kruise", test: "TestMembersThatRefer/with another's pod"},
	{check: "references: read in full, only where the Pod is left to the template", old: `!i.source.DescribeMember(sandbox).ByReference {`, broken: `false {`, test: "TestInspectionOfObjects/alone"},
}), at("internal/platform/kruise/content.go", []mutant{
	{check: "kruise: fields that no Pod has are no content", old: `revision.Prune(template["spec"])`, broken: `template["spec"]`, test: "TestBindsByReason/with a field that no Pod has"},
}), at("internal/platform/kruise/platform.go", []mutant{
	{check: "kruise: suspended attribution is heeded", old: `		Suspended: annotations[settings.AttributionKey],
`, broken: ``, test: "TestBindsWhileAttributionIsSuspended/of this revision"},
}), at("internal/platform/podpaths.go", []mutant{
	{check: "Pods may have every default: ports", old: `			c+"ports[*].protocol=TCP",
`, broken: ``, test: "TestDefaultsOfPods/protocol of a port"},
	{check: "AlwaysPullImages writes in the place of others", old: `overridden.Overriding()`, broken: `overridden`, test: "TestDefaultsOfPods/images that are always pulled"},
	{check: "Pods may have every default, and no other value", old: `"podTemplate.spec.volumes[*].azureDisk.readOnly=false"`, broken: `"podTemplate.spec.volumes[*].azureDisk.readOnly"`, test: "TestDefaultsOfPods/disk of Azure"},
}), at("internal/checker/podadmission.go", []mutant{
	{check: "auditor: a default is no difference", old: `if _, asked := want[key]; !asked && have[key] == value {`, broken: `if _, asked := want[key]; !asked && have[key] == value && false {`, test: "TestPodDifference/as rendered, with all that API server and scheduler add"},
	{check: "auditor: AlwaysPullImages writes in the place of others", old: `undoPull(h, w, "imagePullPolicy")`, broken: ``, test: "TestWhatAdmissionWroteIsNoDifference/images that are always pulled"},
	{check: "auditor: and nothing but that policy", old: `if have[key] == string(corev1.PullAlways) {`, broken: `if have[key] != nil {`, test: "TestWhatAdmissionWroteIsNoDifference/images that are pulled once"},
	{check: "auditor: AppArmor's annotations add what they say", old: `slices.Contains(appArmor, name) {`, broken: `slices.Contains(appArmor, name) && false {`, test: "TestWhatAdmissionWroteIsNoDifference/AppArmor of the runtime"},
}), at("internal/platform/podadmitted.go", []mutant{
	{check: "Pods may have what matchLabelKeys come to", old: `	paths = append(paths, selectorPaths(spec)...)
`, broken: ``, test: "TestDefaultsOfPods/keys of its labels"},
}), at("internal/checker/pod.go", []mutant{
	{check: "auditor: removed fields within those that stay", old: `if ok && within && h[key] != defaulted[key] {`, broken: `if ok && false {`, test: "TestPodDifference/a tightened security context"},
	{check: "auditor: removed mounts", old: `"volumeDevices", "volumeMounts", "workingDir"`, broken: `"volumeDevices", "workingDir"`, test: "TestPodDifference/one of two mounts removed"},
	{check: "auditor: a service account has two names", old: `	pod.DeprecatedServiceAccount = ""
`, broken: ``, test: "TestWhatAdmissionWroteIsNoDifference/a deprecated name that does not count"},
	{check: "auditor: removed fields that have a default", old: `"readinessGates", "restartPolicy", `, broken: `"readinessGates", `, test: "TestWhatAdmissionWroteIsNoDifference/a restart policy that was removed"},
	{check: "auditor: one volume in two places", old: `[]string{"mountPath", "devicePath", "name"}`, broken: `[]string{"name", "devicePath"}`, test: "TestAnInjectedMountOfTheTemplatesOwnVolume"},
}), at("internal/platform/kruise/stamp.go", []mutant{
	{check: "kruise: Pods: of the Sandbox that has them", old: ` || platform.ControllerUID(pod) != string(sandbox.GetUID()) {`, broken: ` {`, test: "TestStampsOfPods/of another sandbox of that name"},
	{check: "kruise: Pods: nothing is named without a template", old: `if err != nil || f.Template == nil {`, broken: `if err != nil {`, test: "TestStampsOfPods/by reference, of a template that is gone"},
	{check: "kruise: Pods: of what somebody has", old: `w.Operation, w.Claim = freshness.ColdStart, claimOf(sandbox)`, broken: `_ = sandbox`, test: "TestStampsOfPods/of what somebody has, older"},
	{check: "kruise: Pods: volumes that are made for them", old: `, volumePaths(sandbox, objs.inForce())...)`, broken: `, volumePaths(objs.inForce())[:0]...)`, test: "TestStampsOfPods/by reference, with volumes"},
	{check: "kruise: Pods: what claims change is no other revision", old: `if !leavesPod(sandbox) {`, broken: `if false {`, test: "TestStampsOfPods/of what its claim changed"},
	{check: "kruise: Pods: not by what the Sandbox says", old: `return freshness.PodRevisionWithin(s, budget)`, broken: `return freshness.RevisionWithin(s, budget)`, test: "TestStampsOfPods/by reference, older"},
}), at("internal/platform/kruise/admission.go", []mutant{
	{check: "kruise: Pods: of Sandboxes of its own", old: `boxOwner = ` + "`" + `o.kind == '` + "`" + ` + kindSandbox + ` + "`" + `' && o.apiVersion.startsWith('` + "`" + ` + Group + ` + "`" + `/')` + "`", broken: `boxOwner = ` + "`" + `o.kind == '` + "`" + ` + kindSandbox + ` + "`" + `'` + "`", pkg: "test/cel", test: "TestPodsOfOpenKruiseAgents/of a namesake"},
}), at("webhooks/install.go", []mutant{
	{check: "stamps of Pods are put back once", old: `return stamps && a.Suffix == ""`, broken: `return stamps`, test: "TestStampsArePutBackOnce"},
}), at("internal/cli/pool.go", []mutant{
	{check: "status: templates of two kinds", old: `			from = shared
`, broken: `			_ = shared
`, test: "TestPoolsThatReferToATemplate/halfway"},
	{check: "status: templates that may not be read", old: `err = j.store.withheld[sharedTemplates]`, broken: `err = nil`, test: "TestTemplatesThatMayNotBeRead"},
	{check: "status: pools by the kind of their template", old: `(s.TemplateKind == "" || s.TemplateKind == is.TemplateKind)`, broken: `true`, test: "TestPoolsByTheKindOfTheirTemplate"},
}), at("internal/cli/store.go", []mutant{
	{check: "status: templates are followed where they are served", old: `if sh == sharedTemplates && errors.Is(err, liveread.ErrNotServed) {`, broken: `if false {`, test: "TestPoolsThatReferToATemplate/where no templates are served"},
	{check: "status: who may not read templates sees other pools", old: `(sh == memberPods || sh == sharedTemplates)`, broken: `sh == memberPods`, test: "TestTemplatesThatMayNotBeRead"},
}), at("internal/cli/revisions.go", []mutant{
	{check: "status: the number of a pool that says more", old: `			out[inForce] = n
`, broken: `			_ = n
`, test: "TestPoolsThatReferToATemplate/that says more than the template"},
}), at("internal/cli/cluster.go", []mutant{
	{check: "explain: a pool's template, not its namesake", old: `if pool == "" {`, broken: `if template != "" {`, test: "TestExplainMembersThatRefer"},
}), at("internal/cli/claim.go", []mutant{
	{check: "explain: of a reference the Pod tells", old: `			story.Runs = ran.Hash
`, broken: ``, test: "TestExplainClaimsOfSandboxesThatRefer"},
}), at("internal/cli/history.go", []mutant{
	{check: "undo: what was changed last", old: `inForceSince(first).Compare(inForceSince(second))`, broken: `inForceSince(second).Compare(inForceSince(first))`, test: "TestCompareInForce/the first came later"},
	{check: "undo: times are kept to the second", old: `return history[i].Since.Truncate(second)`, broken: `return history[i].Since.Time`, test: "TestCompareInForce/both came within a second"},
	{check: "undo: what is not recorded is the latest", old: `		return notRecorded
`, broken: `		return time.Time{}
`, test: "TestCompareInForce/the first is not recorded"},
}), at("internal/cli/write.go", []mutant{
	{check: "undo: to a reference that is there", old: `if apierrors.IsNotFound(err) {
		return fmt.Errorf("it refers`, broken: `if false {
		return fmt.Errorf("it refers`, pkg: "cmd/freshbind/app", test: "TestUndoOfAPoolThatRefers/the one before is gone"},
	{check: "undo: the reference is told", old: `if from == to {`, broken: `if from == to || to != "" {`, pkg: "cmd/freshbind/app", test: "TestUndoOfAPoolThatRefers/only the reference has changed"},
}), at("cmd/freshbind/app/rollouthistory.go", []mutant{
	{check: "undo: of a pool that has no history the template", old: `case !cli.HasEarlier(pool.history):`, broken: `case false:`, test: "TestUndoOfAPoolThatRefers/nothing has been changed at all"},
	{check: "undo: of a template that has no history the pool", old: `case !cli.HasEarlier(template.history):`, broken: `case false:`, test: "TestUndoOfAPoolThatRefers/a number where only one has any"},
	{check: "undo: a number alone is none of two", old: `last == 0 || number > 0 {`, broken: `last == 0 {`, test: "TestUndoOfAPoolThatRefers/a number that both have"},
	{check: "undo: nobody guesses", old: `last == 0 || number > 0 {`, broken: `number > 0 {`, test: "TestUndoOfAPoolThatRefers/both within one second"},
	{check: "undo: the later one", old: `if last > 0 {`, broken: `if last < 0 {`, test: "TestUndoOfAPoolThatRefers/the template was changed last"},
}), at("cmd/freshbind/app/targets.go", []mutant{
	{check: "undo: a pool's kind is that pool", old: ` || isWritten(kinds.Pool, s.kind)) {`, broken: `) {`, test: "TestWhatARolloutIsAbout/a pool that refers, by its kind"},
	{check: "undo: a reference to nothing is undone", old: `	case apierrors.IsNotFound(err):
`, broken: `	case false:
`, test: "TestUndoOfAPoolThatRefers/a template that is gone by now"},
	{check: "rollouts: by the kind of the template", old: `out.TemplateKind = kinds.SharedTemplate.Kind`, broken: `_ = out`, test: "TestRolloutsByTheKindOfTheTemplate"},
}))
