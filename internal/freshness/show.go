package freshness

import "slices"

// hiddenLongEnough reports whether a member that is to go was hidden for as long as it
// has to be. One that is given to claims until it goes cannot be, and one that cannot
// be written to might never be.
func (p *planner) hiddenLongEnough(m MemberState) bool {
	if p.HiddenFirst == 0 || !p.Hideable || m.WriteFailed || p.served(m) {
		return true
	}
	if m.Shown {
		return false
	}
	wait := m.HiddenSince.Add(p.HiddenFirst).Sub(p.Now)
	p.again(wait)
	return wait <= 0
}

// served reports whether claims may be given the member.
func (p *planner) served(m MemberState) bool {
	switch {
	case m.Class == Current && m.ReadySince.IsZero() && p.plan.Admit == AdmitAny && (!m.Shown || p.oldServe()):
		// Whoever got it would wait, for ever if none of its revision starts. Once
		// hidden it stays so until it is ready, however often the old come and go.
		return false
	case m.Class == Current, m.Class == Unclassified, m.Class == Unknown && p.Suspended:
		return true
	case m.Class == Unusable, m.Class == Former:
		return false
	}
	return !p.Withholds && ServesStale(p.Strategy, p.plan.Admit == AdmitAny)
}

// mayServe reports whether the member is to be replaced and claims could be given
// it until then.
func (p *planner) mayServe(m MemberState) bool { return p.outdated(m) && m.Class != Former }

// oldServe reports whether there is a ready one among the members to replace.
func (p *planner) oldServe() bool {
	return slices.ContainsFunc(p.Members, func(m MemberState) bool { return p.mayServe(m) && !m.ReadySince.IsZero() })
}

func (p *planner) show() {
	goes := map[int]bool{}
	for _, i := range p.plan.Delete {
		goes[i] = true
	}
	for i, m := range p.Members {
		served := p.served(m)
		switch {
		case m.Leaving, m.BackedOff:
		case served && !m.Shown:
			p.plan.Show = append(p.plan.Show, i)
		case !served && m.Shown && p.Hideable && !goes[i]:
			p.plan.Hide = append(p.plan.Hide, i)
		}
		if served && !m.Leaving && !m.ReadySince.IsZero() {
			p.plan.Counts.Claimable++
		}
	}
}
