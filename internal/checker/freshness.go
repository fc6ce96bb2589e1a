package checker

import (
	"fmt"
	"slices"
	"time"
)

// runs is what a claim got: the Sandbox's content, and the Pod as evidence of its own.
type runs struct {
	name    string // of the Sandbox
	content *content
	err     error
	pod     *podState
	// whole: the Pod is not known to have been made from this very spec, so all of it is compared.
	whole   bool
	allowed injected
	// refers: nothing but the Pod says what is in the template that the Sandbox names.
	refers bool
	// may is what the claim may have changed of its cold start.
	may inPlace
}

// got reads a warm bind from the version before it, a cold start from what was created. While a member's generation and its
// Pod's are 1, its first Pod was made from this very spec, and what is compared is what somebody can have done to it since:
// clusters add to Pods.
func (j *judging) got() runs {
	if j.bare != nil {
		return j.runsBare()
	}
	out := runs{name: j.sandbox.name, allowed: j.h.injectedInto(j.bind.Namespace, j.bind.Pool, j.p.rv)}
	state := j.now
	if j.p.warm {
		state = j.prev.state
	} else if !j.asked.may.anyone {
		// What a user asked for cannot be told from what is stale.
		out.may = j.asked.may
	}
	out.content, out.err, out.refers = state.content, state.err, state.refers
	if pod, now := j.itsPod(); pod != nil {
		out.pod, out.whole = now, out.refers || j.wholePod(pod, now)
	}
	return out
}

// wholePod: the Pod is not known to have been made from the Sandbox's present spec.
func (j *judging) wholePod(pod *object[podState], now *podState) bool {
	return !j.p.warm || j.prev.state.generation != 1 || now.generation > 1 || j.h.podsOfSandbox[j.p.sandbox][0] != pod.uid
}

// itsPod is the Pod that the claim got, as it was just before the bind; nil where there was none. A cold start gets the Pod
// of its name that nobody owns, if there is one: upstream adopts it.
func (j *judging) itsPod() (pod *object[podState], now *podState) {
	if j.bare != nil {
		if j.bare.pod == nil || j.bare.now.gone {
			return nil, nil
		}
		return j.bare.pod, &j.bare.now.state
	}
	return j.podOfMember(func(line *timeline[podState]) (*entry[podState], bool) { return line.before(j.p.rv) })
}

// podOfMember is the same at a moment of the Pod's timeline.
func (j *judging) podOfMember(moment func(*timeline[podState]) (*entry[podState], bool)) (pod *object[podState], now *podState) {
	podName := j.sandbox.name
	if j.p.warm {
		podName = j.prev.state.podName
	}
	for _, uid := range j.h.podsOfName[name{j.sandbox.namespace, podName}] {
		o := j.h.pods[uid]
		if o == nil {
			continue
		}
		e, ok := moment(&o.line)
		if !ok || e.gone {
			continue
		}
		own, adopted := e.state.sandbox == j.p.sandbox, !e.state.controlled && !e.state.deleting
		if j.p.warm && own || !j.p.warm && adopted {
			pod, now = o, &e.state
		}
	}
	return pod, now
}

func (r runs) matches(c *content) bool {
	switch {
	case c == nil:
		return false
	case r.refers:
		return r.podIs(c)
	}
	return r.allowed.same(r.content, c) || !r.may.nothing() && r.allowed.same(&content{blueprint: r.may.undo(r.content.blueprint, c.blueprint)}, c)
}

// podDiffers is "" where the Pod holds what the content says, or where there is no Pod to look at.
func (r runs) podDiffers(c *content) (string, error) {
	switch {
	case r.pod == nil || c == nil:
		return "", nil
	case !r.whole:
		return exchanged(*r.pod, r.name, c)
	}
	return podDifference(*r.pod, r.name, c, r.allowed)
}

// podIs reports whether all of the Pod is what a content comes to.
func (r runs) podIs(c *content) bool {
	if r.pod == nil || c == nil {
		return false
	}
	differs, err := podDifference(*r.pod, r.name, c, r.allowed)
	return err == nil && differs == ""
}

// podOf finds the older content that the Pod is of, in whole, where it is not that of the newest.
func (r runs) podOf(list []demand) (older demand, ok bool) {
	// Most templates have had one content only, and looking into a Pod takes long.
	others := slices.ContainsFunc(list[1:], func(d demand) bool { return d.content != nil && !sameContent(d.content, list[0].content) })
	if r.pod == nil || !others || r.podIs(list[0].content) {
		return demand{}, false
	}
	for _, d := range list[1:] {
		if r.podIs(d.content) {
			return d, true
		}
	}
	return demand{}, false
}

