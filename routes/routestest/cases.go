package routestest

import (
	"fmt"
	"time"
)

// Case is a named test of one weakness.
type Case struct {
	Name string
	// About says what goes wrong where the test fails.
	About string
	Run   func(NewTable) error
}

// scene is a cluster and one table in it.
type scene struct {
	*world
	*plane
	err error
}

const maxAge = 5 * time.Second

func newScene(newTable NewTable, namespaces ...string) *scene {
	w := newWorld(4)
	s := &scene{world: w, plane: newPlane("the table", w, newTable, maxAge, namespaces...)}
	s.list()
	return s
}

func (s *scene) sandbox(key string) *Sandbox { return s.sandboxes[key] }

func (s *scene) pass(d time.Duration) { s.clock.now = s.clock.now.Add(d) }

// settle delivers everything, and time passes.
func (s *scene) settle() {
	s.pass(time.Millisecond)
	s.quiet()
}

// late delivers an event once more, or out of turn.
func (s *scene) late(e *entry) { s.table.Apply(e.event) }

// lastOf returns the last event of one kind and type about s1, the sandbox or
// its Pod.
func (s *scene) lastOf(kind int, typ EventType) *entry {
	const name = "s1"
	for i := len(s.past) - 1; i >= 0; i-- {
		e := s.past[i]
		if e.kind == kind && e.event.Type == typ &&
			(kind == sandboxes && e.event.Sandbox.Name == name || kind == pods && e.event.Pod.Name == name) {
			return e
		}
	}
	panic("routestest: no such event")
}

func (s *scene) want(id, ip, when string) {
	got, ok := s.table.Lookup(id)
	if s.err == nil && (!ok || got != ip) {
		s.err = fmt.Errorf("%s: %s is sent to %q, want %q", when, id, got, ip)
	}
}

func (s *scene) wantNone(id, when string) {
	if got, ok := s.table.Lookup(id); s.err == nil && ok {
		s.err = fmt.Errorf("%s: %s is sent to %q, want nowhere", when, id, got)
	}
}

func (s *scene) served(id string) bool {
	_, ok := s.table.Lookup(id)
	return ok
}

// running makes a/s1 run, seen by the table.
func (s *scene) running() (id, ip string) {
	s.create("a", "s1")
	s.settle()
	ip = s.sandbox("a/s1").PodIP
	s.table.Apply(Event{Type: Proven, At: s.clock.now})
	s.want("a--s1", ip, "at first")
	return "a--s1", ip
}

func (s *scene) lastMessage(state string) Message {
	for i := len(s.messages) - 1; i >= 0; i-- {
		if s.messages[i].State == state {
			return s.messages[i]
		}
	}
	panic("routestest: no such message")
}

// Cases returns the named tests.
func Cases() []Case {
	var cases []Case
	for _, c := range []struct {
		name, about string
		run         func(*scene)
	}{
		{"late-event-after-delete", "A delete keeps no version: the next event, however old, is a first write and wins (openkruise/agents#492).", lateEventAfterDelete},
		{"late-event-long-after-delete", "Fences expire: what is late enough brings a deleted route back.", lateEventLongAfterDelete},
		{"stale-push-after-restart", "An empty table takes a push for a sandbox that was deleted long ago; its watch never says so, for it never saw it.", stalePushAfterRestart},
		{"push-between-last-seen-and-deletion", "A deletion whose version is not known is fenced at the last version seen: a push of a later one revives the route.", pushBetween},
		{"status-update-after-dead-push", "A dead push fences at the version from before the delete: a status update from in between brings the route back.", statusAfterDeadPush},
		{"forged-version", "One push with a huge version pins a route: true updates and deletes are older.", forgedVersion},
		{"recycled-sandbox-old-id", "A recycled sandbox has UID, Pod and IP of before: the old user's ID reaches the next user.", recycledSandbox},
		{"id-takeover-ends", "After a sandbox with somebody else's ID is gone, the rightful one is not served.", idTakeover},
		{"etcd-restored", "Versions go back when etcd is restored: everything true is older, and ignored.", etcdRestored},
		{"updates-lost", "A watch that hangs and pushes that are lost: the view grows old without bound, and is served.", updatesLost},
		{"push-outside-scope", "A push for a namespace that the watch does not cover adds a route that nothing deletes.", pushOutsideScope},
		{"address-reused", "Another Pod has the IP: the older route to it is still served.", addressReused},
		{"pod-disowned", "A Pod names another owner by the UID of its own: nobody withdraws the route once it is gone, and its IP is somebody else's.", podDisowned},
		{"shutdown-time-passed", "The sandbox's time is over, and no event says so.", shutdownTimePassed},
		{"paused-is-kept-not-served", "A paused sandbox is not served, and is again once it runs elsewhere.", pausedIsKept},
		{"incomplete-view-after-restart", "After a restart something is served before the list is complete.", incompleteView},
		{"late-event-of-old-pod", "A late event of an old Pod removes the new Pod's route (agent-sandbox#1397).", lateEventOfOldPod},
		{"terminating-pod", "A Pod with a deletionTimestamp is served as long as it is ready.", terminatingPod},
		{"not-ready-for-a-while", "A sandbox that is not ready for a while is taken for deleted, and never comes back.", notReadyForAWhile},
		{"id-copied", "A sandbox of another namespace takes an ID that it copied, or inherits it.", idCopied},
		{"names-look-alike", "Two names make one ID, and the sandbox of one is sent the traffic of the other.", namesLookAlike},
		{"clock-ahead", "A proof from a clock that is ahead keeps a late view in service.", clockAhead},
		{"late-delete-of-earlier-sandbox", "A late delete of a sandbox removes the route of the next one with its name.", lateDelete},
	} {
		cases = append(cases, Case{Name: c.name, About: c.about, Run: func(newTable NewTable) error {
			var namespaces []string
			if c.name == "push-outside-scope" {
				namespaces = []string{"a"}
			}
			s := newScene(newTable, namespaces...)
			c.run(s)
			return s.err
		}})
	}
	return cases
}

