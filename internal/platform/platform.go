// Package platform holds what all warm-pool systems have in common. One folder
// below it a system says what differs.
package platform

import (
	"crypto/sha256"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
)

// Write is a write that has to be judged.
type Write struct {
	Operation freshness.Operation
	// Old is what is stored until now; nil for a CREATE.
	Old *unstructured.Unstructured
	// New is what is to be stored.
	New *unstructured.Unstructured
	// Claim is the claim that gains the sandbox; empty for a birth. A release
	// names none, and tells the UID at most.
	Claim freshness.Owner
	// MayHold are names of sandboxes that the claim may have already, beside
	// those that it names itself.
	MayHold []string
	// ContentOnly: who asks wants to know what it is built from, and what of that speaks
	// against it. Whether a Pod is in its way is left to whoever judges it.
	ContentOnly bool
}

// Judged returns the object whose content is judged: what ran until now, or
// what is to be created.
func (w Write) Judged() *unstructured.Unstructured {
	if w.Old != nil {
		return w.Old
	}
	return w.New
}

// Facts is a snapshot, and what else the objects it was taken from say.
type Facts struct {
	freshness.Snapshot
	// Namespace is the one that the write is in. It is there with an error, too: how to
	// fail depends on it.
	Namespace Namespace
	// Enforcement is the pool's own mode, as written; "" when it says none.
	Enforcement string
	// Taken is the bare Pod that a WarmStart names; nil when it does not exist.
	Taken *unstructured.Unstructured
	// Node is the one that the Pod is on; nil when it is on none.
	Node *Node
	// AlwaysCold: the claim asks for what no member of a pool has, or for none.
	AlwaysCold bool
}

// Node is a Node as it was read.
type Node struct {
	Name string
	// ResourceVersion is empty when it does not exist.
	ResourceVersion string
}

// Class is what the member is by itself, its Pod left aside.
func (f Facts) Class() freshness.Class {
	s := f.Snapshot
	s.Operation = freshness.Stored
	return freshness.ClassOf(freshness.Judge(s))
}

// Stamp is what a stamp has to say.
type Stamp struct {
	// Hash names the revision; "" when there is none to name.
	Hash string
	// Sendable: it is the Pod of a member whose template leaves open who schedules
	// it.
	Sendable bool
	// Repaired is the value of RepairedKey; "" for none.
	Repaired string
	// BoundTo is the UID of the claim that a Sandbox is created for; "" for none.
	BoundTo string
	// Repair is what it has to be rewritten to; nil for what it may stay.
	Repair *Repair
	// Refused is the verdict on a cold start that is going to be refused, and
	// Question what it answers; nil for anything else.
	Refused  *freshness.Verdict
	Question Question
	// Namespace and Enforcement are those of Facts.
	Namespace   Namespace
	Enforcement string
}

// Question names all that a verdict depends on in the write itself.
type Question [sha256.Size]byte
