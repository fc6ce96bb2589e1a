package main

import (
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/audit"
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
	born    audit.RV
	ended   bool
	endSeen time.Time
}

// ends collects from a recording how things ended.
type ends struct {
	mu     sync.Mutex
	losses []loss
	pods   map[types.UID]life
}

func newEnds() *ends { return &ends{pods: map[types.UID]life{}} }

// Write takes one event of the recording.
func (s *ends) Write(e audit.Event) error {
	if e.Object == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch audit.ResourceOf(e.Object) {
	case audit.Sandboxes:
		if e.Type == audit.Deleted {
			s.lose(e)
		}
	case audit.Pods:
		s.live(e)
	}
	return nil
}

func (s *ends) lose(e audit.Event) {
	for _, owner := range e.Object.GetOwnerReferences() {
		if owner.Kind == "SandboxClaim" {
			s.losses = append(s.losses, loss{e.Object.GetNamespace(), e.Object.GetName(), owner.Name, e.SeenAt})
		}
	}
}

func (s *ends) live(e audit.Event) {
	l, known := s.pods[e.Object.GetUID()]
	if !known {
		l = life{name: e.Object.GetName(), sandbox: sandboxOf(e.Object), born: audit.RV(e.Object.GetResourceVersion())}
	}
	if !l.ended && (e.Type == audit.Deleted || e.Object.GetDeletionTimestamp() != nil) {
		l.ended, l.endSeen = true, e.SeenAt
	}
	s.pods[e.Object.GetUID()] = l
}

func sandboxOf(pod *unstructured.Unstructured) types.UID {
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "Sandbox" {
		return owner.UID
	}
	return ""
}

// podOf is the Pod that a Sandbox had when rv was written: the youngest of
// those that are older.
func (s *ends) podOf(sandbox types.UID, rv audit.RV) (life, bool) {
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