// demands says whose wishes the Sandbox had to meet.
func (j *judging) demands() (demands, bool) {
	d := demands{h: j.h, namespace: j.bind.Namespace, pool: j.bind.Pool}
	if j.bare != nil {
		d.adds = addsNothing
	}
	if !j.p.warm && j.bare == nil {
		d.cold = j.claim
	}
	// A v1alpha1 claim names its template itself. It is cold-started from that one, and unless it names a pool as well, it
	// may get a member of any pool of that template.
	if _, specific := j.asked.specificPool(); j.asked.template != "" && (!specific || !j.p.warm) {
		d.pool, d.template = "", j.asked.template
	}
	return d, d.pool != "" || d.template != ""
}

// freshness compares what the claim got with what was in force just before the bind.
func (j *judging) freshness() {
	d, ok := j.demands()
	if !ok {
		j.bind.unjudged("neither the claim nor its sandbox names a pool")
		return
	}
	list, got := d.before(j.p.rv), j.got()
	if len(list) == 0 {
		j.bind.unjudged("pool %s is not in the recording", d.pool)
		return
	}
	d, list = j.asMade(d, list, got)
	newest := list[0]
	if why := cannotCompare(d, newest, got, j.p.rv); why != "" {
		j.bind.unjudged("%s", why)
		return
	}
	j.bind.Expected = newest.revision()
	podDiffers, err := got.podDiffers(newest.content)
	older, podIsOlder := got.podOf(list)
	switch {
	case err != nil:
		j.bind.unjudged("%v", err)
	case !got.matches(newest.content):
		j.bind.Found = revisionOf(got.content)
		if got.refers {
			j.bind.Difference = "pod: " + podDiffers
		} else if newest.content != nil {
			j.bind.Difference = difference(got.content.blueprint, newest.content.blueprint)
		}
		j.stale(d, list, got.matches)
	case podIsOlder:
		j.bind.Difference = "pod: of " + older.revision().String()
		j.stale(d, list, got.podIs)
	case podDiffers != "":
		j.bind.Difference = "pod: " + podDiffers
		j.stale(d, list, got.podIs)
	default:
		j.bind.Found = j.bind.Expected
		j.restarted()
	}
	j.templateGone(list)
	j.changedByBind()
}

// asMade returns what releases demand that add less to a cold start than others, list, where it is made as those make it.
func (j *judging) asMade(d demands, list []demand, got runs) (demands, []demand) {
	made := func(one demand) bool { return got.matches(one.content) }
	if j.p.warm || d.adds == addsNothing || j.asked.template == "" || got.err != nil || slices.ContainsFunc(list, made) {
		return d, list
	}
	for _, less := range []additions{addsToken, addsNothing} {
		other := d
		other.adds = less
		if lists := other.before(j.p.rv); slices.ContainsFunc(lists, made) {
			return other, lists
		}
	}
	return d, list
}

// templateGone finds a template that was not there for as long as the bind can have been admitted; list is what was demanded,
// the newest first. One that went while the bind was under way raced.
func (j *judging) templateGone(list []demand) {
	if !list[0].gone {
		return
	}
	k := 1
	for k < len(list) && list[k].gone && list[k].template == list[0].template {
		k++
	}
	if j.admit.lo.Before(list[k-1].since.hi) {
		j.bind.add(Raced, ReasonTemplateGone, "template %s was deleted while the bind was under way", list[0].template)
		return
	}
	j.bind.add(NotYet, ReasonTemplateGone, "template %s did not exist", list[0].template)
}

// restarted finds a member that was there before the pool's owner asked for a restart. Creation times are whole seconds; what
// was born in the second of the restart counts as older. A restart that lay ahead when it was asked for begins when its time
// comes, by any clock.
func (j *judging) restarted() {
	line := j.h.pools[name{j.bind.Namespace, j.bind.Pool}]
	created := j.sandbox.created
	if j.bare != nil && j.bare.pod != nil {
		created = j.bare.pod.created
	}
	if !j.bind.Warm || line == nil || created.IsZero() {
		return
	}
	var since *entry[poolState]
	for i := range line.entries {
		e := &line.entries[i]
		if !e.first.Before(j.p.rv) {
			break
		}
		switch at := e.state.restartedAt(); {
		case at.IsZero() || created.After(at) || at.After(e.seen) && at.Add(skew).After(j.p.seen):
			since = nil
		case since == nil:
			since = e
		}
	}
	if since == nil {
		return
	}
	j.bind.StaleSince = since.first
	class, why := j.order(changeOf(since))
	j.bind.add(class, ReasonStaleRevision, "created at %s, before the restart at %s (%s)", created.UTC().Format(time.RFC3339), since.state.restarted, why)
}

