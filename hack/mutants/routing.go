package main

import "slices"

// routing is which sandbox a route leads to.
var routing = slices.Concat(at("routes/fence.go", []mutant{
	{check: "routes: a deleted sandbox is fenced by its UID", old: `!back && (f.uid == uid || v <= f.version) {
		return Fenced`, broken: `!back && v <= f.version {
		return Fenced`, test: "TestFenced/itself, after its deletion"},
	{check: "routes: what had its name before is fenced by version", old: `!back && (f.uid == uid || v <= f.version) {
		return Fenced`, broken: `!back && f.uid == uid {
		return Fenced`, test: "TestFenced/the one before"},
	{check: "routes: a fence gives way to what is newer", old: `!back && (f.uid == uid || v <= f.version) {
		return Fenced`, broken: `!back {
		return Fenced`, test: "TestFenced/the next one"},
	{check: "routes: below the floor a live read decides", old: `if back || v <= l.floor {`, broken: `if back {`, test: "TestFloor"},
	{check: "routes: the floor rises when a fence is dropped", old: `l.raise(f.version)
		l.dropped`, broken: `l.dropped`, test: "TestFloor"},
	{check: "routes: the lowest fence is dropped first", old: `h[i].version < h[j].version`, broken: `h[i].version > h[j].version`, test: "TestFloor"},
	{check: "routes: fences are bounded", old: `for len(l.fences) > l.limit {`, broken: `for false {`, test: "TestFloor"},
	{check: "routes: a dropped fence is no tombstone", old: `l.dropped(lowest.key, f)`, broken: `_ = f`, test: "TestFloor"},
	{check: "routes: a list that has what was deleted is of a restored etcd", old: `return f.uid == uid || shown`, broken: `return false || shown`, test: "TestRestoreIsNoticed/a deleted object is back"},
	{check: "routes: what has the version of a delete is of a restored etcd", old: `shown <= f.version`, broken: `shown < f.version`, test: "TestRestoreIsNoticed/another object at the version of a delete"},
	{check: "routes: a live read decides whether a Pod is back in the watch", old: `if back || v <= l.floor {`, broken: `if v <= l.floor {`, test: "TestPodThatLeftTheWatch/it came back, and has gone"},
	{check: "routes: a Pod can be back in the watch", old: `l.selected && v >= f.version`, broken: `false`, test: "TestPodThatLeftTheWatch/it is back"},
	{check: "routes: what was true before a Pod left the watch is late", old: `l.selected && v >= f.version`, broken: `l.selected`, test: "TestPodThatLeftTheWatch/it left again during the read"},
	{check: "routes: a list that has a Pod back is of no restored etcd", old: `(dying || l.selected)`, broken: `dying`, test: "TestPodThatLeftTheWatch/a list shows it again"},
	{check: "routes: a sandbox that is long being deleted is of no restored etcd", old: `(dying || l.selected)`, broken: `l.selected`, test: "TestListsOfADyingSandbox/as the watch told it"},
	{check: "routes: a dying sandbox of before is of a restored etcd", old: `return shown < f.version`, broken: `return false`, test: "TestListsOfADyingSandbox/older than the watch told it"},
}), at("routes/session.go", []mutant{
	{check: "routes: a sandbox that was dying in the first list is of no restored etcd", old: `!dying && o.Version <= t.listed[Sandboxes]`, broken: `o.Version <= t.listed[Sandboxes]`, test: "TestListsOfADyingSandbox/as the first list had it"},
	{check: "routes: a list that is older is of a restored etcd", old: `if v < t.ledgers[kind].newest || apply(t) == Restored {`, broken: `if apply(t) == Restored {`, test: "TestRestoreIsNoticed/the list is older"},
	{check: "routes: an object that is older is of a restored etcd", old: `r != nil && t.rewritten(r, o, v) ||`, broken: `false ||`, test: "TestRestoreIsNoticed/the object is older"},
	{check: "routes: an old object that was not listed is of a restored etcd", old: `(r == nil && !dying && o.Version <= t.listed[Sandboxes] ||`, broken: `(false ||`, test: "TestRestoreIsNoticed/an old object was not listed"},
	{check: "routes: what a list lacks is deleted", old: `if r := o.sandbox; r != nil && !there[key]`, broken: `if r := o.sandbox; r != nil && false`, test: "TestCopiedID/its sandbox has gone, and a list shows the copy"},
	{check: "routes: an ended session has no effect", old: `if t.session != s {
		return Superseded
	}
	return f(t)`, broken: `return f(t)`, test: "TestLookup/an ended session has no effect"},
	{check: "routes: no proof before the lists", old: `if t.listed[Sandboxes] > 0 && t.listed[Pods] > 0 {`, broken: `if true {`, test: "TestLookup/proven without a list"},
	{check: "routes: as old as the older of both views", old: `t.proven.Store(min(`, broken: `t.proven.Store(max(`, test: "TestLookup/only one kind proven since"},
	{check: "routes: no proof of what is to come", old: `min(int64(at.Sub(t.base)), t.elapsed())`, broken: `int64(at.Sub(t.base))`, test: "TestLookup/a proof from the future"},
	{check: "routes: a hint lasts until the view is newer", old: `if t.provenOf[Sandboxes] <= h.since {`, broken: `if h.since < 0 {`, test: "TestLookup/hint, and a proof from before"},
	{check: "routes: a live read from before the floor rose is done again", old: `if t.ledgers[ref.Kind].floor != m.floor {`, broken: `if false {`, test: "TestResolve/deleted during the read, and its fence dropped"},
	{check: "routes: a live read deletes only what it is about", old: `r != nil && r.version == m.record {`, broken: `r != nil {`, test: "TestResolve/created during the read"},
}), at("routes/object.go", []mutant{
	{check: "routes: a name outlives one of its two objects", old: `if o == (object{}) {`, broken: `if o.sandbox == nil || o.pod == nil {`, test: "TestObjectsOfOneName"},
	{check: "routes: a name that nothing has is forgotten", old: `if o == (object{}) {`, broken: `if false {`, test: "TestObjectsOfOneName"},
	{check: "routes: what goes is no longer counted", old: `if was {`, broken: `if false {`, test: "TestObjectsOfOneName"},
	{check: "routes: what comes is counted", old: `if is {`, broken: `if false {`, test: "TestObjectsOfOneName"},
}), at("routes/table.go", []mutant{
	{check: "routes: what is forgotten of live reads is told", old: `t.overflow = true`, broken: ``, test: "TestUndecidedAreBounded"},
	{check: "routes: no answer older than MaxAge", old: `if age > t.opts.MaxAge {`, broken: `if false {`, test: "TestLookup/older than it may be"},
	{check: "routes: an answer as old as MaxAge", old: `if age > t.opts.MaxAge {`, broken: `if age >= t.opts.MaxAge {`, test: "TestLookup/exactly as old as it may be"},
	{check: "routes: no answer before the lists", old: `proven := t.proven.Load()
	if proven == 0 {
		return Answer{`, broken: `proven := t.proven.Load()
	if false {
		return Answer{`, test: "TestLookup/proven without a list"},
	{check: "routes: a new session has forgotten everything", old: `t.index.clear()`, broken: ``, test: "TestLookup/gone before a new session"},
	{check: "routes: a sandbox ends when its time is over", old: `if r.expires != 0 && now >= r.expires`, broken: `if false && now >= r.expires`, test: "TestConformance/shutdown-time-passed"},
	{check: "routes: a hint only removes", old: `if h.State.Kept() || r == nil`, broken: `if r == nil`, test: "TestLookup/hint that it runs"},
	{check: "routes: a hint is about one sandbox", old: `(h.UID != UID{} && h.UID != r.uid)`, broken: `false`, test: "TestLookup/hint about an earlier sandbox"},
	{check: "routes: a hint from before says nothing", old: `if h.Version < r.version {`, broken: `if false {`, test: "TestLookup/hint from before"},
}), at("routes/sandbox.go", []mutant{
	{check: "routes: events take effect in their order", old: `if old != nil && o.Version <= old.version {
		return Stale
	}`, broken: ``, test: "TestLookup/late status"},
	{check: "routes: deletes take effect in their order", old: `if r != nil && r.uid != uid && v <= r.version && (uid != UID{} || v != 0 && v < r.version) {
		return Stale
	}`, broken: ``, test: "TestConformance/late-delete-of-earlier-sandbox"},
	{check: "routes: a delete leaves a fence", old: `ledger.put(key, fence{uid: uid, version: max(v, r.version), id: r.id})`, broken: ``, test: "TestFenced/itself"},
	{check: "routes: an ID from a name is its first user's", old: `if !r.has(ownID) && o.Recycled > 0 {`, broken: `if false {`, test: "TestLookup/recycled before it was listed"},
	{check: "routes: an ID is one claim's", old: `return old.recycled != r.recycled || (old.claim != UID{}) && old.claim != r.claim`, broken: `return old.recycled != r.recycled`, test: "TestMutatorConformance"},
	{check: "routes: an ID is not copied into another namespace", old: `foreign := holder != nil && holder.namespace != r.namespace`, broken: `foreign := false`, test: "TestCopiedID/its sandbox has gone, and a list shows the copy"},
	{check: "routes: nobody has an ID that two had at the start", old: `if t.listed[Sandboxes] > 0 || holder.has(barred) || holder.reason == Deleted {
		return
	}`, broken: `if true {
		return
	}`, test: "TestCopiedID/both at first"},
	{check: "routes: whoever was refused an ID stays without it", old: `r.flags |= old.flags & (reused | barred)`, broken: `r.flags |= old.flags & reused`, test: "TestCopiedIDForgotten"},
	{check: "routes: those who wait for an ID are bounded", old: `if len(t.contested[id]) < maxContenders && `, broken: `if `, test: "TestContendersAreBounded"},
	{check: "routes: the oldest of a namespace has an ID", old: `case outranks(&r, holder):`, broken: `case false:`, test: "TestIDGoesDownTheLine"},
	{check: "routes: an ID goes to the next oldest", old: `(heir == nil || outranks(c, heir))`, broken: `heir == nil`, test: "TestIDGoesDownTheLine"},
	{check: "routes: an address is one Pod's", old: `if t.addresses[p.address] != p {`, broken: `if false {`, test: "TestLookup/address taken by a newer pod"},
	{check: "routes: a live read ends no hint from during it", old: `ok && h.number <= hints && r != nil`, broken: `ok && h.number > 0 && r != nil`, test: "TestHintDuringRead"},
}), at("routes/pod.go", []mutant{
	{check: "routes: a Pod belongs to one sandbox", old: `p.owner == r.uid && p.ready &&`, broken: `p.ready &&`, test: "TestLookup/pod of another sandbox"},
	{check: "routes: a Pod's owner counts by its name, too", old: `return p.sandbox == r.name && p.owner == r.uid && p.ready`, broken: `return p.owner == r.uid && p.ready`, test: "TestOwnersOfOnePod"},
	{check: "routes: a Pod that names another owner at its version is of a restored etcd", old: `now.sandbox != p.sandbox || `, broken: ``, test: "TestRestoreChangesAnOwner"},
	{check: "routes: the Pod that the platform says", old: `(!r.has(platformPod) || r.podUID == p.uid)`, broken: `true`, test: "TestLookup/not the pod that the status has"},
	{check: "routes: a Pod that is not ready", old: `p.owner == r.uid && p.ready &&`, broken: `p.owner == r.uid &&`, test: "TestConformance/not-ready-for-a-while"},
	{check: "routes: a Pod that ends has no address", old: `if !o.Ended && !o.SharesAddress {`, broken: `if !o.SharesAddress {`, test: "TestConformance/terminating-pod"},
	{check: "routes: the node's address is no Pod's", old: `if !o.Ended && !o.SharesAddress {`, broken: `if !o.Ended {`, test: "TestLookup/address of the node"},
	{check: "routes: IPv4 in IPv6 is the same address", old: `o.Address.Unmap()`, broken: `o.Address`, test: "TestLookup/address taken as IPv6 of IPv4"},
	{check: "routes: an address is the Pod's that got it last", old: `if holder.claimedAfter(p) {`, broken: `if false {`, test: "TestLookup/address of a pod from before, late"},
	{check: "routes: a deleted Pod is fenced", old: `ledger.put(key, fence{uid: uid, version: max(v, p.version)})`, broken: ``, test: "TestLookup/late event of a deleted pod"},
	{check: "routes: deletes of Pods take effect in their order", old: `if p != nil && p.uid != uid && v <= p.version && (uid != UID{} || v != 0 && v < p.version) {
		return Stale
	}`, broken: ``, test: "TestLookup/late delete of the pod before"},
	{check: "routes: an address that was another's is confirmed by a live read", old: `if p.version <= old.claimed {`, broken: `if false {`, test: "TestAddressHandedBack"},
	{check: "routes: an address goes to who got it last before", old: `} else if heir == nil || p.claimedAfter(heir) {`, broken: `} else if heir == nil {`, test: "TestAddressGoesDownTheLine"},
	{check: "routes: others go on to wait for an address", old: `t.displaced[old.address] = rest`, broken: `delete(t.displaced, old.address)`, test: "TestAddressGoesDownTheLine"},
	{check: "routes: of two in one list, the younger has the address", old: `return p.created > o.created`, broken: `return p.created < o.created`, test: "TestAddressOfTwoInOneList/the second is younger"},
}), at("routes/changes.go", []mutant{
	{check: "routes: changes of long ago are not continued", old: `l.first = l.seq - changesKept + 1`, broken: `_ = l.first`, test: "TestChangesAreKeptUpToABound"},
	{check: "routes: a change takes the place of the oldest one", old: `l.ids[l.seq%changesKept] = id`, broken: `_ = id`, test: "TestChangesAreKeptUpToABound"},
	{check: "routes: what is no cursor", old: `!ok || err != nil || epoch == "" || len(epoch) > 64`, broken: `!ok || err != nil || len(epoch) > 64`, test: "TestParseCursor"},
}), at("routes/types.go", []mutant{
	{check: "routes: only what runs is served", old: `func (s State) Served() bool { return s == Running }`, broken: `func (s State) Served() bool { return s != Dead }`, test: "TestLookup/paused"},
	{check: "routes: an ID of its own is none from a name", old: `!strings.Contains(id, dashes)`, broken: `true`, test: "TestLookup/a label cannot take an ID from a name"},
	{check: "routes: IDs are bounded", old: `len(id) <= maxID &&`, broken: ``, test: "TestValidID"},
	{check: "routes: two names make two IDs", old: `if strings.Contains(name, dashes) {`, broken: `if false {`, test: "TestNameTakenBefore"},
}), at("routes/adapters.go", []mutant{
	{check: "routes: not ready is not deleted", old: `if state == Dead {
		state = Creating
	}`, broken: ``, test: "TestMutatorConformance"},
	{check: "routes: the Pod of a late route waits, too", old: `if outcome != Applied && outcome != Undecided {`, broken: `if outcome != Applied {`, test: "TestMutatorUndecided"},
	{check: "routes: a failed connection elsewhere removes nothing", old: `podIP != "" && a.Address().String() != podIP`, broken: `false`, test: "TestRouterLookup"},
}), at("internal/routeserver/api.go", []mutant{
	{check: "routes: a stream that was interrupted is not begun again from another view", old: `		f.resuming = true
`, broken: ``, test: "TestStreamOfTwoViews"},
	{check: "routes: a bookmark is as old as what was sent", old: `(age + f.server.clock.Since(asked))`, broken: `(age + 0*f.server.clock.Since(asked))`, test: "TestStreamSaysTheAgeOfWhatWasSent"},
}), at("internal/routefeed/decide.go", []mutant{
	{check: "routes: a live read finds what the watch follows", old: ` || err == nil && !followed.Matches(labels.Set(u.GetLabels()))`, broken: ``, test: "TestReadPod/without its label"},
}), at("internal/sentinel/deletions.go", []mutant{
	{check: "sentinel: deletions are bounded", old: `for m.order.Len() > m.limit {`, broken: `for false {`, test: "TestDeletions/more than it remembers"},
	{check: "sentinel: deletions age", old: `time.Since(e.Value.(*Deletion).seen) > m.keep`, broken: `false`, test: "TestDeletions/long ago"},
	{check: "sentinel: an older deletion says nothing", old: `if v <= e.Value.(*Deletion).Version {`, broken: `if false {`, test: "TestDeletions/an older one"},
	{check: "sentinel: nothing is said of a name that is in use", old: `return e != nil && e.Value.(*Deletion) == d`, broken: `return e == nil || e.Value.(*Deletion) == d`, test: "TestReturned"},
	{check: "sentinel: a restored etcd makes all versions void", old: `if v < e.Value.(*Deletion).Version {`, broken: `if false {`, test: "TestDeletions/etcd restored"},
}), at("internal/sentinel/gateway.go", []mutant{
	{check: "sentinel: deletions are repeated", old: `all, latest := g.deletions.all()`, broken: `all, latest, _ := g.deletions.since(g.sent)`, test: "TestLateRefresh/with a sentinel"},
	{check: "sentinel: new deletions are told at once", old: `wake := g.sendNew(ctx)`, broken: `var wake chan struct{}`, test: "TestPace/one"},
	{check: "sentinel: a gateway's own trouble is no answer", old: `case 4:`, broken: `case 4, 5:`, test: "TestGatewayDown"},
	{check: "sentinel: messages have a pace", old: `pause(ctx, time.Second/time.Duration(g.pace.Rate)-time.Since(started))`, broken: `pause(ctx, -time.Since(started))`, test: "TestPace/too many"},
}), at("internal/sentinel/watch.go", []mutant{
	{check: "sentinel: what is being deleted is dead", old: `if object.GetDeletionTimestamp() != nil {`, broken: `if false {`, test: "TestDeletions/being deleted"},
	{check: "sentinel: a deletion that a list shows is as new as the list", old: `v = max(v, listed)`, broken: `_ = listed`, test: "TestDeletions/missing in a list"},
	{check: "sentinel: a gateway that ends is not told", old: `terminating != nil && *terminating {`, broken: `terminating != nil && false {`, test: "TestEndpointURLs"},
}))
