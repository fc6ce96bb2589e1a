package routes

import (
	"net/netip"
	"time"
)

// Status says whether a sandbox can be reached.
type Status uint8

// All statuses.
const (
	// NotKnown: the view is incomplete or too old to say anything.
	NotKnown Status = iota
	// Serving: traffic goes to Route.Address.
	Serving
	// NotFound: there is no such sandbox.
	NotFound
	// NotRunning: the sandbox is there, and no traffic goes to it.
	NotRunning
	// Gone: the sandbox is known to be deleted, or the ID belonged to an earlier
	// use of it.
	Gone
)

var statusNames = [...]string{NotKnown: "NotKnown", Serving: "Serving", NotFound: "NotFound", NotRunning: "NotRunning", Gone: "Gone"}

func (s Status) String() string { return statusNames[s] }

// Reason says why a sandbox is not served.
type Reason uint8

// All reasons.
const (
	// None: it is served, or not found.
	None Reason = iota
	// ViewIncomplete: the lists have not been read yet.
	ViewIncomplete
	// ViewTooOld: the view is not proven to be younger than MaxAge.
	ViewTooOld
	// Unconfirmed: a hint says that it is dead, and the watch has not been proven
	// newer than the hint.
	Unconfirmed
	// Stopped: its state is not one that is served.
	Stopped
	// NoPod: it has no Pod that is ready.
	NoPod
	// AddressTaken: a newer Pod has its Pod's address.
	AddressTaken
	// Expired: its time is over.
	Expired
	// Recycled: the ID belonged to an earlier use of the sandbox.
	Recycled
	// IDTaken: a sandbox of another namespace has, or had, the same ID.
	IDTaken
	// Deleted: it was deleted.
	Deleted
)

var reasonNames = [...]string{
	None: "", ViewIncomplete: "ViewIncomplete", ViewTooOld: "ViewTooOld", Unconfirmed: "Unconfirmed", Stopped: "Stopped", NoPod: "NoPod",
	AddressTaken: "AddressTaken", Expired: "Expired", Recycled: "Recycled", IDTaken: "IDTaken", Deleted: "Deleted",
}

func (r Reason) String() string { return reasonNames[r] }

// Reasons returns all reasons but None.
func Reasons() []Reason {
	return []Reason{ViewIncomplete, ViewTooOld, Unconfirmed, Stopped, NoPod, AddressTaken, Expired, Recycled, IDTaken, Deleted}
}

// Answer is what a table knows of an ID. Everything but Status, Reason and Age
// is set only when the sandbox is known and the view is proven.
type Answer struct {
	Status Status
	Reason Reason
	// Age is how old the view is at most; negative when that is not known.
	Age   time.Duration
	route *route
}

// Address is where the sandbox is; invalid unless Serving.
func (a Answer) Address() netip.Addr {
	if a.Status != Serving {
		return netip.Addr{}
	}
	return a.route.address
}

// State is the sandbox's state; Dead when it is gone.
func (a Answer) State() State {
	if a.route == nil || a.route.reason == Deleted {
		return Dead
	}
	return a.route.state
}

// Namespace is the sandbox's.
func (a Answer) Namespace() string { return a.object().namespace.Value() }

// Name is the sandbox's.
func (a Answer) Name() string { return a.object().name }

// SandboxUID is the sandbox's UID.
func (a Answer) SandboxUID() UID { return a.object().uid }

// PodUID is the UID of the Pod that has the address.
func (a Answer) PodUID() UID { return a.object().podUID }

// Version is the version of the Sandbox that the answer is from.
func (a Answer) Version() Version { return a.object().version }

func (a Answer) object() *route {
	if a.route == nil {
		return unknown
	}
	return a.route
}

var unknown = &route{objectKey: keyOf("", "")}

// route is one sandbox as lookups see it. It never changes: a change makes a
// new one.
type route struct {
	objectKey
	id      string
	podName string
	uid     UID
	podUID  UID
	claim   UID
	version Version
	address netip.Addr
	// created is in seconds since the epoch, expires in nanoseconds since the table's
	// base; 0 for none.
	created, expires int64
	recycled         uint32
	state            State
	status           Status
	reason           Reason
	flags            flags
}

type flags uint8

const (
	// ownID: the ID is not the default one.
	ownID flags = 1 << iota
	// reused: the ID belonged to an earlier use.
	reused
	// platformPod: podUID is what the platform says, not only what was found.
	platformPod
	// barred: a sandbox of another namespace has, or had, the ID.
	barred
)

func (r *route) has(f flags) bool { return r.flags&f != 0 }

func (r *route) key() objectKey { return r.objectKey }

func (r *route) pod() objectKey {
	if r.podName == "" {
		return r.key()
	}
	return objectKey{r.namespace, r.podName}
}
