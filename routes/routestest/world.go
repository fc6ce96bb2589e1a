package routestest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

const (
	sandboxes = 0
	pods      = 1
)

// begin is when every history begins.
var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// entry is an event with its place in its kind's log.
type entry struct {
	kind, index int
	event       Event
}

// interval is a time in which an ID truly was at an IP.
type interval struct {
	ip       string
	what     string
	from, to time.Time
	// ended is the event that ended it, in the log of its epoch.
	ended *entry
	epoch int
}

// world is a cluster as etcd has it, with all that ever happened.
type world struct {
	clock     *Clock
	version   uint64
	uids      int
	epoch     int
	sandboxes map[string]*Sandbox
	pods      map[string]*Pod
	ips       []string
	// rest is how long an IP is not used again, freed when each became free.
	rest  time.Duration
	freed map[string]time.Time
	log   [2][]*entry
	// past has the events of all epochs, for those that come late.
	past []*entry
	// messages are what peers pushed.
	messages []Message
	truth    map[string][]*interval
	ids      []string
	// broken makes live reads fail.
	broken bool
	saved  *world
	logf   func(format string, args ...any)
}

func newWorld(ips int) *world {
	w := &world{
		clock: &Clock{now: begin}, version: 1, sandboxes: map[string]*Sandbox{}, pods: map[string]*Pod{}, freed: map[string]time.Time{},
		truth: map[string][]*interval{}, logf: func(string, ...any) {},
	}
	for i := range ips {
		w.ips = append(w.ips, fmt.Sprintf("10.0.0.%d", i+1))
	}
	return w
}

var errRead = errors.New("the API server does not answer")

// ReadSandbox implements Cluster.
func (w *world) ReadSandbox(namespace, name string) (Sandbox, bool, error) {
	if w.broken {
		return Sandbox{}, false, errRead
	}
	if s := w.sandboxes[namespace+"/"+name]; s != nil {
		return *s, true, nil
	}
	return Sandbox{}, false, nil
}

// ReadPod implements Cluster.
func (w *world) ReadPod(namespace, name string) (Pod, bool, error) {
	if w.broken {
		return Pod{}, false, errRead
	}
	if p := w.pods[namespace+"/"+name]; p != nil {
		return *p, true, nil
	}
	return Pod{}, false, nil
}

func (w *world) uid() string {
	w.uids++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", w.uids)
}

func (w *world) record(kind int, e Event) {
	e.Epoch = w.epoch
	n := &entry{kind: kind, index: len(w.log[kind]), event: e}
	w.log[kind] = append(w.log[kind], n)
	w.past = append(w.past, n)
	w.updateTruth(n)
}

func (w *world) putSandbox(s Sandbox) {
	w.version++
	s.Version = w.version
	w.sandboxes[s.Namespace+"/"+s.Name] = &s
	w.record(sandboxes, Event{Type: Changed, Sandbox: &s})
}

func (w *world) putPod(p Pod) {
	w.version++
	p.Version = w.version
	w.pods[p.Namespace+"/"+p.Name] = &p
	w.record(pods, Event{Type: Changed, Pod: &p})
}

func (w *world) deletePod(p Pod) {
	w.version++
	p.Version = w.version
	delete(w.pods, p.Namespace+"/"+p.Name)
	w.freed[p.IP] = w.clock.now
	w.record(pods, Event{Type: Deleted, Pod: &p})
}

func idOf(s *Sandbox) string {
	if s.ID != "" {
		return s.ID
	}
	return s.Namespace + "--" + s.Name
}

// truly returns where an ID is now, and what is there.
func (w *world) truly(s *Sandbox) (ip, what string) {
	if s.State != "running" || s.NotReady || s.ID == "" && s.Recycled > 0 {
		return "", ""
	}
	p := w.pods[s.Namespace+"/"+s.PodName]
	if p == nil || p.UID != s.PodUID || p.SandboxUID != s.UID || !p.Ready || p.Terminating {
		return "", ""
	}
	return p.IP, s.UID + " " + p.UID + " " + strconv.Itoa(s.Recycled)
}

