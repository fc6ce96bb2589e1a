package routes

import (
	"net/netip"
	"slices"
	"time"
)

// pod is a Pod as far as routes depend on it.
type pod struct {
	objectKey
	sandbox    string
	uid, owner UID
	version    Version
	// claimed is the version at which it was first seen with its address.
	claimed Version
	created int64
	address netip.Addr
	ready   bool
}

func (p *pod) key() objectKey { return p.objectKey }

// serves reports whether p is the Pod that r's traffic goes to. Both name and UID
// of its owner have to be r's: whoever may write to a Pod can combine them at
// will, and update finds the route of a Pod by the name.
func (p *pod) serves(r *route) bool {
	return p.sandbox == r.name && p.owner == r.uid && p.ready && p.address.IsValid() && (!r.has(platformPod) || r.podUID == p.uid)
}

// claimedAfter orders Pods by when they got their address.
func (p *pod) claimedAfter(o *pod) bool {
	if p.claimed != o.claimed {
		return p.claimed > o.claimed
	}
	if p.created != o.created {
		return p.created > o.created
	}
	return string(p.uid[:]) > string(o.uid[:])
}

// applyPod follows a version of a Pod. One that comes from a list has the list's
// version: whatever the list shows was so by then, and nobody knows since when.
func (t *Table) applyPod(o Pod, listed Version) Outcome {
	key := keyOf(o.Namespace, o.Name)
	ledger := t.ledgers[Pods]
	ledger.saw(o.Version)
	old := t.objects[key].pod
	if old != nil && o.Version <= old.version {
		return Stale
	}
	if old == nil {
		switch outcome := ledger.judge(key, o.UID, o.Version); {
		case outcome == Fenced:
			return Fenced
		case outcome == Undecided && listed == 0:
			t.want(Ref{Pods, o.Namespace, o.Name})
			return Undecided
		}
		ledger.lift(key)
	}
	p := t.nextPod(old, o, max(listed, o.Version))
	t.setPod(key, p)
	if old != nil {
		t.releaseAddress(old, p)
	}
	t.claimAddress(p)
	t.update(old)
	t.update(p)
	return Applied
}

func (t *Table) nextPod(old *pod, o Pod, claimed Version) *pod {
	p := &pod{
		objectKey: keyOf(o.Namespace, o.Name), sandbox: o.Sandbox,
		uid: o.UID, owner: o.SandboxUID, version: o.Version, claimed: claimed,
		created: unix(o.Created), ready: o.Ready,
	}
	if !o.Ended && !o.SharesAddress {
		p.address = o.Address.Unmap()
	}
	if old != nil && old.uid == p.uid {
		p.name = old.name
		if old.address == p.address {
			p.claimed = old.claimed
		}
	}
	// The strings of a sandbox and its Pod are mostly the same.
	if r := t.objects[objectKey{p.namespace, p.sandbox}].sandbox; r != nil {
		p.sandbox = r.name
		if p.name == r.name {
			p.name = r.name
		}
	}
	return p
}

// podRewritten is rewritten for Pods.
func (t *Table) podRewritten(p *pod, o Pod, v Version) bool {
	if o.Version != p.version {
		return o.Version < p.version && p.version <= v
	}
	now := t.nextPod(nil, o, 0)
	return now.uid != p.uid || now.sandbox != p.sandbox || now.owner != p.owner || now.address != p.address || now.ready != p.ready
}

func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// confirmPod follows a live read. A Pod that is found with its address though
// another one claimed it meanwhile has it for certain.
func (t *Table) confirmPod(o Pod) Outcome {
	ledger := t.ledgers[Pods]
	outcome := t.applyPod(o, max(ledger.newest, o.Version))
	p := t.objects[keyOf(o.Namespace, o.Name)].pod
	if outcome != Stale || p == nil || p.uid != o.UID || p.version != o.Version || !p.address.IsValid() || t.addresses[p.address] != nil {
		return outcome
	}
	next := *p
	next.claimed = ledger.newest
	t.setPod(p.key(), &next)
	t.releaseAddress(p, &next)
	t.claimAddress(&next)
	t.update(&next)
	return Applied
}

// claimAddress gives p its address, unless a Pod has it that got it later.
func (t *Table) claimAddress(p *pod) {
	if !p.address.IsValid() {
		return
	}
	holder := t.addresses[p.address]
	if holder == nil {
		t.addresses[p.address] = p
		return
	}
	if holder.claimedAfter(p) {
		t.displaced[p.address] = append(t.displaced[p.address], p.key())
		return
	}
	t.addresses[p.address] = p
	t.displaced[p.address] = append(t.displaced[p.address], holder.key())
	t.update(holder)
}

// releaseAddress takes old's address from it. next is what it became, nil when
// it is gone.
func (t *Table) releaseAddress(old, next *pod) {
	a := old.address
	if !a.IsValid() {
		return
	}
	waiting := slices.DeleteFunc(t.displaced[a], func(k objectKey) bool { return k == old.key() })
	if len(waiting) == 0 {
		delete(t.displaced, a)
	} else {
		t.displaced[a] = waiting
	}
	if t.addresses[a] != old {
		return
	}
	delete(t.addresses, a)
	if next != nil && next.uid == old.uid && next.address == a {
		return
	}
	t.handBack(old, waiting)
}

// handBack looks for another Pod with an address that old has left. Its claim is
// older than old's: it counts only if it was seen since, otherwise a live read
// decides.
func (t *Table) handBack(old *pod, waiting []objectKey) {
	var heir *pod
	for _, key := range waiting {
		p := t.objects[key].pod
		if p == nil {
			continue
		}
		if p.version <= old.claimed {
			t.want(Ref{Pods, key.namespace.Value(), key.name})
		} else if heir == nil || p.claimedAfter(heir) {
			heir = p
		}
	}
	if heir == nil {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(waiting), func(k objectKey) bool { return k == heir.key() })
	if len(rest) == 0 {
		delete(t.displaced, old.address)
	} else {
		t.displaced[old.address] = rest
	}
	t.addresses[old.address] = heir
	t.update(heir)
}

// deletePod follows a delete, as deleteSandbox does.
func (t *Table) deletePod(key objectKey, uid UID, v Version) Outcome {
	ledger := t.ledgers[Pods]
	ledger.saw(v)
	p := t.objects[key].pod
	if p != nil && p.uid != uid && v <= p.version && (uid != UID{} || v != 0 && v < p.version) {
		return Stale
	}
	if p == nil {
		if v == 0 || ledger.judge(key, uid, v) == Fenced {
			return Stale
		}
		ledger.put(key, fence{uid: uid, version: v})
		return Applied
	}
	if (uid == UID{}) {
		uid = p.uid
	}
	t.setPod(key, nil)
	t.releaseAddress(p, nil)
	ledger.put(key, fence{uid: uid, version: max(v, p.version)})
	if v == 0 {
		ledger.raise(ledger.newest)
	}
	t.update(p)
	return Applied
}

// update has the routes follow their Pod.
func (t *Table) update(p *pod) {
	if p == nil {
		return
	}
	if r := t.objects[objectKey{p.namespace, p.sandbox}].sandbox; r != nil && r.uid == p.owner {
		t.publish(*r)
	}
}
