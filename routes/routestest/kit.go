// Package routestest tests route tables: what says where a sandbox's traffic
// goes, and must never send it to somebody else's.
//
//	func TestTable(t *testing.T) {
//		routestest.TestTable(t, func(env routestest.Env) routestest.Table {
//			return newMyTable(env)
//		})
//	}
//
// TestTable runs each known weakness of such tables as a subtest of its own, and
// then random histories against a simple oracle. A history that goes wrong is
// shortened, and told as a story.
package routestest

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// Table is a route table under test. It is used by one goroutine; when a method
// returns, what it was called with has taken effect.
type Table interface {
	// Apply is called with what the table's own watch delivers.
	Apply(Event)
	// Refresh is called with what a peer pushes.
	Refresh(Message)
	// Lookup returns the IP that traffic for the sandbox is sent to; false for none.
	Lookup(id string) (ip string, ok bool)
	// Restart is called when the process starts again: it has forgotten everything.
	// The events of a list follow.
	Restart()
}

// Env is what a table can use besides what is applied to it.
type Env struct {
	Clock *Clock
	// MaxAge is how old an answer may be.
	MaxAge time.Duration
	// Namespaces are the only ones that the table's own watch covers.
	Namespaces []string
	// Cluster reads objects as they are now.
	Cluster Cluster
}

// Cluster reads objects as they are stored now.
type Cluster interface {
	ReadSandbox(namespace, name string) (Sandbox, bool, error)
	ReadPod(namespace, name string) (Pod, bool, error)
}

// Clock is the table's clock.
type Clock struct{ now time.Time }

// Now is the time.
func (c *Clock) Now() time.Time { return c.now }

// Since is the time since then.
func (c *Clock) Since(t time.Time) time.Duration { return c.now.Sub(t) }

// EventType is a kind of event.
type EventType string

// All types of events.
const (
	// Changed: the object was created or changed.
	Changed EventType = "Changed"
	// Deleted: the object was deleted; its version is that of the deletion.
	Deleted EventType = "Deleted"
	// Vanished: a list lacks the object. Its version is the last that was seen,
	// not that of the deletion (an informer's DeletedFinalStateUnknown).
	Vanished EventType = "Vanished"
	// Listed: a list is complete. Before it come Changed and Vanished for what it
	// told; its Sandboxes and Pods are for tables that take whole lists.
	Listed EventType = "Listed"
	// Proven: everything that was stored before At has been delivered.
	Proven EventType = "Proven"
)

// Event is what a watch delivers: exactly one of Sandbox and Pod is set, none in
// Listed and Proven.
type Event struct {
	Type    EventType
	Sandbox *Sandbox
	Pod     *Pod
	// FromList is set in what a list told.
	FromList  bool
	Sandboxes []Sandbox
	Pods      []Pod
	Version   uint64
	At        time.Time
	// Epoch tells apart what was watched before etcd was restored and after it.
	Epoch int
}

// Sandbox is a Sandbox object.
type Sandbox struct {
	Namespace, Name, UID, ID string
	// State is creating, available, running or paused.
	State string
	// PodName, PodUID and PodIP are what its status says of its Pod. They stay
	// while it is paused.
	PodName, PodUID, PodIP string
	// NotReady is set when its status says that it is not ready.
	NotReady         bool
	Claim            string
	Recycled         int
	Created, Expires time.Time
	Version          uint64
}

// Pod is a Pod object.
type Pod struct {
	Namespace, Name, UID string
	// Sandbox and SandboxUID are what its owner reference says. Tenants can write
	// them, and combine one's name with another's UID. While they do, its sandbox may
	// be served or not.
	Sandbox, SandboxUID string
	IP                  string
	Ready               bool
	// Terminating is set when it has a deletionTimestamp.
	Terminating bool
	Created     time.Time
	Version     uint64
}

// Message is what a peer pushes, as OpenKruise's POST /refresh has it: State is
// that of a sandbox, or dead.
type Message struct {
	Namespace, Name, ID, UID, IP, State string
	Version                             string
}

// NewTable makes a table for a test.
type NewTable func(Env) Table

// TestTable runs all of the kit's tests. ROUTES_STEPS says how many random steps
// there are (100,000 when it is unset), ROUTES_SEED with which seed they begin.
// In one half of the histories an IP is used again at once, in the other half
// only after longer than MaxAge.
func TestTable(t *testing.T, newTable NewTable) {
	t.Helper()
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(newTable); err != nil {
				t.Errorf("%s\n%v", c.About, err)
			}
		})
	}
	TestHistories(t, newTable, number(t, "ROUTES_STEPS", 100_000))
}

// TestHistories runs that many steps of random histories.
func TestHistories(t *testing.T, newTable NewTable, steps int) {
	t.Helper()
	seed := uint64(number(t, "ROUTES_SEED", 1))
	for name, rest := range map[string]time.Duration{"random-histories/ip-used-again-at-once": 0, "random-histories/ip-rests": maxAge + time.Second} {
		t.Run(name, func(t *testing.T) {
			r, err := Histories(newTable, HistoryOptions{Steps: (steps + 1) / 2, Seed: seed, Rest: rest})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d steps in %d histories, %d lookups, %d of them served, %d to another sandbox by a view no older than %s",
				r.Steps, r.Histories, r.Lookups, r.Served, r.Misdirected, maxAge)
		})
	}
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is not a positive number", name, os.Getenv(name))
	}
	return n
}

// Failures runs the named tests and returns those that fail, by name.
func Failures(newTable NewTable) map[string]error {
	failed := make(map[string]error)
	for _, c := range Cases() {
		if err := c.Run(newTable); err != nil {
			failed[c.Name] = fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return failed
}
