package main

import (
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/warmpool"
)

// loss is the end of a Sandbox that belonged to a claim.
type loss struct {
	namespace, sandbox, claim string
	seen                      time.Time
}

// life is that of a Pod: its first version and, once there is one, the first
// that is being deleted or gone.
type life struct {
	sandbox types.UID
	name    string
	born    checker.RV
	ended   bool
	endSeen time.Time
}

// say is what a pool says of stale members: from this version on they are
// served, or no more.
type say struct {
	rv     checker.RV
	serves bool
	seen   time.Time
}

// ends collects from a recording how things ended in some namespaces.
type ends struct {
	namespaces []string

	mu     sync.Mutex
	losses []loss
	pods   map[types.UID]life
	pools  map[types.NamespacedName][]say
}

func newEnds(namespaces ...string) *ends {
	return &ends{namespaces: namespaces, pods: map[types.UID]life{}, pools: map[types.NamespacedName][]say{}}
}

// Write takes one event of the recording.
func (s *ends) Write(e checker.Event) error {
	if e.Object == nil || !slices.Contains(s.namespaces, e.Object.GetNamespace()) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch checker.ResourceOf(e.Object) {
	case checker.Sandboxes:
		if e.Type == checker.Deleted {
			s.lose(e)
		}
	case checker.Pods:
		s.live(e)
	case checker.Pools:
		s.hear(e)
	}
	return nil
}

func (s *ends) lose(e checker.Event) {
	for _, claim := range append(claimsOf(e.Object), warmpool.Holder(e.Object)...) {
		s.losses = append(s.losses, loss{e.Object.GetNamespace(), e.Object.GetName(), claim, e.SeenAt})
	}
}

// claimsOf are the claims that have a Sandbox of agent-sandbox's.
func claimsOf(sandbox *unstructured.Unstructured) (names []string) {
	for _, owner := range sandbox.GetOwnerReferences() {
		if owner.Kind == "SandboxClaim" {
			names = append(names, owner.Name)
		}
	}
	return names
}

func (s *ends) live(e checker.Event) {
	l, known := s.pods[e.Object.GetUID()]
	if !known {
		l = life{name: e.Object.GetName(), sandbox: sandboxOf(e.Object), born: checker.RV(e.Object.GetResourceVersion())}
	}
	if !l.ended && (e.Type == checker.Deleted || e.Object.GetDeletionTimestamp() != nil) {
		l.ended, l.endSeen = true, e.SeenAt
	}
	s.pods[e.Object.GetUID()] = l
}

// hear notes when a pool changes what it says.
func (s *ends) hear(e checker.Event) {
	key := types.NamespacedName{Namespace: e.Object.GetNamespace(), Name: e.Object.GetName()}
	serves := e.Object.GetAnnotations()[settings.AdmitKey] == string(freshness.AdmitAny)
	history := s.pools[key]
	if len(history) == 0 || history[len(history)-1].serves != serves {
		s.pools[key] = append(history, say{checker.RV(e.Object.GetResourceVersion()), serves, e.SeenAt})
	}
}

// tightened is when a pool was seen to serve stale members no more, if that is
// the last that it said before rv.
func (s *ends) tightened(namespace, pool string, rv checker.RV) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last say
	for i, now := range s.pools[types.NamespacedName{Namespace: namespace, Name: pool}] {
		if now.rv.Before(rv) && i > 0 {
			last = now
		}
	}
	return last.seen, last.rv != "" && !last.serves
}

func sandboxOf(pod *unstructured.Unstructured) types.UID {
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "Sandbox" {
		return owner.UID
	}
	return ""
}

// podOf is the Pod that a Sandbox had when rv was written: the youngest of
// those that are older.
func (s *ends) podOf(sandbox types.UID, rv checker.RV) (life, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found life
	for l := range maps.Values(s.pods) {
		if l.sandbox == sandbox && l.born.Before(rv) && found.born.Before(l.born) {
			found = l
		}
	}
	return found, found.born != ""
}

func (s *ends) lost() []loss {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.losses)
}