func cannotCompare(d demands, newest demand, got runs, rv RV) string {
	switch {
	case got.err != nil:
		return fmt.Sprintf("the sandbox's content: %v", got.err)
	case newest.err != nil && newest.rv == "":
		return fmt.Sprintf("template %s: %v", newest.template, newest.err)
	case newest.err != nil:
		return fmt.Sprintf("template %s@%s: %v", newest.template, newest.rv, newest.err)
	case got.refers && got.pod == nil && d.adds == addsNothing:
		return "there was no Pod that shows what the claim got"
	case got.refers && got.pod == nil:
		return "the sandbox names a template, and there was no Pod that shows what was in it"
	case !d.certain(rv, newest.template):
		return "events of the pool or the template were lost just before it"
	}
	return ""
}

func revisionOf(c *content) Revision { return Revision{Digest: c.digest} }

func (d demand) revision() Revision {
	r := Revision{Template: d.template, RV: d.rv}
	if d.content != nil {
		r.Digest = d.content.digest
	}
	return r
}

// stale attributes content that is not in force to the revision it equals, finds the update since which it is stale, and
// decides by the order of writes whether the bind was admitted after that.
func (j *judging) stale(d demands, list []demand, equals func(*content) bool) {
	k := 1
	for k < len(list) && !equals(list[k].content) {
		k++
	}
	if k < len(list) {
		j.bind.Found = list[k].revision()
	} else if r, ok := j.nameElsewhere(d, equals); ok {
		j.bind.Found = r
	}
	reason := ReasonStaleRevision
	switch {
	case j.bind.Found.Template == "":
		reason = ReasonUnknownRevision
	case j.bind.Found.Template != j.bind.Expected.Template:
		reason = ReasonTemplateMismatch
	}
	since := list[k-1].since
	j.bind.StaleSince = since.hi
	if since.exact() {
		j.bind.StaleFor = Seconds(j.p.seen.Sub(since.seen))
	}
	class, why := j.order(since)
	if class == Stale && !j.askedAfter(since) && j.soundOnce(list) {
		class, why = Raced, "it became so while the bind was under way"
	}
	message := fmt.Sprintf("runs %s, in force was %s", j.bind.Found, j.bind.Expected)
	if list[0].refusal != "" {
		message = fmt.Sprintf("runs %s, though %s", j.bind.Found, list[0].refusal)
	}
	if j.bind.Difference != "" {
		message += ": " + j.bind.Difference
	}
	j.bind.add(class, reason, "%s (%s)", message, why)
}

// order decides between Stale and Raced, and lets the pool's own choice stand.
func (j *judging) order(since change) (Class, string) {
	now, earlier := j.tolerance()
	if now {
		return Tolerated, "the pool's strategy is " + j.bind.Strategy
	}
	m := j.admit
	switch {
	case !m.lo.Before(since.hi):
		if earlier {
			return Raced, "the pool's strategy changed while the bind was under way"
		}
		return Stale, fmt.Sprintf("updated at rv %s, bind admitted after rv %s", since.hi, m.lo)
	case j.askedAfter(since):
		return Stale, fmt.Sprintf("updated at rv %s, seen at %s, taken at %s", since.hi, since.seen.UTC().Format(time.RFC3339), j.now.taken)
	case since.exact() && m.hi.Before(since.hi), !since.exact() && !since.lo.Before(m.hi):
		return Raced, fmt.Sprintf("updated at rv %s, between rv %s and the bind at rv %s", since.hi, m.hi, j.p.rv)
	}
	return Unjudged, "whether the update came before the bind was admitted is not in the recording"
}

// nameElsewhere looks for a template version of the namespace, of any template, that renders to the content.
func (j *judging) nameElsewhere(d demands, equals func(*content) bool) (Revision, bool) {
	for _, key := range j.h.templateNames(d.namespace) {
		line := j.h.templates[key]
		for i := len(line.entries) - 1; i >= 0; i-- {
			e := line.entries[i]
			if e.gone || e.state.err != nil {
				continue
			}
			one := demand{template: key.name, rv: e.first, content: d.made(e.state)}
			if d.cold != nil {
				one = d.coldAt(one, e.state, j.p.rv)
			}
			if one.err == nil && equals(one.content) {
				return one.revision(), true
			}
		}
	}
	return Revision{}, false
}

// changedByBind finds a bind that itself wrote another blueprint than the one the member ran with.
func (j *judging) changedByBind() {
	if !j.p.warm {
		return
	}
	if j.now.err != nil {
		j.bind.unjudged("the sandbox's content after the bind: %v", j.now.err)
		return
	}
	if j.asked.may.undo(j.now.content.blueprint, j.prev.state.content.blueprint).equal(j.prev.state.content.blueprint) {
		return
	}
	j.bind.Found = revisionOf(j.now.content)
	j.bind.Difference = difference(j.now.content.blueprint, j.prev.state.content.blueprint)
	j.bind.add(Stale, ReasonBlueprintChanged, "the bind itself changed the blueprint: %s", j.bind.Difference)
}
