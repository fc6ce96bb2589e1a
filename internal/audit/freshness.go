package audit

import "fmt"

// runs is what a claim got: the Sandbox's content, and the Pod where that may have been made from another one.
type runs struct {
	name    string // of the Sandbox
	content *content
	err     error
	pod     *podState
}

// got reads a warm bind from the version before it, a cold start from what was created. While a member's generation is 1
// its Pod was made from this very spec; after an edit the Pod has to be looked at itself.
func (j *judging) got() runs {
	if !j.p.warm {
		return runs{name: j.sandbox.name, content: j.now.content, err: j.now.err}
	}
	out := runs{name: j.sandbox.name, content: j.prev.state.content, err: j.prev.state.err}
	if j.prev.state.generation == 1 {
		return out
	}
	for _, uid := range j.h.podsOfSandbox[j.p.sandbox] {
		o := j.h.pods[uid]
		if o == nil || o.name != j.prev.state.podName {
			continue
		}
		if e, ok := o.line.before(j.p.rv); ok && !e.gone && e.state.sandbox == j.p.sandbox {
			out.pod = &e.state
		}
	}
	return out
}

func (r runs) matches(c *content) bool { return c != nil && r.content.equal(c.blueprint) }

// podDiffers is "" where the Pod holds what the content says, or where there is no Pod to look at.
func (r runs) podDiffers(c *content) (string, error) {
	if r.pod == nil || c == nil {
		return "", nil
	}
	return podDifference(*r.pod, r.name, c)
}

// demands says whose wishes the Sandbox had to meet.
func (j *judging) demands() (demands, bool) {
	d := demands{h: j.h, namespace: j.bind.Namespace, pool: j.bind.Pool}
	if !j.p.warm {
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
		j.bind.add(Unjudged, "neither the claim nor its sandbox names a pool")
		return
	}
	list := d.before(j.p.rv)
	if len(list) == 0 {
		j.bind.add(Unjudged, "pool %s is not in the recording", d.pool)
		return
	}
	newest, got := list[0], j.got()
	if why := cannotCompare(d, newest, got, j.p.rv); why != "" {
		j.bind.add(Unjudged, "%s", why)
		return
	}
	j.bind.Expected = newest.revision()
	podDiffers, err := got.podDiffers(newest.content)
	switch {
	case err != nil:
		j.bind.add(Unjudged, "%v", err)
	case !got.matches(newest.content):
		j.bind.Found = revisionOf(got.content)
		if newest.content != nil {
			j.bind.Difference = difference(got.content.blueprint, newest.content.blueprint)
		}
		j.stale(d, list, got.matches)
	case podDiffers != "":
		j.bind.Difference = "pod: " + podDiffers
		j.stale(d, list, func(c *content) bool {
			differs, err := got.podDiffers(c)
			return c != nil && err == nil && differs == ""
		})
	default:
		j.bind.Found = j.bind.Expected
		j.changedByBind(newest)
	}
}

func cannotCompare(d demands, newest demand, got runs, rv RV) string {
	switch {
	case got.err != nil:
		return fmt.Sprintf("the sandbox's content: %v", got.err)
	case newest.err != nil:
		return fmt.Sprintf("template %s@%s: %v", newest.template, newest.rv, newest.err)
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
	since := list[k-1].since
	j.bind.StaleSince = since.hi
	if since.exact() {
		j.bind.StaleFor = Seconds(j.p.seen.Sub(since.seen))
	}
	class, why := j.order(since)
	message := fmt.Sprintf("runs %s, in force was %s", j.bind.Found, j.bind.Expected)
	if list[0].refusal != "" {
		message = fmt.Sprintf("runs %s, though %s", j.bind.Found, list[0].refusal)
	}
	if j.bind.Difference != "" {
		message += ": " + j.bind.Difference
	}
	j.bind.add(class, "%s (%s)", message, why)
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
			one := demand{template: key.name, rv: e.first, content: e.state.member}
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
func (j *judging) changedByBind(newest demand) {
	if !j.p.warm {
		return
	}
	if j.now.err != nil {
		j.bind.add(Unjudged, "the sandbox's content after the bind: %v", j.now.err)
		return
	}
	if j.now.content.equal(newest.content.blueprint) {
		return
	}
	j.bind.Found = revisionOf(j.now.content)
	j.bind.Difference = difference(j.now.content.blueprint, newest.content.blueprint)
	j.bind.add(Stale, "the bind itself changed the blueprint: %s", j.bind.Difference)
}
