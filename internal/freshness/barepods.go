package freshness

import "github.com/freshbind/freshbind/internal/revision"

// Rendered is what the template in force renders to, and the revisions before
// it, rendered alike.
type Rendered struct {
	Content revision.Blueprint
	Known   []Known
}

func (s Snapshot) rendered() Rendered { return Rendered{s.Template.Content, s.Known} }

func (r Rendered) podOnly() Rendered {
	out := Rendered{Content: r.Content.PodOnly(), Known: make([]Known, len(r.Known))}
	for i, k := range r.Known {
		out.Known[i] = Known{Hash: k.Hash, Content: k.Content.PodOnly()}
	}
	return out
}

func (r Rendered) images() Rendered {
	out := Rendered{Content: r.Content.Images(), Known: make([]Known, len(r.Known))}
	for i, k := range r.Known {
		out.Known[i] = Known{Hash: k.Hash, Content: k.Content.Images()}
	}
	return out
}

// takenLives judges the bare Pod that a Sandbox is to run in. It has left its
// pool already, so what it belongs to was judged then; since then another claim
// may have taken it (kubernetes-sigs/agent-sandbox#431).
func takenLives(s Snapshot) *Verdict {
	name, p := s.Member.PodName, s.Pod
	switch {
	case p == nil:
		return deny(PodFinished, "pod %s is gone", name)
	case p.ControllerUID != "":
		return deny(PodForeign, "pod %s belongs to something else", name)
	case p.ClaimUID != "" && p.ClaimUID != s.ClaimRef.UID:
		return deny(MemberClaimed, "pod %s was given to another claim", name)
	}
	return podGoesOn(name, p)
}

// takenIsCurrent judges what really runs: the Sandbox itself is rendered from
// the template of the moment, however old the Pod (kubernetes-sigs/agent-sandbox#311).
func takenIsCurrent(s Snapshot) *Verdict {
	return attribute(s, s.Plain.podOnly(), s.Pod.Content, s.PodInjected)
}
