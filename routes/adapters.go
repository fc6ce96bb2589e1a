package routes

import (
	"fmt"
	"net/netip"
	"time"
)

// KruiseRoute is a route as OpenKruise Agents keeps and pushes it.
type KruiseRoute struct {
	Namespace, Name, ID, UID, IP, State, ResourceVersion string
	// Owner is its user; empty while it is in its pool.
	Owner string
}

// Mutator stands where OpenKruise's gateway writes to its registry: Upsert and
// Delete, from its informer or from its peers.
//
// There is no Pod in such a route. Each IP of a sandbox is taken for a Pod of its
// own, which is gone when the sandbox gets another IP: an IP that somebody else
// has is fenced all the same.
type Mutator struct {
	Session *Session
	// Peer is set for what peers push: it is a hint, and adds nothing.
	Peer bool
}

// Upsert applies a route. From the informer, state dead is OpenKruise's word for a
// sandbox that is claimed and not ready: it is kept, and served again once it is.
// What is deleted comes to Delete.
func (m Mutator) Upsert(r KruiseRoute) (Outcome, error) {
	v, state, err := m.parse(r.State, r.ResourceVersion)
	if err != nil {
		return Ignored, err
	}
	if m.Peer {
		return m.Session.table.Hint(Hint{Namespace: r.Namespace, Name: r.Name, UID: ParseUID(r.UID), State: state, Version: v}), nil
	}
	if state == Dead {
		state = Creating
	}
	podUID := UID{}
	address, err := netip.ParseAddr(r.IP)
	if err == nil {
		podUID = ParseUID(r.UID + " " + address.String())
	}
	outcome := m.Session.Sandbox(Sandbox{
		Namespace: r.Namespace, Name: r.Name, ID: r.ID, UID: ParseUID(r.UID), PodUID: podUID, State: state, Version: v,
		Claim: ParseUID(r.Owner),
	})
	if outcome != Applied && outcome != Undecided {
		return outcome, nil
	}
	m.Session.Pod(Pod{
		Namespace: r.Namespace, Name: r.Name, UID: podUID, Sandbox: r.Name, SandboxUID: ParseUID(r.UID), Version: v,
		Address: address, Ready: true, Ended: !state.Served(),
	})
	return outcome, nil
}

// Delete applies a delete; resourceVersion is empty where it is not known.
func (m Mutator) Delete(namespace, name, resourceVersion string) (Outcome, error) {
	var v Version
	if resourceVersion != "" {
		var err error
		if v, err = ParseVersion(resourceVersion); err != nil {
			return Ignored, err
		}
	}
	if m.Peer {
		return m.Session.table.Hint(Hint{Namespace: namespace, Name: name, State: Dead, Version: v}), nil
	}
	outcome := m.Session.SandboxDeleted(namespace, name, UID{}, v)
	if outcome == Applied {
		m.Session.PodDeleted(namespace, name, UID{}, v)
	}
	return outcome, nil
}

// Listed says that the informer has delivered its first list.
func (m Mutator) Listed(asked time.Time) Outcome {
	m.Session.Listed(Pods, asked)
	return m.Session.Listed(Sandboxes, asked)
}

// Proven says that the informer has delivered everything from before that time.
func (m Mutator) Proven(at time.Time) Outcome {
	m.Session.Proven(Pods, at)
	return m.Session.Proven(Sandboxes, at)
}

func (m Mutator) parse(state, version string) (Version, State, error) {
	v, err := ParseVersion(version)
	if err != nil {
		return 0, 0, err
	}
	s, err := ParseState(state)
	if err != nil {
		return 0, 0, fmt.Errorf("parse a route: %w", err)
	}
	return v, s, nil
}

// Entry is what agent-sandbox's router asks a cache for.
type Entry struct {
	PodIP, SandboxName, Namespace string
}

// RouterLookup answers as the cache of agent-sandbox's router does: an entry is
// there when traffic may go to it. The table needs Options.ByUID.
type RouterLookup struct{ Table *Table }

// Get looks a sandbox up by its UID.
func (l RouterLookup) Get(uid string) (Entry, bool) { return entry(l.Table.LookupUID(ParseUID(uid))) }

// GetByName looks a sandbox up by its name.
func (l RouterLookup) GetByName(namespace, name string) (Entry, bool) {
	return entry(l.Table.Lookup(DefaultID(namespace, name)))
}

// Invalidate takes a sandbox out of service after a connection to it failed,
// until the view is newer than that.
func (l RouterLookup) Invalidate(uid string) bool {
	return l.invalidate(l.Table.LookupUID(ParseUID(uid)), "")
}

// InvalidateByName is Invalidate by name, if the sandbox is still at podIP.
func (l RouterLookup) InvalidateByName(namespace, name, podIP string) bool {
	return l.invalidate(l.Table.Lookup(DefaultID(namespace, name)), podIP)
}

func (l RouterLookup) invalidate(a Answer, podIP string) bool {
	if a.Status != Serving || podIP != "" && a.Address().String() != podIP {
		return false
	}
	return l.Table.Hint(Hint{Namespace: a.Namespace(), Name: a.Name(), UID: a.SandboxUID(), State: Dead, Version: a.Version()}) == Applied
}

func entry(a Answer) (Entry, bool) {
	if a.Status != Serving {
		return Entry{}, false
	}
	return Entry{PodIP: a.Address().String(), SandboxName: a.Name(), Namespace: a.Namespace()}, true
}
