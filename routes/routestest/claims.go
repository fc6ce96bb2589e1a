package routestest

import (
	"strconv"
	"time"
)

// These cases are about those who claim what is not theirs, or not true.

func forgedVersion(s *scene) {
	id, ip := s.running()
	forged := s.lastMessage("running")
	forged.IP, forged.Version = "10.6.6.6", strconv.FormatUint(1<<62, 10)
	s.table.Refresh(forged)
	if got, ok := s.table.Lookup(id); ok && got != ip {
		s.want(id, ip, "after a forged push")
	}
	s.delete(s.sandbox("a/s1"))
	s.settle()
	s.wantNone(id, "after a forged push and the delete")
}

func idTakeover(s *scene) {
	s.create("a", "s1")
	mine := *s.sandbox("a/s1")
	mine.ID = "shared"
	s.putSandbox(mine)
	s.settle()
	s.want("shared", mine.PodIP, "at first")
	s.pass(time.Second)
	s.create("b", "s2")
	thief := *s.sandbox("b/s2")
	thief.ID = "shared"
	s.putSandbox(thief)
	s.settle()
	s.delete(s.sandbox("b/s2"))
	s.settle()
	s.want("shared", mine.PodIP, "after the taker is gone")
}

func pushOutsideScope(s *scene) {
	s.running()
	s.create("b", "s2")
	s.table.Refresh(s.lastMessage("running"))
	s.delete(s.sandbox("b/s2"))
	s.wantNone("b--s2", "after a push from another namespace")
}

// idCopied has the copy made by the older of the two sandboxes: neither age nor
// the last write may decide.
func idCopied(s *scene) {
	s.create("b", "s2")
	s.pass(time.Second)
	s.create("a", "s1")
	mine := *s.sandbox("a/s1")
	mine.ID = "short-1"
	s.putSandbox(mine)
	s.settle()
	s.want("short-1", mine.PodIP, "at first")
	thief := *s.sandbox("b/s2")
	thief.ID = "short-1"
	s.putSandbox(thief)
	s.settle()
	s.want("short-1", mine.PodIP, "after it was copied")
	s.delete(s.sandbox("a/s1"))
	s.settle()
	s.putSandbox(thief)
	s.settle()
	s.wantNone("short-1", "after its sandbox is gone")
}

func namesLookAlike(s *scene) {
	s.create("a--b", "c")
	s.settle()
	ip := s.sandbox("a--b/c").PodIP
	s.want("a--b--c", ip, "at first")
	s.pass(time.Second)
	s.create("a", "b--c")
	s.settle()
	s.want("a--b--c", ip, "beside a/b--c")
	s.delete(s.sandbox("a--b/c"))
	s.settle()
	s.putSandbox(*s.sandbox("a/b--c"))
	s.settle()
	s.wantNone("a--b--c", "after a--b/c is gone")
}

func clockAhead(s *scene) {
	id, ip := s.running()
	s.table.Apply(Event{Type: Proven, At: s.clock.now.Add(time.Hour)})
	s.pass(maxAge + time.Second)
	s.wantNone(id, "with a view older than it may be")
	s.settle()
	s.want(id, ip, "once the view is young again")
}
