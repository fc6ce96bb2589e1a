package fakekruise

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
)

// CacheTimeout is how long somebody waits for their cache to show a write, their own or the
// one that they take to be behind a conflict.
const CacheTimeout = time.Minute

// seen remembers which version of an object a cache has to show before the object is
// touched again.
type seen struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	want map[types.UID]wanted
}

type wanted struct {
	version string
	// newer: that very version does not do.
	newer bool
	until time.Time
}

func newSeen() *seen { return &seen{clock: clock.RealClock{}, want: map[types.UID]wanted{}} }

// expect has the object wait until the cache shows this version, or a newer one, or the
// timeout is over.
func (s *seen) expect(obj metav1.Object, newer bool, timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.want[obj.GetUID()] = wanted{obj.GetResourceVersion(), newer, s.clock.Now().Add(timeout)}
}

// satisfied reports whether an object that the cache shows is not older than was expected.
func (s *seen) satisfied(obj metav1.Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, is := s.want[obj.GetUID()]
	if !is {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), w.version)
	if err == nil && (order > 0 || order == 0 && !w.newer) || s.clock.Now().After(w.until) {
		delete(s.want, obj.GetUID())
		return true
	}
	return false
}
