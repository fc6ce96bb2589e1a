package checker

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// demand is what a Sandbox had to be made of, from the RV since on, until the next demand.
type demand struct {
	since change
	// template and rv name the template version; rv is empty where the template has never been seen.
	template string
	rv       RV
	content  *content
	// refusal says why nothing would be built at all: a template that never was, or one that refuses the claim.
	refusal string
	// gone: the template was not there; what it said last is what is demanded.
	gone bool
	err  error
}

// change is the moment at which a demand began: exactly at hi, or somewhere after lo if the recording missed it.
type change struct {
	bound
	seen time.Time
}

func (c change) exact() bool { return c.lo == c.hi }

// demands lists what the pool (or the claim itself) demanded until just before rv, the newest first. cold is the claim
// when the rendering depends on it.
type demands struct {
	h         *History
	namespace string
	pool      string // "" when the claim names its template itself
	template  string
	cold      *object[claimState]
	adds      additions
}

// additions are the secure defaults that a release adds to what a template says.
type additions uint8

const (
	addsAll     additions = iota
	addsToken             // v0.1.1: automountServiceAccountToken, and nothing about DNS
	addsNothing           // v0.1.0; and any release to bare Pods
)

// made is what members are made of where a template says this.
func (d demands) made(template templateState) *content {
	switch d.adds {
	case addsNothing:
		return template.plain
	case addsToken:
		return template.token
	}
	return template.member
}

var errNotWritten = errors.New("what it said is not known: no write to it is in the log")

// before evaluates the demand at every change of pool, template or claim that is older than rv. What was deleted counts
// with its last content: as long as nothing else is in force, nothing newer has been asked for.
func (d demands) before(rv RV) []demand {
	var out []demand
	for _, at := range slices.Backward(d.changes(rv)) {
		if one, ok := d.at(at.hi); ok {
			one.since = at
			out = append(out, one)
		}
	}
	return out
}

// newest is the demand in force just before rv.
func (d demands) newest(rv RV) (demand, bool) {
	for _, at := range slices.Backward(d.changes(rv)) {
		if one, ok := d.at(at.hi); ok {
			return one, true
		}
	}
	return demand{}, false
}

func (d demands) changes(rv RV) []change {
	var out []change
	if d.pool == "" {
		out = collect(out, d.h.templates[name{d.namespace, d.template}], rv)
	}
	line := d.h.pools[name{d.namespace, d.pool}]
	out = collect(out, line, rv)
	for _, template := range d.templatesOf(line) {
		out = collect(out, d.h.templates[name{d.namespace, template}], rv)
	}
	if d.cold != nil {
		out = collect(out, &d.cold.line, rv)
	}
	slices.SortStableFunc(out, func(a, b change) int { return a.hi.compare(b.hi) })
	// One LIST may have found several of them gone.
	return slices.CompactFunc(out, func(a, b change) bool { return a.hi == b.hi })
}

func (d demands) templatesOf(line *timeline[poolState]) []string {
	if line == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, e := range line.entries {
		seen[e.state.template] = true
	}
	return sortedKeys(seen)
}

func collect[S any](into []change, line *timeline[S], rv RV) []change {
	if line == nil {
		return into
	}
	for i := range line.entries {
		e := &line.entries[i]
		if !e.first.Before(rv) {
			break
		}
		into = append(into, changeOf(e))
	}
	return into
}

func changeOf[S any](e *entry[S]) change {
	c := change{bound{lo: e.first, hi: e.first}, e.seen}
	if e.inexact {
		c.lo = e.after
	}
	return c
}

// at is the demand in force at rv; not ok before the pool existed, or where the recording does not know the template yet.
func (d demands) at(rv RV) (demand, bool) {
	template := d.template
	if d.pool != "" {
		e, ok := d.h.pools[name{d.namespace, d.pool}].at(rv)
		if !ok {
			return demand{}, false
		}
		template = e.state.template
	}
	out := demand{template: template}
	line := d.h.templates[name{d.namespace, template}]
	e, ok := line.at(rv)
	if line == nil && d.h.options.Partial {
		out.err = errNotWritten
		return out, true
	}
	if !ok {
		out.refusal = fmt.Sprintf("template %s did not exist", template)
		return out, !line.missed(rv)
	}
	if out.gone = e.gone; e.gone {
		if e, ok = lastStored(line, e.first); !ok {
			out.refusal = fmt.Sprintf("template %s did not exist", template)
			return out, true
		}
	}
	out.rv, out.content, out.err = e.first, d.made(e.state), e.state.err
	if d.cold == nil || out.err != nil {
		return out, true
	}
	return d.coldAt(out, e.state, rv), true
}

// lastStored returns the last version before rv that was not a deletion.
func lastStored[S any](line *timeline[S], rv RV) (*entry[S], bool) {
	for i := len(line.entries) - 1; i >= 0; i-- {
		if e := &line.entries[i]; e.first.Before(rv) && !e.gone {
			return e, true
		}
	}
	return nil, false
}

func (d demands) coldAt(out demand, template templateState, rv RV) demand {
	claim, ok := d.cold.line.at(rv)
	if !ok {
		claim = &d.cold.line.entries[0]
	}
	if out.err = claim.state.err; out.err != nil {
		return out
	}
	if len(claim.state.env) == 0 && len(claim.state.volumes) == 0 {
		return out // it asks for nothing of its own, and gets what a pool builds
	}
	b, err := renderCold(template.blueprint, template.policies, claim.state)
	if err != nil {
		out.content, out.refusal = nil, err.Error()
		return out
	}
	out.content, out.err = newContent(b)
	return out
}

// certain reports whether what was in force at rv is known.
func (d demands) certain(rv RV, template string) bool {
	return d.h.pools[name{d.namespace, d.pool}].certain(rv) && d.h.templates[name{d.namespace, template}].certain(rv)
}
