package checker

import "slices"

// A bind is admitted at some moment between the last write that must have preceded it and its own. What other objects were
// meanwhile can change both ways and back: a Pod is made again, a node returns, a pool takes back what it vouched for. Only
// what was wrong all the while is the guard's fault.

// moments are the writes within the time in which the bind can have been admitted, after its beginning, that bear on the
// member's Pod and on what its pool asks for.
func (j *judging) moments() []RV {
	var out []RV
	if j.prev != nil || j.bare != nil {
		podName := j.now.podName
		if j.prev != nil {
			podName = j.prev.state.podName
		}
		for _, uid := range j.h.podsOfName[name{j.sandbox.namespace, podName}] {
			o := j.h.pods[uid]
			if o == nil {
				continue
			}
			out = append(out, changesWithin(&o.line, j.admit.lo, j.p.rv)...)
			for _, e := range o.line.within(j.admit.lo, j.p.rv) {
				if node := j.h.nodes[e.state.node]; !e.gone && node != nil {
					out = append(out, changesWithin(node, j.admit.lo, j.p.rv)...)
				}
			}
		}
	}
	out = append(out, changesWithin(j.h.pools[name{j.bind.Namespace, j.bind.Pool}], j.admit.lo, j.p.rv)...)
	slices.SortFunc(out, RV.compare)
	return slices.Compact(out)
}

// changesWithin are the beginnings of the versions that came after from and before to.
func changesWithin[S any](line *timeline[S], from, to RV) []RV {
	var out []RV
	for _, e := range line.within(from, to) {
		if from.Before(e.first) {
			out = append(out, e.first)
		}
	}
	return out
}

// soundOnce reports whether a member was, at some moment at which its bind can have been admitted, what its pool asked for
// just then; list is what that was, the newest first. The Sandbox's content is that of one version; its Pod, and what the pool
// vouches for, are not.
func (j *judging) soundOnce(list []demand) bool {
	if !j.p.warm {
		return false
	}
	bound, _ := j.itsPod()
	return slices.ContainsFunc(append([]RV{j.admit.lo}, j.moments()...), func(rv RV) bool {
		pod, now := j.podOfMember(func(line *timeline[podState]) (*entry[podState], bool) { return line.at(rv) })
		i := slices.IndexFunc(list, func(d demand) bool { return !rv.Before(d.since.hi) })
		if i < 0 || list[i].err != nil || pod == nil && bound != nil {
			return false
		}
		got := runs{name: j.sandbox.name, content: j.prev.state.content, pod: now}
		if pod != nil {
			got.whole = j.wholePod(pod, now)
		}
		if e, ok := j.h.pools[name{j.bind.Namespace, j.bind.Pool}].at(rv); ok {
			got.allowed = parseInjected(e.state.injected)
		}
		differs, err := got.podDiffers(list[i].content)
		_, older := got.podOf(list[i:])
		return got.matches(list[i].content) && !older && err == nil && differs == ""
	})
}