// updateTruth brings the truth up to date after an event.
func (w *world) updateTruth(n *entry) {
	now := make(map[string][2]string, len(w.sandboxes))
	for _, s := range w.sandboxes {
		if ip, what := w.truly(s); ip != "" && (s.Expires.IsZero() || w.clock.now.Before(s.Expires)) {
			now[idOf(s)] = [2]string{ip, what}
		}
	}
	for id, history := range w.truth {
		last := history[len(history)-1]
		if there := now[id]; last.to.IsZero() && (there[0] != last.ip || there[1] != last.what) {
			last.to, last.ended = w.clock.now, n
		}
	}
	for id, there := range now {
		history := w.truth[id]
		if len(history) > 0 && history[len(history)-1].to.IsZero() {
			continue
		}
		if len(history) == 0 {
			w.ids = append(w.ids, id)
			slices.Sort(w.ids)
		}
		w.truth[id] = append(history, &interval{ip: there[0], what: there[1], from: w.clock.now, epoch: w.epoch})
	}
}

// freeIP returns an IP that no Pod has, the last one that became free first:
// that is the hard case.
func (w *world) freeIP() string {
	used := make(map[string]bool)
	for _, p := range w.pods {
		used[p.IP] = true
	}
	for ip, at := range w.freed {
		used[ip] = used[ip] || w.clock.now.Sub(at) < w.rest
	}
	for i := len(w.past) - 1; i >= 0; i-- {
		if e := w.past[i].event; e.Type == Deleted && e.Pod != nil && !used[e.Pod.IP] {
			return e.Pod.IP
		}
	}
	for _, ip := range w.ips {
		if !used[ip] {
			return ip
		}
	}
	return ""
}

func (w *world) push(s *Sandbox, state string) {
	w.messages = append(w.messages, Message{
		Namespace: s.Namespace, Name: s.Name, ID: idOf(s), UID: s.UID, IP: s.PodIP, State: state, Version: strconv.FormatUint(s.Version, 10),
	})
}

// create makes a sandbox that runs at once.
func (w *world) create(namespace, name string) {
	if w.sandboxes[namespace+"/"+name] != nil || w.freeIP() == "" {
		return
	}
	s := Sandbox{Namespace: namespace, Name: name, UID: w.uid(), State: "creating", Claim: w.uid(), Created: w.clock.now}
	w.putSandbox(s)
	w.startPod(w.sandboxes[namespace+"/"+name], name)
	w.logf("%s/%s is created and runs at %s", namespace, name, w.sandboxes[namespace+"/"+name].PodIP)
}

// startPod gives a sandbox a Pod, and its status follows.
func (w *world) startPod(s *Sandbox, name string) {
	p := Pod{
		Namespace: s.Namespace, Name: name, UID: w.uid(), Sandbox: s.Name, SandboxUID: s.UID, IP: w.freeIP(), Ready: true, Created: w.clock.now,
	}
	w.putPod(p)
	next := *s
	next.State, next.PodName, next.PodUID, next.PodIP = "running", p.Name, p.UID, p.IP
	w.putSandbox(next)
	w.push(w.sandboxes[s.Namespace+"/"+s.Name], "running")
}

func (w *world) pod(s *Sandbox) *Pod {
	if p := w.pods[s.Namespace+"/"+s.PodName]; p != nil && p.UID == s.PodUID {
		return p
	}
	return nil
}

// pause stops a sandbox; its Pod goes, its status keeps the IP.
func (w *world) pause(s *Sandbox) {
	if s.State != "running" {
		return
	}
	next := *s
	next.State = "paused"
	w.putSandbox(next)
	w.push(&next, "paused")
	if p := w.pod(&next); p != nil {
		w.deletePod(*p)
	}
	w.logf("%s/%s is paused; %s is free", s.Namespace, s.Name, s.PodIP)
}

func (w *world) resume(s *Sandbox) {
	if s.State != "paused" || w.freeIP() == "" || w.pods[s.Namespace+"/"+s.Name] != nil {
		return
	}
	w.startPod(s, s.Name)
	w.logf("%s/%s is resumed at %s", s.Namespace, s.Name, w.sandboxes[s.Namespace+"/"+s.Name].PodIP)
}

