package main

import "slices"

// staying is whether a Pod can stay on its node.
var staying = slices.Concat(at("internal/freshness/node.go", []mutant{
	{check: "NodeLeaving: it does not exist", old: `case n.Gone:`, broken: `case false:`, test: "TestLeaving/gone"},
	{check: "NodeLeaving: being deleted", old: `case n.Deleting:`, broken: `case false:`, test: "TestLeaving/being deleted"},
	{check: "NodeLeaving: not ready", old: `if n.NotReady {`, broken: `if false {`, test: "TestLeaving/not ready"},
	{check: "NodeLeaving: a taint that evicts", old: `if !toleratesForEver(tolerations, &n.Evicting[i]) {`, broken: `if false {`, test: "TestLeaving/taint"},
	{check: "NodeLeaving: not where the taint is tolerated", old: `if !toleratesForEver(tolerations, &n.Evicting[i]) {`, broken: `if true {`, test: "TestLeaving/tolerated, equal"},
	{check: "NodeLeaving: every taint has to be tolerated", old: `if !toleratesForEver(tolerations, &n.Evicting[i]) {`, broken: `if !toleratesForEver(tolerations, &n.Evicting[0]) {`, test: "TestLeaving/one of two taints tolerated"},
	{check: "NodeLeaving: tolerated for a while only", old: `return tolerations[i].TolerationSeconds == nil`, broken: `return true`, test: "TestLeaving/tolerated for a while"},
	{check: "NodeLeaving: tolerated by comparing numbers", old: `taint, true)`, broken: `taint, false)`, test: "TestLeaving/tolerated by comparison"},
	{check: "worse than before: not what was lost already", old: `if before.Gone || before.Deleting || before.NotReady {`, broken: `if false {`, test: "TestWorseThan/gone after not ready"},
	{check: "worse than before: gone", old: `return n.Gone || n.Deleting`, broken: `return n.Deleting`, test: "TestWorseThan/gone"},
	{check: "worse than before: a new taint", old: `return !slices.Contains(before.Evicting, t)`, broken: `return false`, test: "TestWorseThan/tainted"},
	{check: "worse than before: not the same taint", old: `return !slices.Contains(before.Evicting, t)`, broken: `return true`, test: "TestWorseThan/tainted as before"},
}), at("internal/placement/placement.go", []mutant{
	{check: "NodeLeaving: a node that is gone", old: `return freshness.Node{Gone: true}`, broken: `return freshness.Node{}`, pkg: "internal/platform/agentsandbox", test: "TestSnapshotHasWhatEachReasonDependsOn/pod on a node that is gone"},
	{check: "NodeLeaving: a node that is being deleted", old: `Deleting: node.GetDeletionTimestamp() != nil}`, broken: `Deleting: false}`, test: "TestNodeStateOf/being deleted"},
	{check: "NodeLeaving: other taints do not count", old: `case taint.Effect == corev1.TaintEffectNoExecute:`, broken: `case taint.Effect != "":`, test: "TestNodeStateOf/taint, scheduling"},
	{check: "cordons: by the spec", old: `unschedulable {`, broken: `unschedulable && false {`, test: "TestNodeStateOf/cordoned"},
	{check: "cordons: by an autoscaler's taint", old: `case taint.Effect == corev1.TaintEffectNoSchedule && slices.Contains(cordons, taint.Key) &&`, broken: `case false &&`, test: "TestNodeStateOf/taints of a cordon"},
	{check: "cordons: other taints empty no node", old: `slices.Contains(cordons, taint.Key) && !slices`, broken: `!slices`, test: "TestNodeStateOf/taint, scheduling"},
	{check: "cordons: a hint empties no node", old: `case taint.Effect == corev1.TaintEffectNoSchedule && slices`, broken: `case slices`, test: "TestNodeStateOf/such taints, softly"},
	{check: "NodeLeaving: the condition Ready", old: `!= string(corev1.ConditionTrue) {`, broken: `== string(corev1.ConditionFalse) {`, test: "TestNodeStateOf/not ready"},
	{check: "NodeLeaving: what limits a toleration", old: `limited || err != nil {`, broken: `limited && err == nil {`, test: "TestTolerations/of no known form"},
	{check: "tolerations that let a Pod stay are kept", old: `t.TolerationSeconds == nil && (evicts || cordons) {`, broken: `t.TolerationSeconds == nil && (evicts && false || cordons) {`, test: "TestTolerations/of the taint"},
	{check: "tolerations of cordons are kept", old: `t.TolerationSeconds == nil && (evicts || cordons) {`, broken: `t.TolerationSeconds == nil && (evicts || cordons && false) {`, test: "TestTolerations/of a cordon"},
	{check: "tolerations that let no Pod stay are not kept", old: `t.TolerationSeconds == nil && (evicts || cordons) {`, broken: `evicts || cordons || true {`, test: "TestTolerations/for scheduling only"},
}), at("internal/platform/agentsandbox/platform.go", []mutant{
	{check: "NodeLeaving: by the Pod's tolerations", old: `Leaving(placement.Tolerations(objs.pod))`, broken: `Leaving(nil)`, test: "TestSnapshotJudged/node set aside, tolerated"},
}), at("controllers/pools/sweep.go", []mutant{
	{check: "NodeLeaving: Pods that nobody tries are judged", old: `if now.WorseThan(before) {`, broken: `if now.WorseThan(before) && false {`, test: "TestBarePodsAreSweptWhenSomethingChanged"},
	{check: "a node that comes has nobody judged", old: `for name, before := range d.nodes {
		now, there := nodes[name]`, broken: `for name := range nodes {
		now, there := nodes[name]
		before, was := d.nodes[name]
		there = there && was`, test: "TestBarePodsAreSweptWhenSomethingChanged"},
}), at("controllers/pools/setup.go", []mutant{
	{check: "NodeLeaving: a node that begins to is noticed", old: `v.sawNode(obj.GetName(), node)`, broken: ``, test: "TestMembersOnANodeThatIsTaintedLater"},
}), at("controllers/pools/leaving.go", []mutant{
	{check: "NodeLeaving: a node that says it is alive costs no look at all", old: `l.changed = l.changed || of.isOne != wasOne || of.isOne && !reflect.DeepEqual(was, state)`, broken: `l.changed = of.isOne == wasOne || of.isOne != wasOne || reflect.DeepEqual(was, was)`, test: "TestLeavingNodes"},
	{check: "NodeLeaving: another taint is noticed", old: `of.isOne && !reflect.DeepEqual(was, state)`, broken: `of.isOne && !reflect.DeepEqual(was, was)`, test: "TestLeavingNodes"},
}), at("controllers/pools/controller.go", []mutant{
	{check: "replacements: a cache behind the last plan is not planned on", old: `if m.version != "" && older(pool.GetResourceVersion(), m.version) {`, broken: `if false {`, test: "TestACacheOfPoolsThatIsBehindAPlan"},
}), at("controllers/pools/observed.go", []mutant{
	{check: "replacements: an old member that was taken may have gone before", old: `case was.ready || m.readied.Has(uid):`, broken: `case false:`, test: "TestWhatIsObservedBetweenPlans/an old one is taken, maybe before"},
	{check: "replacements: one that was ready, too", old: `case was.ready || m.readied.Has(uid):`, broken: `case m.readied.Has(uid):`, test: "TestWhatIsObservedBetweenPlans/an old ready one is, too"},
	{check: "replacements: one that never started left nothing", old: `case was.ready || m.readied.Has(uid):`, broken: `case true:`, test: "TestWhatIsObservedBetweenPlans/an old one that never started goes"},
}), at("controllers/pools/listing.go", []mutant{
	{check: "takeover: a list that took long is shared when it is complete", old: `max(listingKept, 2*c.Since(started))`, broken: `listingKept - c.Since(started)`, test: "TestATakeoverSharesAListThatTookLong"},
	{check: "takeover: as long as it took, twice", old: `max(listingKept, 2*c.Since(started))`, broken: `max(listingKept, 0*c.Since(started))`, test: "TestATakeoverSharesAListThatTookLong"},
	{check: "takeover: a list is not shared for ever", old: `return !now.Before(l.until)`, broken: `return false`, test: "TestATakeoverSharesAListThatTookLong"},
}), at("controllers/pools/view.go", []mutant{
	{check: "nodes share what is kept of their status", old: `status := map[string]any{"images": images}
			if of, ok := trimmed["status"].(map[string]any); ok {
				maps.Copy(status, of)
			}`, broken: `status, _ := trimmed["status"].(map[string]any)
			maps.Copy(status, map[string]any{"images": images})`, test: "TestTrimNode/for scheduling"},
	{check: "NodeLeaving: members that tolerate the taint are left alone", old: `ok && m.Pod.MustLeave(node) {`, broken: `ok && node.Leaving(nil) != "" {`, test: "TestMembersOnATaintedNode"},
	{check: "the cache keeps what has a Pod stay", old: `if tolerations := placement.StayTolerations(u); tolerations != nil {`, broken: `if tolerations := placement.StayTolerations(u); false {`, test: "TestMembersOnATaintedNode"},
}), at("scheduler/nodes.go", []mutant{
	{check: "scheduler: nodes that leave for this pod", old: `return some && state.Leaving(pod.Spec.Tolerations) != ""`, broken: `return some && state.Leaving(nil) != ""`, test: "TestFilter/a fresh member that tolerates the taint"},
	{check: "scheduler: preempts on nodes that stay for this pod", old: `return some && state.Leaving(pod.Spec.Tolerations) != ""`, broken: `return some && state.Leaving(nil) != ""`, test: "TestPreempt/tolerates the taint"},
}))
