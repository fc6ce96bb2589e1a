package main

import "slices"

// running is what a member's Pod runs.
var running = slices.Concat(at("internal/freshness/podcontent.go", []mutant{
	{check: "PodModified", old: `if p.Ephemeral {`, broken: `if false {`, test: "TestJudgeWhatRuns/somebody attached a container"},
	{check: "PodModified: of a cached Pod, only its member's", old: `if s.Pod == nil || s.Pod.ControllerUID != s.Member.UID {
		return nil
	}
	return untouched`, broken: `if s.Pod == nil {
		return nil
	}
	return untouched`, test: "TestAForeignPodSaysNothingOfAStoredMember/another's"},
	{check: "what only a birth adds is no edit", old: `s.PodInjected.Union(addedAtBirth))`, broken: `s.PodInjected)`, test: "TestJudgeWhatRuns/a sidecar, and edited"},
	{check: "StaleRevision: a Pod made again", old: `if v := olderPod(s, r); v != nil {`, broken: `if v := olderPod(s, r); false {`, test: "TestJudgeWhatRuns/the same image, but an older revision"},
	{check: "the revision in force is none of before", old: `if k.Hash == s.Template.Hash ||`, broken: `if`, test: "TestJudgeWhatRuns/rendered otherwise before"},
	{check: "UnknownRevision: the Pod's images", old: `if v := attribute(s, r.images(), p.Content.Images(), moreContainers); v != nil {`, broken: `if v := attribute(s, r.images(), p.Content.Images(), moreContainers); false {`, test: "TestJudgeWhatRuns/made again of something else"},
	{check: "containers that admission adds do not count", old: `p.Content.Images(), moreContainers)`, broken: `p.Content.Images(), revision.PathSet{})`, test: "TestJudgeWhatRuns/a sidecar from its birth on"},
	{check: "an image set by hand is not tolerated", old: `(v.Tolerated || !edited)`, broken: `true`, test: "TestJudgeWhatRuns/set by hand, where nobody understands"},
	{check: "an image set by hand can be tolerated", old: `(v.Tolerated || !edited)`, broken: `!edited`, test: "TestJudgeWhatRuns/set by hand, under OnReplenish"},
	{check: "a Pod that was edited is compared", old: `case edited:`, broken: `case false:`, test: "TestJudgeWhatRuns/placed elsewhere, then edited"},
	{check: "an edited member's Pod is compared", old: `case s.Member.Generation != 1:`, broken: `case false:`, test: "TestJudgeWhatRuns/placed elsewhere, Sandbox edited"},
	{check: "generation 1 vouches for what admission added", old: `case s.Member.Generation != 1:`, broken: `case true:`, test: "TestJudgeWhatRuns/placed elsewhere at its birth"},
	{check: "PodForeign: a cold start adopts nothing", old: `return deny(PodForeign, "pod %s was there`, broken: `return nil; return deny(PodForeign, "pod %s was there`, test: "TestJudgeOtherOperations/cold start beside a pod of its name"},
	{check: "PodForeign: a bare Pod is there itself", old: `case m.Bare:
		return nil
	case m.namesAnotherPod():`, broken: `case m.namesAnotherPod():`, test: "TestJudgeOtherOperations/birth of a bare pod"},
	{check: "PodForeign: a cold start names no other Pod", old: `case m.namesAnotherPod():`, broken: `case false:`, test: "TestJudgeOtherOperations/cold start in a pod of another name"},
}), at("internal/freshness/judge.go", []mutant{
	{check: "PodForeign: a birth adopts nothing", old: `if v := nothingToAdopt(s); v != nil {`, broken: `if v := nothingToAdopt(s); v != nil && false {`, test: "TestJudgeOtherOperations/birth beside a pod of its name"},
}), at("internal/platform/agentsandbox/reads.go", []mutant{
	{check: "PodForeign: the Pod of a cold start's name is read", old: `if m.PodName != "" && !w.ContentOnly && !namedByTheServer(w) {`, broken: `if false {`, test: "TestColdStartsAdoptNothing/orphaned"},
	{check: "PodForeign: the Pod of a member's name is read", old: `case freshness.ColdStart, freshness.Birth:`, broken: `case freshness.ColdStart:`, test: "TestBirthsAdoptNothing/orphaned"},
	{check: "PodForeign: not where the name was drawn", old: ` && !namedByTheServer(w) {`, broken: ` {`, test: "TestBirthsAdoptNothing/made by the pool's controller"},
	{check: "PodForeign: a member that is there has its Pod", old: `if w.Operation == freshness.ColdStart || w.Operation == freshness.Birth {
		g.creator`, broken: `if w.Operation == freshness.ColdStart {
		g.creator`, test: "TestBirthsAdoptNothing/of the Sandbox that is there"},
	{check: "PodForeign: a Sandbox that is there has its Pod", old: `string(owner.GetUID()) == platform.ControllerUID(pod) {`, broken: `false {`, test: "TestColdStartsAdoptNothing/of the Sandbox that is there"},
	{check: "PodForeign: by the UID of its Sandbox", old: `string(owner.GetUID()) == platform.ControllerUID(pod) {`, broken: `true {`, test: "TestColdStartsAdoptNothing/of one before that"},
}), at("internal/platform/agentsandbox/platform.go", []mutant{
	{check: "PodForeign: under another name", old: `if !(BarePods{}).HasBarePods(gvr.GroupVersion()) {`, broken: `if _ = gvr; false {`, test: "TestLaterReleasesStartInNoPodThatIsThere/there"},
	{check: "a bare Pod was there before", old: `if !(BarePods{}).HasBarePods(gvr.GroupVersion()) {`, broken: `if _ = gvr; true {`, test: "TestSnapshotOfBarePods/start, secure defaults"},
}), at("internal/platform/pod.go", []mutant{
	{check: "PodModified: from the Pod", old: `len(fields.Objects(spec, "ephemeralContainers")) > 0`, broken: `false`, pkg: "internal/platform/agentsandbox", test: "TestSnapshotHasWhatEachReasonDependsOn/pod that somebody debugged"},
	{check: "a Pod's generation", old: `Generation: obj.GetGeneration(),
		Ephemeral`, broken: `Generation: 1,
		Ephemeral`, pkg: "internal/platform/agentsandbox", test: "TestSnapshotHasWhatEachReasonDependsOn/pod that was edited"},
	{check: "a Pod's gates do not count", old: `delete(spec, "schedulingGates")`, broken: ``, pkg: "internal/platform/agentsandbox", test: "TestWhatAdmissionAdds/gates"},
}), at("internal/revision/podonly.go", []mutant{
	{check: "a template's gates are none of its Pods'", old: `case schedulingGatesKey:`, broken: `case "":`, test: "TestGatesAreNoneOfAPods"},
	{check: "claims replace volumes", old: `isReplaced := replacedNames(claims)`, broken: `isReplaced := func(string) bool { return false }`, test: "TestVolumesThatClaimsReplace/the only one"},
	{check: "claims replace volumes, where digests are kept", old: `isReplaced = replacedDigests(claims)`, broken: ``, test: "TestVolumesThatClaimsReplace/the only one"},
	{check: "claims that replace volumes are looked for within bounds", old: `if len(l.items)*len(claims.items) > maxReplaceable {`, broken: `if false {`, test: "TestVolumesThatClaimsReplace/many"},
	{check: "a service account has two names", old: `f.name = serviceAccountNameKey`, broken: ``, test: "TestServiceAccountsOfPods/the old name"},
}), at("internal/revision/images.go", []mutant{
	{check: "images of init containers", old: `"containers", "initContainers"}`, broken: `"containers"}`, test: "TestImages/containers and init containers"},
	{check: "nothing but images and names", old: `if f.name == imageKey || f.name == l.mergeKey {`, broken: `if true {`, test: "TestImages/containers and init containers"},
}), at("controllers/pools/refused.go", []mutant{
	{check: "a member that was only doubted is left alone", old: `v.Allowed && (req.Doubted || req.Returning) {`, broken: `v.Allowed && req.Returning {`, test: "TestSettlingARefusedMember/only in doubt, and fine: left alone"},
}))

