package routes

import (
	"net/netip"
	"slices"
)

// applySandbox follows a version of a Sandbox. With decided it comes from a list
// or a live read, which the floor does not concern.
func (t *Table) applySandbox(o Sandbox, decided bool) Outcome {
	key := keyOf(o.Namespace, o.Name)
	ledger := t.ledgers[Sandboxes]
	ledger.saw(o.Version)
	if !o.State.Kept() {
		return t.deleteSandbox(key, o.UID, o.Version)
	}
	old := t.objects[key].sandbox
	if old != nil && o.Version <= old.version {
		return Stale
	}
	if old == nil {
		switch outcome := ledger.judge(key, o.UID, o.Version); {
		case outcome == Fenced:
			return Fenced
		case outcome == Undecided && !decided:
			t.want(Ref{Sandboxes, o.Namespace, o.Name})
			return Undecided
		}
		t.lift(key)
	}
	r := t.next(old, o)
	if old != nil && old.uid != r.uid {
		t.dropUID(old.uid)
	}
	if old != nil && old.id != r.id {
		t.release(old, nil)
	}
	t.publish(r)
	return Applied
}

// confirmSandbox follows a live read, which ends what a hint from before it began.
func (t *Table) confirmSandbox(o Sandbox, hints uint64) Outcome {
	key := keyOf(o.Namespace, o.Name)
	outcome := t.applySandbox(o, true)
	r := t.objects[key].sandbox
	if h, ok := t.suspended[key]; ok && h.number <= hints && r != nil && r.uid == o.UID && o.Version >= r.version {
		delete(t.suspended, key)
		t.publish(*r)
		return Applied
	}
	return outcome
}

// next returns the route of a Sandbox that was old before; nil for none.
func (t *Table) next(old *route, o Sandbox) route {
	r := t.record(o)
	r.identify(old, o)
	if old != nil && old.uid == o.UID {
		r.inherit(old)
	}
	return r
}

// record returns what a Sandbox says of itself, without an ID.
func (t *Table) record(o Sandbox) route {
	r := route{
		objectKey: keyOf(o.Namespace, o.Name), uid: o.UID, version: o.Version,
		podUID: o.PodUID, claim: o.Claim, recycled: o.Recycled, state: o.State,
	}
	if o.PodName != o.Name {
		r.podName = o.PodName
	}
	if (o.PodUID != UID{}) {
		r.flags |= platformPod
	}
	if !o.Created.IsZero() {
		r.created = o.Created.Unix()
	}
	if !o.Expires.IsZero() {
		// A moment before base is long over; 0 would mean never.
		r.expires = max(1, int64(o.Expires.Sub(t.base)))
	}
	return r
}

// identify gives r its ID. The default one is nobody's once the sandbox has been
// recycled: its first user may still ask for it.
func (r *route) identify(old *route, o Sandbox) {
	if ValidID(o.ID) {
		r.id = o.ID
		r.flags |= ownID
	} else if old != nil && !old.has(ownID) {
		r.id = old.id
	} else {
		// The name is the end of it, and is kept once.
		r.id = DefaultID(o.Namespace, o.Name)
		r.name = r.id[len(r.id)-len(r.name):]
	}
	if !r.has(ownID) && o.Recycled > 0 {
		r.flags |= reused
	}
}

// inherit takes over what an earlier record of the same sandbox knew, and its
// strings, so that they are kept once.
func (r *route) inherit(old *route) {
	r.name = old.name
	if (r.claim == UID{}) {
		r.claim = old.claim
	}
	if old.id != r.id {
		return
	}
	r.flags |= old.flags & (reused | barred)
	if usedAgain(old, r) {
		r.flags |= reused
	}
}

// rewritten reports whether a list of version v shows a sandbox as it cannot have
// become: older than it was, or other than it was at that version.
func (t *Table) rewritten(r *route, o Sandbox, v Version) bool {
	if r.uid == o.UID && o.Recycled < r.recycled {
		return true
	}
	if o.Version != r.version {
		return o.Version < r.version && r.version <= v
	}
	now := t.next(nil, o)
	return now.uid != r.uid || now.state != r.state || now.recycled != r.recycled || now.claim != r.claim && o.Claim != UID{} ||
		now.has(platformPod) && now.podUID != r.podUID
}

// usedAgain reports whether the sandbox serves somebody else now.
func usedAgain(old, r *route) bool {
	return old.recycled != r.recycled || (old.claim != UID{}) && old.claim != r.claim
}

// publish makes r the sandbox's record, and lookups see it if the ID is its own.
func (t *Table) publish(r route) {
	holder := t.index.get(r.id)
	foreign := holder != nil && holder.namespace != r.namespace
	if foreign {
		r.flags |= barred
	}
	t.resolve(&r)
	key := r.key()
	if same := t.objects[key].sandbox; same != nil && *same == r && holder == same {
		return
	}
	t.setSandbox(key, &r)
	if t.byUID != nil {
		t.byUID.put(string(r.uid[:]), &r)
	}
	switch {
	case foreign:
		t.barBoth(holder)
		return
	case holder == nil || holder.reason == Deleted || holder.key() == key:
	case outranks(&r, holder):
		t.contest(r.id, holder.key())
	default:
		t.contest(r.id, key)
		return
	}
	t.index.put(r.id, &r)
	t.changes.add(r.id)
}

