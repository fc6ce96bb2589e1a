package routes

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// State is what a sandbox is doing.
type State uint8

// All states. The names are those of OpenKruise Agents.
const (
	Creating State = iota
	Available
	Running
	Paused
	Dead
)

var stateNames = [...]string{Creating: "creating", Available: "available", Running: "running", Paused: "paused", Dead: "dead"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// ParseState returns the state of that name.
func ParseState(name string) (State, error) {
	for s, n := range stateNames {
		if n == name {
			return State(s), nil
		}
	}
	return 0, fmt.Errorf("state %q is not known", name)
}

// Kept reports whether a sandbox in this state has an entry in a table. It is
// the one rule of watches and peers alike: only what is dead is deleted.
func (s State) Kept() bool { return s != Dead }

// Served reports whether traffic may go to a sandbox in this state.
func (s State) Served() bool { return s == Running }

// Version is a resourceVersion. Versions are compared within one resource only.
type Version uint64

// ErrVersion is returned for a resourceVersion that has no order.
var ErrVersion = errors.New("resourceVersion is not a positive decimal number")

// ParseVersion parses a resourceVersion.
func ParseVersion(s string) (Version, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil || v == 0 || s[0] == '0' || s[0] == '+' {
		return 0, fmt.Errorf("%w: %q", ErrVersion, s)
	}
	return Version(v), nil
}

// UID is an object's UID in 16 bytes. Kubernetes' UIDs are UUIDs; of any other
// it keeps a digest, which still tells two objects apart.
type UID [16]byte

// ParseUID returns the UID that s stands for; of "" it is the zero UID.
func ParseUID(s string) UID {
	var u UID
	if s == "" {
		return u
	}
	if len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		var digits [32]byte
		n := copy(digits[:], s[:8])
		n += copy(digits[n:], s[9:13])
		n += copy(digits[n:], s[14:18])
		n += copy(digits[n:], s[19:23])
		copy(digits[n:], s[24:])
		if _, err := hex.Decode(u[:], digits[:]); err == nil && u != (UID{}) {
			return u
		}
	}
	sum := sha256.Sum256([]byte(s))
	copy(u[:], sum[:])
	return u
}

func (u UID) String() string {
	if u == (UID{}) {
		return ""
	}
	var b [36]byte
	hex.Encode(b[:8], u[:4])
	hex.Encode(b[9:13], u[4:6])
	hex.Encode(b[14:18], u[6:8])
	hex.Encode(b[19:23], u[8:10])
	hex.Encode(b[24:], u[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// Sandbox is a Sandbox object as one version of it says.
type Sandbox struct {
	Namespace, Name string
	UID             UID
	Version         Version
	// ID is what clients call the sandbox. When it is not ValidID, DefaultID is. An
	// ID of its own is expected to be new for each claim.
	ID    string
	State State
	// PodName is the name of its Pod; Name when empty.
	PodName string
	// PodUID is its Pod's where the platform says so, else the zero UID.
	PodUID UID
	// Claim tells its users apart; the zero UID when nobody has claimed it.
	Claim UID
	// Recycled counts how often it went back to its pool.
	Recycled uint32
	// Created decides between two sandboxes that want the same ID.
	Created time.Time
	// Expires is when it ends though no event says so; zero for never.
	Expires time.Time
}

const (
	dashes = "--"
	// maxID is as long as an ID of a sandbox's own can be.
	maxID = 253
)

// DefaultID is the ID of a sandbox that has none of its own. A name with two
// dashes of its own is set off by a slash, which no name has: with dashes the ID
// of a/b--c would be that of a--b/c.
func DefaultID(namespace, name string) string {
	if strings.Contains(name, dashes) {
		return namespace + "/" + name
	}
	return namespace + dashes + name
}

// ValidID reports whether a sandbox can have id as an ID of its own. What a
// DefaultID can be belongs to the sandbox of that name, and what is long is
// memory that others need.
func ValidID(id string) bool {
	return id != "" && len(id) <= maxID && !strings.Contains(id, dashes) && !strings.Contains(id, "/")
}

// Pod is a Pod object as one version of it says.
type Pod struct {
	Namespace, Name string
	UID             UID
	Version         Version
	// Sandbox and SandboxUID name the Sandbox that controls it.
	Sandbox    string
	SandboxUID UID
	Address    netip.Addr
	// Created decides between two Pods that a list shows with one address.
	Created time.Time
	Ready   bool
	// Ended is set when it is being deleted, has failed or has finished. Such a
	// Pod has no address any more, whatever its status says.
	Ended bool
	// SharesAddress is set when other Pods have the same address (hostNetwork).
	// Such a Pod has no address of its own to route to.
	SharesAddress bool
}

// Hint is what somebody else says about a sandbox.
type Hint struct {
	Namespace, Name string
	UID             UID
	State           State
	Version         Version
}

// Outcome says what became of an event.
type Outcome uint8

// All outcomes.
const (
	// Applied: the table follows the event.
	Applied Outcome = iota
	// Stale: the table knows something newer, or as new.
	Stale
	// Fenced: the object is known to be deleted.
	Fenced
	// Undecided: the event is of an unknown object below the floor, or of a Pod that
	// was told deleted, and may have left the watch for a while. A live read has to
	// decide, see Resolve.
	Undecided
	// Superseded: the session is over.
	Superseded
	// Restored: versions went back. The session is over, and nothing is served
	// before a new one has listed everything.
	Restored
	// Ignored: a hint that would add something, or is not about a known sandbox.
	Ignored
	// OutOfScope: the namespace is not one of the table's.
	OutOfScope
)

var outcomeNames = [...]string{
	Applied: "applied", Stale: "stale", Fenced: "fenced", Undecided: "undecided", Superseded: "superseded",
	Restored: "restored", Ignored: "ignored", OutOfScope: "out-of-scope",
}

func (o Outcome) String() string { return outcomeNames[o] }

// Outcomes returns all outcomes.
func Outcomes() []Outcome {
	return []Outcome{Applied, Stale, Fenced, Undecided, Superseded, Restored, Ignored, OutOfScope}
}
