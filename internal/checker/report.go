package checker

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Seconds is a duration that JSON shows as a number of seconds.
type Seconds time.Duration

// MarshalJSON writes the number of seconds, to the millisecond.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(time.Duration(s).Round(time.Millisecond).Milliseconds())/1000, 'f', -1, 64), nil
}

// Summary counts what happened in one namespace.
type Summary struct {
	Namespace string `json:"namespace"`
	// Mode is the namespace's label freshbind.dev/enforcement; empty where it says nothing.
	Mode string `json:"mode,omitempty"`
	// Claims counts those created, or first bound, while the recording ran; Warm and Cold their binds; Ready those that
	// became ready.
	Claims int `json:"claims"`
	Warm   int `json:"warm"`
	Cold   int `json:"cold"`
	Ready  int `json:"ready"`
	// Classes counts binds by finding: a bind with several findings counts under each of them, one without any as Fresh.
	Classes map[Class]int `json:"classes"`
	// ReadyP50 and ReadyP99 are the time from the claim's CREATE to its being ready, as the recorder saw both.
	ReadyP50 Seconds `json:"readyP50Seconds"`
	ReadyP99 Seconds `json:"readyP99Seconds"`
	// Births counts members created by pools, StaleBirths those that were not what the pool's template said at that moment.
	Births      int `json:"births"`
	StaleBirths int `json:"staleBirths"`
	// MemberDeletes counts members deleted before any claim had them, Hidden how often a member lost one of the labels
	// without which agent-sandbox passes it over.
	MemberDeletes int `json:"memberDeletes"`
	Hidden        int `json:"hidden"`
	// ColdBesideReady counts cold starts of claims that a member could have served which had long been ready: the symptom
	// of ghosts.
	ColdBesideReady int `json:"coldBesideReady"`
	// BoundBefore counts Sandboxes that had a claim when the recording began: how they were bound is not known.
	BoundBefore int `json:"boundBefore"`

	latencies []time.Duration
}

// Bad counts findings that are Stale or worse.
func (s Summary) Bad() int {
	n := 0
	for class, count := range s.Classes {
		if class.Bad() {
			n += count
		}
	}
	return n
}

// ClaimRecord is what became of one claim.
type ClaimRecord struct {
	Namespace string
	Claim     Ref
	// CreatedRV is empty for a claim that was there when the recording began, BoundRV for one that was never bound.
	CreatedRV, BoundRV, ReadyRV RV
	// As the recorder saw them.
	CreatedSeen, BoundSeen, ReadySeen time.Time
	// Created is metadata.creationTimestamp, to the second.
	Created time.Time
	Warm    bool
}

// Report is the judgement of a history.
type Report struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// SinceRV is the resourceVersion from which all resources are known; empty before the recording's start is complete.
	SinceRV    RV        `json:"sinceResourceVersion,omitempty"`
	Namespaces []Summary `json:"namespaces"`
	// Findings are the binds that are not Fresh, in the order in which they were stored.
	Findings []Bind `json:"findings"`
	// EventGaps are spans without events. For them, the absence of findings proves nothing.
	EventGaps []EventGap `json:"lostEvents,omitempty"`
	// Unsettled counts binds that were judged before all events up to them had arrived.
	Unsettled int `json:"unsettled,omitempty"`

	// Missing says what a log does not hold of what the judgement takes, and what that means.
	Missing []string `json:"missing,omitempty"`

	// Binds are all binds, and Claims all claims, that the history still holds.
	Binds  []Bind        `json:"-"`
	Claims []ClaimRecord `json:"-"`
}

// Bad counts findings that are Stale or worse.
func (r *Report) Bad() int {
	n := 0
	for _, s := range r.Namespaces {
		n += s.Bad()
	}
	return n
}

// Namespace returns the summary of one namespace, empty if nothing happened there.
func (r *Report) Namespace(namespace string) Summary {
	for _, s := range r.Namespaces {
		if s.Namespace == namespace {
			return s
		}
	}
	return Summary{Namespace: namespace, Classes: map[Class]int{}}
}