// barBoth takes an ID from its holder, too, when a sandbox of another namespace
// has the same. That one never gets it, even when the holder is gone: whoever can
// copy an ID would get the traffic. But while the first list is read nobody knows
// who had it first.
func (t *Table) barBoth(holder *route) {
	if t.listed[Sandboxes] > 0 || holder.has(barred) || holder.reason == Deleted {
		return
	}
	r := *holder
	r.flags |= barred
	t.publish(r)
}

// outranks decides between two sandboxes of a namespace that want one ID. The
// older one has it, so that every replica decides alike and a newcomer takes
// nothing away.
func outranks(a, b *route) bool {
	if a.created != b.created {
		return a.created < b.created
	}
	return string(a.uid[:]) < string(b.uid[:])
}

// maxContenders bounds those that wait for one ID. Others ask again with their
// next event.
const maxContenders = 64

func (t *Table) contest(id string, key objectKey) {
	if len(t.contested[id]) < maxContenders && !slices.Contains(t.contested[id], key) {
		t.contested[id] = append(t.contested[id], key)
	}
}

// release takes r's ID from it. In its place is the tombstone, unless another
// sandbox waits for the ID.
func (t *Table) release(r, tombstone *route) {
	t.withdraw(r)
	if holder := t.index.get(r.id); holder == nil || holder.key() != r.key() {
		return
	}
	var heir *route
	for _, key := range t.contested[r.id] {
		if c := t.objects[key].sandbox; c != nil && (heir == nil || outranks(c, heir)) {
			heir = c
		}
	}
	next := tombstone
	if heir != nil {
		next = heir
		t.withdraw(heir)
	}
	t.index.put(r.id, next)
	t.changes.add(r.id)
}

// dropUID has lookups by UID no longer find a sandbox that is gone.
func (t *Table) dropUID(uid UID) {
	if t.byUID != nil {
		t.byUID.put(string(uid[:]), nil)
	}
}

// withdraw has r no longer wait for its ID.
func (t *Table) withdraw(r *route) {
	waiting := slices.DeleteFunc(t.contested[r.id], func(k objectKey) bool { return k == r.key() })
	if len(waiting) == 0 {
		delete(t.contested, r.id)
		return
	}
	t.contested[r.id] = waiting
}

// deleteSandbox follows a delete, and fences the name. A UID never comes back:
// its delete is final in whatever order it comes.
func (t *Table) deleteSandbox(key objectKey, uid UID, v Version) Outcome {
	ledger := t.ledgers[Sandboxes]
	ledger.saw(v)
	r := t.objects[key].sandbox
	if r != nil && r.uid != uid && v <= r.version && (uid != UID{} || v != 0 && v < r.version) {
		return Stale
	}
	if r == nil {
		if v == 0 || ledger.judge(key, uid, v) == Fenced {
			return Stale
		}
		t.lift(key)
		ledger.put(key, fence{uid: uid, version: v})
		return Applied
	}
	if (uid == UID{}) {
		uid = r.uid
	}
	t.setSandbox(key, nil)
	delete(t.suspended, key)
	t.dropUID(r.uid)
	t.release(r, &route{
		objectKey: key, id: r.id, uid: r.uid, version: max(v, r.version), status: Gone, reason: Deleted,
	})
	ledger.put(key, fence{uid: uid, version: max(v, r.version), id: r.id})
	if v == 0 {
		ledger.raise(ledger.newest)
	}
	return Applied
}

// lift removes the fence of a name that is in use again.
func (t *Table) lift(key objectKey) {
	ledger := t.ledgers[Sandboxes]
	if f, ok := ledger.fences[key]; ok {
		ledger.lift(key)
		t.forget(key, f)
	}
}

// forget has lookups no longer see that the sandbox of a fence is gone.
func (t *Table) forget(key objectKey, f fence) {
	if r := t.index.get(f.id); r != nil && r.reason == Deleted && r.key() == key {
		t.index.put(f.id, nil)
		t.changes.add(f.id)
	}
}

// resolve fills in where r is served, if it is.
func (t *Table) resolve(r *route) {
	r.address = netip.Addr{}
	r.status, r.reason = NotRunning, None
	if !r.has(platformPod) {
		r.podUID = UID{}
	}
	if _, ok := t.suspended[r.key()]; ok {
		r.status, r.reason = NotKnown, Unconfirmed
		return
	}
	if r.has(reused) {
		r.status, r.reason = Gone, Recycled
		return
	}
	if r.has(barred) {
		r.reason = IDTaken
		return
	}
	if !r.state.Served() {
		r.reason = Stopped
		return
	}
	p := t.objects[r.pod()].pod
	if p == nil || !p.serves(r) {
		r.reason = NoPod
		return
	}
	if t.addresses[p.address] != p {
		r.reason = AddressTaken
		return
	}
	r.status, r.address, r.podUID = Serving, p.address, p.uid
}
