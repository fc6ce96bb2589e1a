package checker

// In agent-sandbox v0.1.0 and v0.2.1 members are bare Pods, and a bind is two writes: the Pod loses the label and owner of its
// pool, and then a Sandbox is created that names it (extensions/controllers/sandboxclaim_controller.go tryAdoptPodFromPool and
// createSandbox). The Sandbox says what the template says by then, so the Pod alone shows what the claim got. No later release
// creates a Sandbox that names another Pod than its own.

// barePod is the member that a new Sandbox of these releases names.
type barePod struct {
	pod *object[podState]
	now *entry[podState] // just before the Sandbox was created
	// pool had it; left is its first version in which no pool has it any more. nil: none of the recorded versions says so.
	pool owner
	left *entry[podState]
}

// bareMember is the Pod that a cold start names; nil where it names none.
func (j *judging) bareMember() *barePod {
	if !j.p.bare {
		return nil
	}
	out := &barePod{}
	for _, uid := range j.h.podsOfName[name{j.sandbox.namespace, j.now.podName}] {
		o := j.h.pods[uid]
		if o == nil {
			continue
		}
		if e, ok := o.line.before(j.p.rv); ok {
			out.pod, out.now = o, e
		}
	}
	if out.pod == nil {
		return out
	}
	for i := range out.pod.line.entries {
		e := &out.pod.line.entries[i]
		switch {
		case !e.first.Before(j.p.rv):
			return out
		case e.state.pool != owner{}:
			out.pool, out.left = e.state.pool, nil
		case out.pool != owner{} && out.left == nil && !e.gone:
			out.left = e
		}
	}
	return out
}

// judgeBare decides what a bind of a bare Pod has beside other binds.
func (j *judging) judgeBare() {
	switch b := j.bare; {
	case b.pod == nil && j.h.options.Partial:
		j.bind.unjudged("no write to Pod %s, which the sandbox names, is in the log", j.now.podName)
	case b.pod == nil:
		j.bind.add(DeadMember, ReasonPodFinished, "its Pod %s was gone", j.now.podName)
	case b.pool == owner{} && b.pod.line.entries[0].inexact:
		j.bind.unjudged("of which pool Pod %s was is not in the recording", b.pod.name)
	case b.pool == owner{}:
		j.bind.add(ForeignMember, ReasonNotAMember, "no pool controlled Pod %s", b.pod.name)
	default:
		j.ofItsPool(b.pool)
		j.lived()
	}
	j.takenBefore()
}

// takenBefore finds another Sandbox that named the same Pod.
func (j *judging) takenBefore() {
	for _, uid := range j.h.takersOfPod[name{j.sandbox.namespace, j.now.podName}] {
		other := j.h.sandboxes[uid]
		if other == nil || uid == j.p.sandbox {
			continue
		}
		e, ok := other.line.before(j.p.rv)
		switch {
		case !ok:
		case e.gone || other.line.mayBeGone(j.p.rv):
			j.bind.add(UsedMember, ReasonMemberUsed, "its Pod %s was that of sandbox %s before", j.now.podName, other.name)
		default:
			j.bind.add(Duplicate, ReasonMemberClaimed, "its Pod %s is that of sandbox %s as well", j.now.podName, other.name)
		}
	}
}

// barePodAt says what was wrong with it at rv.
func (j *judging) barePodAt(rv RV) (class Class, why Reason, message string) {
	e, ok := j.bare.pod.line.at(rv)
	if !ok {
		return Fresh, "", ""
	}
	if end, how := ended(e); end != "" {
		return DeadMember, end, how
	}
	if leaves := j.h.nodeLeaves(e.state, rv); leaves != "" {
		return DeadMember, ReasonNodeLeaving, "its node was about to go: " + leaves
	}
	return Fresh, "", ""
}

// runsBare is what the claim got: nothing but the Pod says it.
func (j *judging) runsBare() runs {
	out := runs{name: j.sandbox.name, allowed: j.h.injectedInto(j.bind.Namespace, j.bind.Pool, j.p.rv), content: &content{}, refers: true, whole: true}
	if j.bare.pod != nil && !j.bare.now.gone {
		out.pod = &j.bare.now.state
	}
	return out
}

// noteTaker remembers which Sandboxes name a Pod that they did not make.
func (h *History) noteTaker(o *object[sandboxState], podName string) {
	key := name{o.namespace, podName}
	h.takersOfPod[key] = append(h.takersOfPod[key], o.uid)
}

// namesAnotherPod: a Sandbox of agent-sandbox is created that names a Pod which is there already.
func namesAnotherPod(e Event, o *object[sandboxState], state sandboxState) bool {
	return e.Type == Added && !isKruise(e.Object) && state.podName != o.name
}

// poolOfPod is the pool that controls a Pod; nobody for one of a Sandbox.
func poolOfPod(owners []owner) owner {
	for _, o := range owners {
		if o.controller && o.isPool() {
			return o
		}
	}
	return owner{}
}
