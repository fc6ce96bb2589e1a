package main

import "slices"

// scheduling is what kube-scheduler is told, and what it may cost.
var scheduling = slices.Concat(at("scheduler/placed.go", []mutant{
	{check: "placed: a member that left counts no more", old: `if is.members--; is.members > 0 {
			return
		}`, broken: `if is.members > 0 {
			return
		}`, test: "TestPlacedAgreesWithALookAtEverything"},
	{check: "placed: a Pod that goes is nowhere", old: `if node == "" || now.Deleting() {`, broken: `if node == "" {`, test: "TestPlacedAgreesWithALookAtEverything"},
	{check: "placed: a Pod of the same name is another", old: `is.pod != pod || `, broken: ``, test: "TestPlacedAgreesWithALookAtEverything"},
	{check: "placed: two pools may name one Pod", old: `is.pool != pool && is.more[pool] == 0`, broken: `is.pool != pool`, test: "TestPlacedAgreesWithALookAtEverything"},
	{check: "placed: a node may come to be in another zone", old: `is.zones == nil || is.zoned != zoned {
			is.zones, is.zoned`, broken: `is.zones == nil || is.zoned != zoned && false {
			is.zones, is.zoned`, test: "TestPlacedAgreesWithALookAtEverything"},
	{check: "placed: who asks is not in its own way", old: `has.moved[node]--`, broken: `_ = node`, test: "TestPrioritize/its own node does not count"},
	{check: "placed: nothing is remembered of nothing", old: `delete(p.places, pod)
		return`, broken: ``, test: "TestPlacedAgreesWithALookAtEverything"},
}), at("scheduler/assumecache.go", []mutant{
	{check: "assume cache: bounded", old: `if l.kept >= assumedKept {`, broken: `if false {`, test: "TestAssumeCacheIsBounded"},
	{check: "assume cache: what is forgotten makes room", old: `delete(l.pools[pool], pod)
		l.kept--`, broken: `delete(l.pools[pool], pod)`, test: "TestAssumeCacheIsBounded"},
}), at("scheduler/wire.go", []mutant{
	{check: "requests: escapes are decoded", old: ` || c == '"' || c == '\\' {`, broken: ` || c == '"' {`, test: "TestPlainStrings"},
	{check: "requests: what is not ASCII is looked at", old: `c > '~'`, broken: `false`, test: "TestPlainStrings"},
	{check: "requests: other fields take the long way", old: `		return value.Kind() == 'n'
	}
	return false`, broken: `		return value.Kind() == 'n'
	}
	return true`, test: "TestAnswersAreThoseOfEncodingJSON"},
	{check: "requests: names end the body", old: `	for rest != "]" {`, broken: `	for !strings.HasPrefix(rest, "]") {`, test: "TestPlainStrings"},
	{check: "answers: names go out as they came only when all do", old: `r.NodeNames == q.NodeNames && q.names != ""`, broken: `q.names != ""`, test: "TestAnswersAreThoseOfEncodingJSON"},
	{check: "answers: so do nodes", old: `r.Nodes == q.Nodes && q.nodes != ""`, broken: `q.nodes != ""`, test: "TestAnswersAreThoseOfEncodingJSON"},
	{check: "answers: strings are quoted", old: `plainLength(s) < len(s)`, broken: `false`, test: "TestAnswersAreThoseOfEncodingJSON"},
}), at("scheduler/score.go", []mutant{
	{check: "scores: lots are those of pod and node", old: `(h ^ uint32(node[i])) * prime`, broken: `(h + uint32(node[i])) * prime`, test: "TestLotsAreFNV"},
}), at("internal/platform/agentsandbox/inspect.go", []mutant{
	{check: "dispositions read no floor", old: `return f.inspect(ctx, pool, template, f.Cached)`, broken: `return f.inspect(ctx, pool, template, f.NamespaceLabels)`, test: "TestStrategyIsNotBelowTheFloor"},
	{check: "dispositions of bare Pods read no floor", old: `return f.inspectBarePod(ctx, pool, template, pod, f.Cached)`, broken: `return f.inspectBarePod(ctx, pool, template, pod, f.NamespaceLabels)`, test: "TestStrategyIsNotBelowTheFloor"},
	{check: "a Pod is its controller's, if that is a Sandbox", old: `owner != nil && IsSandboxOwner(owner)`, broken: `owner != nil`, test: "TestRouteOfPod/controlled by another kind, with the Sandbox's UID"},
}), at("internal/manager/platformpart.go", []mutant{
	{check: "nobody asks all the time what is served", old: `since < sureFor && `, broken: `since < 1 && `, test: "TestThePlatformPartAsksSeldom"},
	{check: "a doubt is looked into", old: ` && !p.doubted.Swap(false)`, broken: ``, test: "TestThePlatformPartAsksSeldom"},
	{check: "what nobody doubts is looked at all the same", old: `since < sureFor && `, broken: ``, test: "TestThePlatformPartAsksSeldom"},
}))
