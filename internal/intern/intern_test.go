package intern

import (
	"runtime"
	"testing"
	"time"
)

type value struct{ text *string }

func TestEqualValuesAreKeptOnce(t *testing.T) {
	var table Table[string, value]
	gone := make(chan struct{})
	made := 0
	get := func() *value {
		return table.Get("key", func(key string) (*value, func()) {
			made++
			return &value{&key}, func() { close(gone) }
		})
	}
	// The use ends with its function: no variable keeps the value from then on.
	func() {
		first := get()
		if get() != first || made != 1 {
			t.Fatalf("made %d values of one key while the first is in use", made)
		}
		runtime.KeepAlive(first)
	}()
	deadline := time.After(10 * time.Minute)
	for inUse(&table) > 0 {
		runtime.GC()
		select {
		case <-gone:
		case <-deadline:
			t.Fatal("a value that nobody uses is kept")
		default:
			runtime.Gosched()
		}
	}
	<-gone
}

// inUse is how many values are in use, or were until lately.
func inUse[K comparable, V any](t *Table[K, V]) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.values)
}