func lateEventAfterDelete(s *scene) {
	id, _ := s.running()
	s.delete(s.sandbox("a/s1"))
	s.settle()
	s.wantNone(id, "after the delete")
	s.late(s.lastOf(sandboxes, Changed))
	s.late(s.lastOf(pods, Changed))
	s.wantNone(id, "after late events")
}

func lateEventLongAfterDelete(s *scene) {
	id, _ := s.running()
	stale := s.lastMessage("running")
	s.delete(s.sandbox("a/s1"))
	s.settle()
	for range 3 {
		s.pass(6 * time.Minute)
		s.create("a", "other")
		s.delete(s.sandbox("a/other"))
		s.settle()
	}
	s.create("a", "s2")
	s.settle()
	s.late(s.lastOf(sandboxes, Changed))
	s.late(s.lastOf(pods, Changed))
	s.wantNone(id, "after late events")
	s.table.Refresh(stale)
	s.wantNone(id, "after a late push")
}

func stalePushAfterRestart(s *scene) {
	id, _ := s.running()
	stale := s.lastMessage("running")
	s.delete(s.sandbox("a/s1"))
	s.settle()
	s.restart()
	s.table.Refresh(stale)
	s.list()
	s.settle()
	s.wantNone(id, "after a push during the start")
	s.table.Refresh(stale)
	s.wantNone(id, "after a push")
}

func pushBetween(s *scene) {
	id, _ := s.running()
	s.putSandbox(*s.sandbox("a/s1"))
	s.push(s.sandbox("a/s1"), "running")
	stale := s.lastMessage("running")
	s.delete(s.sandbox("a/s1"))
	s.list()
	s.settle()
	s.wantNone(id, "after a list without it")
	s.table.Refresh(stale)
	s.wantNone(id, "after a push from before the deletion")
}

// statusAfterDeadPush lets a table serve the sandbox until its own watch says
// that it is gone, but not again after it has stopped.
func statusAfterDeadPush(s *scene) {
	id, _ := s.running()
	s.push(s.sandbox("a/s1"), "dead")
	s.putSandbox(*s.sandbox("a/s1"))
	s.delete(s.sandbox("a/s1"))
	s.table.Refresh(s.messages[len(s.messages)-2])
	if s.served(id) {
		return
	}
	s.deliver(sandboxes, 1)
	s.wantNone(id, "after a status update from before the delete")
}

func recycledSandbox(s *scene) {
	id, ip := s.running()
	s.table.Refresh(s.lastMessage("running"))
	s.recycle(s.sandbox("a/s1"), "short-1")
	s.table.Refresh(s.lastMessage("dead"))
	s.settle()
	s.want("short-1", ip, "the new user's ID")
	s.wantNone(id, "the old user's ID")
	s.recycle(s.sandbox("a/s1"), "")
	s.settle()
	s.wantNone(id, "the old user's ID, when the next user has no ID of his own")
	s.wantNone("short-1", "the second user's ID")
}

func etcdRestored(s *scene) {
	id, _ := s.running()
	s.save()
	for range 5 {
		s.pause(s.sandbox("a/s1"))
		s.resume(s.sandbox("a/s1"))
	}
	s.settle()
	s.restore()
	s.pause(s.sandbox("a/s1"))
	s.create("a", "other")
	s.resume(s.sandbox("a/s1"))
	s.pass(2 * maxAge)
	s.list()
	s.settle()
	s.want(id, s.sandbox("a/s1").PodIP, "after the restore")
	s.delete(s.sandbox("a/s1"))
	s.settle()
	s.wantNone(id, "deleted after the restore")
}

