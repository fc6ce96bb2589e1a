package freshness

import "github.com/freshbind/freshbind/internal/revision"

// moreContainers are those that only the Pod has: what admission adds at its
// birth. The API server lets nobody add any later.
var moreContainers = mustParse("podTemplate.spec.containers[*]", "podTemplate.spec.initContainers[*]")

// addedAtBirth are what no edit can add to a Pod, so that an edit vouches for it as
// little as its absence does.
var addedAtBirth = mustParse("podTemplate.spec.containers[*]", "podTemplate.spec.initContainers[*]",
	"podTemplate.spec.volumes[*]", "podTemplate.spec.securityContext")

func mustParse(paths ...string) revision.PathSet {
	set, err := revision.ParsePaths(paths...)
	if err != nil {
		panic(err)
	}
	return set
}

// podIsCurrent compares what runs: edits of a Sandbox never reach an existing Pod
// (kubernetes-sigs/agent-sandbox#612), and a Pod can be edited, or made again by
// hand with the Sandbox as its owner.
//
//   - A Pod that equals an older revision is stale, whoever made it.
//   - Its images are those of the revision in force.
//   - All of it is, once Pod or Sandbox was written to. A Pod that nobody wrote to
//     has what admission added to it at its birth, which may be anything.
//
// API servers before 1.33 count no generations of Pods. There images are all that
// an edit can exchange.
func podIsCurrent(s Snapshot) *Verdict {
	p := s.Pod
	if s.Member.Bare || p == nil || p.ControllerUID != s.Member.UID {
		return nil
	}
	r, edited, imagesOnly := s.rendered().podOnly(), p.Generation > 1, s.Operation == Stored && !p.Whole
	if !imagesOnly {
		if s.work.Count(r.Content, p.Content, s.PodInjected, 1) == 0 {
			return nil
		}
		if v := olderPod(s, r); v != nil {
			return v
		}
	}
	if v := attribute(s, r.images(), p.Content.Images(), moreContainers); v != nil {
		// What was exchanged by hand says nothing of what nobody understands.
		v.Allowed = v.Allowed && (v.Tolerated || !edited)
		if v.Reason == UnknownRevision {
			v.Found = p.Content.Hash()
		}
		return v
	}
	switch {
	case imagesOnly:
		return nil
	case s.Member.Generation != 1:
		return attribute(s, r, p.Content, s.PodInjected)
	case edited:
		return attribute(s, r, p.Content, s.PodInjected.Union(addedAtBirth))
	}
	return nil
}

// olderPod names the older revision that all of the Pod equals.
func olderPod(s Snapshot, r Rendered) *Verdict {
	for _, k := range r.Known {
		if k.Hash == s.Template.Hash || s.work.Count(k.Content, s.Pod.Content, s.PodInjected, 1) > 0 {
			continue
		}
		return tolerate(s, Verdict{
			Reason: StaleRevision, Found: k.Hash, Expected: s.Template.Hash,
			Detail: revision.Summary(s.work.Compare(r.Content, s.Pod.Content, s.PodInjected), maxShown),
		})
	}
	return nil
}

// untouched: who has attached a container to a Pod has worked in it. No template
// has such containers, and none can be taken off again.
func untouched(name string, p *Pod) *Verdict {
	if p.Ephemeral {
		return deny(PodModified, "pod %s has ephemeral containers: somebody worked in it", name)
	}
	return nil
}

// seenUntouched is untouched for the Pod that a cache shows, if it is the member's.
func seenUntouched(s Snapshot) *Verdict {
	if s.Pod == nil || s.Pod.ControllerUID != s.Member.UID {
		return nil
	}
	return untouched(s.Member.PodName, s.Pod)
}

// nothingToAdopt: the Sandbox's controller takes an existing Pod of the Sandbox's
// name for its own, whatever it runs and whoever used it. It does so, too, where the
// Sandbox names another Pod that is not there. No release creates a Sandbox that names
// one, but to run in a bare Pod.
func nothingToAdopt(s Snapshot) *Verdict {
	m := s.Member
	switch {
	case m.Bare:
		return nil
	case m.namesAnotherPod():
		return deny(PodForeign, "sandbox %s names pod %s as its own, and would run in a pod of either name that is there", m.Name, m.PodName)
	case s.Pod == nil:
		return nil
	}
	return deny(PodForeign, "pod %s was there before sandbox %s, which would run in it", m.PodName, m.Name)
}