// recycle hands a running sandbox to another user: same UID, same Pod.
func (w *world) recycle(s *Sandbox, id string) {
	if s.State != "running" {
		return
	}
	w.push(s, "dead")
	back := *s
	back.State, back.Claim, back.ID = "available", "", ""
	w.putSandbox(back)
	back = *w.sandboxes[s.Namespace+"/"+s.Name]
	back.State, back.Claim, back.ID, back.Recycled = "running", w.uid(), id, back.Recycled+1
	w.putSandbox(back)
	w.push(w.sandboxes[s.Namespace+"/"+s.Name], "running")
	w.logf("%s/%s goes back to its pool and to another user as %q", s.Namespace, s.Name, idOf(&back))
}

// replacePod has a sandbox run in a new Pod while the old one ends.
func (w *world) replacePod(s *Sandbox) {
	p := w.pod(s)
	if s.State != "running" || p == nil {
		return
	}
	ending := *p
	ending.Terminating = true
	w.putPod(ending)
	w.deletePod(*w.pods[p.Namespace+"/"+p.Name])
	w.startPod(s, p.Name)
	w.logf("%s/%s has a new Pod at %s; %s is free", s.Namespace, s.Name, w.sandboxes[s.Namespace+"/"+s.Name].PodIP, p.IP)
}

// disown has a sandbox's Pod name another owner, which need not exist, by the
// sandbox's UID.
func (w *world) disown(s *Sandbox, name string) {
	p := w.pod(s)
	if p == nil {
		return
	}
	next := *p
	next.Sandbox = name
	w.putPod(next)
	w.logf("the Pod of %s/%s names owner %s", s.Namespace, s.Name, name)
}

// disowned reports whether a Pod of that ID's sandbox names another owner by the
// sandbox's UID.
func (w *world) disowned(id string) bool {
	for _, s := range w.sandboxes {
		if p := w.pod(s); idOf(s) == id && p != nil && p.Sandbox != s.Name {
			return true
		}
	}
	return false
}

// delete removes a sandbox and its Pod. Peers are told with the version from
// before it.
func (w *world) delete(s *Sandbox) {
	w.push(s, "dead")
	gone := *s
	w.version++
	gone.Version = w.version
	delete(w.sandboxes, s.Namespace+"/"+s.Name)
	w.record(sandboxes, Event{Type: Deleted, Sandbox: &gone})
	if p := w.pod(s); p != nil {
		w.deletePod(*p)
	}
	w.logf("%s/%s is deleted; %s is free", s.Namespace, s.Name, s.PodIP)
}

// save keeps the cluster as it is, for restore.
func (w *world) save() {
	w.saved = &world{version: w.version, sandboxes: map[string]*Sandbox{}, pods: map[string]*Pod{}}
	for k, s := range w.sandboxes {
		w.saved.sandboxes[k] = s
	}
	for k, p := range w.pods {
		w.saved.pods[k] = p
	}
}

// restore puts etcd back to what was saved: versions go back.
func (w *world) restore() {
	if w.saved == nil || w.saved.version == w.version {
		return
	}
	saved := w.saved
	w.save()
	w.version, w.sandboxes, w.pods, w.saved = saved.version, saved.sandboxes, saved.pods, nil
	w.epoch++
	// What was in use until now rests as if it had been freed.
	for _, ip := range w.ips {
		w.freed[ip] = w.clock.now
	}
	w.log = [2][]*entry{}
	for id, history := range w.truth {
		if last := history[len(history)-1]; last.to.IsZero() {
			last.to = w.clock.now
		}
		w.truth[id] = history
	}
	w.updateTruth(nil)
	w.logf("etcd is restored: versions go back to %d", w.version)
}

// snapshot is a consistent list.
func (w *world) snapshot() Event {
	e := Event{Type: Listed, Version: w.version, At: w.clock.now, Epoch: w.epoch}
	for _, s := range w.sandboxes {
		e.Sandboxes = append(e.Sandboxes, *s)
	}
	for _, p := range w.pods {
		e.Pods = append(e.Pods, *p)
	}
	slices.SortFunc(e.Sandboxes, func(a, b Sandbox) int { return int(a.Version) - int(b.Version) })
	slices.SortFunc(e.Pods, func(a, b Pod) int { return int(a.Version) - int(b.Version) })
	return e
}