func updatesLost(s *scene) {
	id, ip := s.running()
	s.delete(s.sandbox("a/s1"))
	s.pass(maxAge + time.Second)
	s.wantNone(id, "with a view older than it may be")
	s.create("a", "s1")
	s.settle()
	s.want(id, s.sandbox("a/s1").PodIP, "once the view is young again")
	_ = ip
}

func addressReused(s *scene) {
	id, ip := s.running()
	s.pause(s.sandbox("a/s1"))
	s.create("b", "s2")
	if got := s.sandbox("b/s2").PodIP; got != ip {
		panic("routestest: the IP was not reused")
	}
	// Of the Sandboxes only the new one's events arrive, as from a queue of keys.
	for _, e := range s.log[sandboxes] {
		if e.event.Sandbox.Name == "s2" {
			s.late(e)
		}
	}
	s.deliver(pods, len(s.log[pods]))
	s.wantNone(id, "while another Pod has its IP")
	s.want("b--s2", ip, "the sandbox that has the IP now")
}

func podDisowned(s *scene) {
	id, ip := s.running()
	s.disown(s.sandbox("a/s1"), "gone")
	s.settle()
	s.deletePod(*s.pods["a/s1"])
	s.create("b", "s2")
	if got := s.sandbox("b/s2").PodIP; got != ip {
		panic("routestest: the IP was not reused")
	}
	s.settle()
	s.wantNone(id, "while another Pod has its IP")
	s.want("b--s2", ip, "the sandbox that has the IP now")
}

func shutdownTimePassed(s *scene) {
	s.create("a", "s1")
	o := *s.sandbox("a/s1")
	o.Expires = s.clock.now.Add(time.Minute)
	s.putSandbox(o)
	s.settle()
	s.want("a--s1", o.PodIP, "before its shutdown time")
	s.pass(time.Minute + time.Second)
	s.settle()
	s.wantNone("a--s1", "after its shutdown time")
}

func pausedIsKept(s *scene) {
	id, _ := s.running()
	s.pause(s.sandbox("a/s1"))
	s.table.Refresh(s.lastMessage("paused"))
	s.settle()
	s.wantNone(id, "while paused")
	s.table.Refresh(s.lastMessage("paused"))
	s.create("a", "s2")
	s.resume(s.sandbox("a/s1"))
	s.settle()
	s.want(id, s.sandbox("a/s1").PodIP, "after the resume")
}

func incompleteView(s *scene) {
	id, _ := s.running()
	stale := *s.lastOf(sandboxes, Changed)
	s.restart()
	s.wantNone(id, "after the restart")
	stale.event.FromList = true
	s.late(&stale)
	listed := *s.lastOf(pods, Changed)
	listed.event.FromList = true
	s.late(&listed)
	s.wantNone(id, "while the list goes on")
	s.list()
	s.settle()
	s.want(id, s.sandbox("a/s1").PodIP, "after the list")
}

func lateEventOfOldPod(s *scene) {
	id, _ := s.running()
	old := s.sandbox("a/s1")
	s.startPod(old, "s1-again")
	s.settle()
	ip := s.sandbox("a/s1").PodIP
	s.want(id, ip, "in its new Pod")
	ending := *s.pods["a/s1"]
	ending.Terminating, ending.Ready = true, false
	s.putPod(ending)
	s.settle()
	s.want(id, ip, "after the old Pod began to end")
	s.deletePod(*s.pods["a/s1"])
	s.settle()
	s.want(id, ip, "after the old Pod was deleted")
}

func terminatingPod(s *scene) {
	id, _ := s.running()
	p := *s.pods["a/s1"]
	p.Terminating = true
	s.putPod(p)
	s.settle()
	s.wantNone(id, "while its Pod ends")
}

func lateDelete(s *scene) {
	id, _ := s.running()
	s.delete(s.sandbox("a/s1"))
	s.settle()
	s.create("a", "s2")
	s.create("a", "s1")
	s.settle()
	ip := s.sandbox("a/s1").PodIP
	s.want(id, ip, "after it was created again")
	s.late(s.lastOf(sandboxes, Deleted))
	s.late(s.lastOf(pods, Deleted))
	s.want(id, ip, "after late deletes of the one before")
}

func notReadyForAWhile(s *scene) {
	id, ip := s.running()
	p, o := *s.pods["a/s1"], *s.sandbox("a/s1")
	p.Ready, o.NotReady = false, true
	s.putPod(p)
	s.putSandbox(o)
	s.settle()
	s.wantNone(id, "while it is not ready")
	p.Ready, o.NotReady = true, false
	s.putPod(p)
	s.putSandbox(o)
	s.settle()
	s.want(id, ip, "once it is ready again")
}