// Judge decides every bind of the history. It can be called again as the history grows.
func (h *History) Judge() *Report {
	r := &Report{Since: h.since, Until: h.until, EventGaps: h.EventGaps(), Findings: slices.Clone(h.findings), Binds: slices.Clone(h.kept)}
	r.SinceRV, _ = h.Synced()
	sums := h.summaries()
	for _, p := range h.bound() {
		b := h.judgeBind(p)
		r.Binds = append(r.Binds, b)
		if b.Class != Fresh {
			r.Findings = append(r.Findings, b)
		}
		if b.Unsettled {
			r.Unsettled++
		}
		sums.of(b.Namespace).countBind(b)
	}
	slices.SortStableFunc(r.Findings, func(a, b Bind) int { return a.RV.compare(b.RV) })
	bound := firstBinds(r.Binds)
	for _, uid := range h.claimUIDs() {
		if c, counts := h.claimRecord(uid, bound); counts {
			r.Claims = append(r.Claims, c)
			sums.of(c.Namespace).countClaim(c)
		}
	}
	h.countMembers(sums)
	r.Namespaces = sums.finish()
	return r
}

// Take returns judgements that were not taken before: of binds that are settled, and of those seen before the deadline even
// if they are not. The latter may turn out otherwise in the end.
func (h *History) Take(deadline time.Time) []Bind {
	var out []Bind
	for _, p := range h.bound() {
		if !p.taken && (h.Settled(p.rv) || p.seen.Before(deadline)) {
			p.taken = true
			out = append(out, h.judgeBind(p))
		}
	}
	return out
}

// bound are the binds among what may be one.
func (h *History) bound() []*pending {
	var out []*pending
	for _, p := range h.binds {
		if h.isBind(p) {
			out = append(out, p)
		}
	}
	return out
}

func (h *History) judgeBind(p *pending) Bind {
	if p.final == nil {
		b := h.judge(p)
		b.BesideReady = h.coldBesideReady(p)
		h.outlived(&b, p)
		return b
	}
	b := *p.final
	if !p.ended {
		h.outlived(&b, p)
	}
	return b
}

type summaries map[string]*Summary

func (m summaries) of(namespace string) *Summary {
	s, ok := m[namespace]
	if !ok {
		s = &Summary{Namespace: namespace, Classes: map[Class]int{}}
		m[namespace] = s
	}
	return s
}

// summaries starts from what was counted of objects that are no longer kept.
func (h *History) summaries() summaries {
	out := summaries{}
	for ns, s := range h.closed {
		c := *s
		c.Classes = maps.Clone(s.Classes)
		c.latencies = slices.Clone(s.latencies)
		out[ns] = &c
	}
	for _, ns := range h.namespacesSeen() {
		s := out.of(ns)
		s.BoundBefore = h.boundBefore[ns]
		if e, ok := h.namespaces[ns].latest(); ok {
			s.Mode = h.options.mode(e.state)
		}
	}
	return out
}

func (m summaries) finish() []Summary {
	out := make([]Summary, 0, len(m))
	for _, ns := range sortedKeys(m) {
		s := m[ns]
		s.ReadyP50, s.ReadyP99 = Seconds(Percentile(s.latencies, 50)), Seconds(Percentile(s.latencies, 99))
		out = append(out, *s)
	}
	return out
}

// Percentile is the nearest-rank percentile p, from 1 to 100, of values in any order; 0 for none.
func Percentile(values []time.Duration, p int) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)*p+99)/100-1]
}

func (s *Summary) countBind(b Bind) {
	if b.Warm {
		s.Warm++
	} else {
		s.Cold++
	}
	if b.BesideReady {
		s.ColdBesideReady++
	}
	if len(b.Findings) == 0 {
		s.Classes[Fresh]++
	}
	counted := map[Class]bool{}
	for _, f := range b.Findings {
		if !counted[f.Class] {
			counted[f.Class] = true
			s.Classes[f.Class]++
		}
	}
}

func (s *Summary) countClaim(c ClaimRecord) {
	s.Claims++
	if c.ReadyRV == "" {
		return
	}
	s.Ready++
	if !c.CreatedSeen.IsZero() {
		s.latencies = append(s.latencies, c.ReadySeen.Sub(c.CreatedSeen))
	}
}

// String is the summary in one line, for logs and failed tests.
func (s Summary) String() string {
	line := fmt.Sprintf("%s: claims=%d ready=%d warm=%d cold=%d", s.Namespace, s.Claims, s.Ready, s.Warm, s.Cold)
	for _, c := range Classes() {
		if s.Classes[c] > 0 {
			line += fmt.Sprintf(" %s=%d", c, s.Classes[c])
		}
	}
	return line
}