// admitting is what the API server adds to Pods.
var admitting = at("internal/platform/podadmitted.go", []mutant{
	{check: "a RuntimeClass places", old: `if gated || fields.String(spec, "runtimeClassName") != "" {`, broken: `if gated {`, pkg: "internal/platform/agentsandbox", test: "TestWhatAdmissionAdds/nodeSelector of a RuntimeClass"},
	{check: "a gate that is off places", old: `if gated || fields.String(spec, "runtimeClassName") != "" {`, broken: `if fields.String(spec, "runtimeClassName") != "" {`, pkg: "internal/platform/agentsandbox", test: "TestWhatAdmissionAdds/nodeSelector once a gate was off"},
	{check: "nobody else places", old: `if gated || fields.String(spec, "runtimeClassName") != "" {`, broken: `if true {`, pkg: "internal/platform/agentsandbox", test: "TestWhatAdmissionAdds/nodeSelector of nobody"},
	{check: "a LimitRange adds what it says", old: `limitRanged(annotations[limitRangerKey])...`, broken: `limitRanged("")...`, pkg: "internal/platform/agentsandbox", test: "TestWhatAdmissionAdds/requests of a LimitRange"},
	{check: "what a LimitRange says is bounded", old: `if len(annotation) > maxLimitRanger {`, broken: `if false {`, pkg: "internal/platform/agentsandbox", test: "TestWhatAdmissionAdds/too long to be read"},
	{check: "requests are those of limits", old: `limited && sameQuantity(request, limit)`, broken: `limited && (sameQuantity(request, limit) || true)`, pkg: "internal/platform/agentsandbox", test: "TestWhatAdmissionAdds/requests unlike limits"},
	{check: "extended resources are tolerated", old: `if isExtended(name) {`, broken: `if false {`, pkg: "internal/platform/agentsandbox", test: "TestWhatAdmissionAdds/extended resource's toleration"},
	{check: "other resources are not", old: `if isExtended(name) {`, broken: `if true {`, pkg: "internal/platform/agentsandbox", test: "TestWhatAdmissionAdds/toleration called as a resource"},
	{check: "AppArmor's annotations add what they say", old: `			paths = append(paths, appArmorPaths(`, broken: `			_ = append(paths, appArmorPaths(`, test: "TestAdmittedPaths/AppArmor of the runtime"},
	{check: "a whole Pod has what its containers have", old: `	paths = append(paths, wholePodPaths(spec)...)
`, broken: ``, pkg: "internal/platform/agentsandbox", test: "TestWhatAdmissionAdds/requests of the whole Pod"},
	{check: "host ports are of host networks", old: `if spec["hostNetwork"] == true {`, broken: `if true {`, pkg: "internal/platform/agentsandbox", test: "TestWhatAdmissionAdds/a host port in its own network"},
})
