package fair

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
)

// caller is one that asked for a place. What it is told comes through the
// channels.
type caller struct {
	done chan func()
	err  chan error
}

func call(ctx context.Context, t *testing.T, turns *Turns, key string) caller {
	t.Helper()
	c := caller{make(chan func(), 1), make(chan error, 1)}
	before := seen(turns)
	go func() {
		done, err := turns.Take(ctx, key)
		if err != nil {
			c.err <- err
			return
		}
		c.done <- done
	}()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Minute, true, func(context.Context) (bool, error) {
		return seen(turns) > before || len(c.err) > 0, nil
	})
	if err != nil {
		t.Fatal("the caller is not seen")
	}
	return c
}

// seen counts those who wait or have a place.
func seen(turns *Turns) int {
	turns.mu.Lock()
	defer turns.mu.Unlock()
	n := 0
	for _, w := range turns.waiting {
		n += len(w)
	}
	for _, taken := range turns.taken {
		n += taken
	}
	return n
}

func has(turns *Turns) map[string]int {
	turns.mu.Lock()
	defer turns.mu.Unlock()
	out := map[string]int{}
	for key, n := range turns.taken {
		out[key] = n
	}
	return out
}

func TestOneKeyHasNoMoreThanItsShare(t *testing.T) {
	turns := NewTurns(3, 1)
	first := call(t.Context(), t, turns, "hostile")
	for range 50 {
		call(t.Context(), t, turns, "hostile")
	}
	call(t.Context(), t, turns, "a")
	call(t.Context(), t, turns, "b")
	if diff := cmp.Diff(map[string]int{"hostile": 1, "a": 1, "b": 1}, has(turns)); diff != "" {
		t.Errorf("places (-want,+got):\n%s", diff)
	}
	(<-first.done)()
	if diff := cmp.Diff(map[string]int{"hostile": 1, "a": 1, "b": 1}, has(turns)); diff != "" {
		t.Errorf("places after one came back (-want,+got):\n%s", diff)
	}
}

func TestKeysTakeTurns(t *testing.T) {
	turns := NewTurns(1, 1)
	now := call(t.Context(), t, turns, "x")
	var waiting []caller
	keys := []string{"a", "a", "a", "b", "c", "b"}
	for _, key := range keys {
		waiting = append(waiting, call(t.Context(), t, turns, key))
	}
	(<-now.done)()
	var got []string
	for range keys {
		var holder string
		for key := range has(turns) {
			holder = key
		}
		got = append(got, holder)
		for i, w := range waiting {
			if keys[i] == holder {
				(<-w.done)()
				keys[i] = ""
				break
			}
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "a", "b", "a"}, got); diff != "" {
		t.Errorf("turns (-want,+got):\n%s", diff)
	}
	if n := seen(turns); n != 0 || len(turns.order) != 0 || turns.free != 1 {
		t.Errorf("in the end %d are left, %v in line, %d places free", n, turns.order, turns.free)
	}
}

func TestWhoGivesUpLeavesNoTrace(t *testing.T) {
	turns := NewTurns(1, 1)
	holder := call(t.Context(), t, turns, "a")
	ctx, cancel := context.WithCancel(t.Context())
	gone := call(ctx, t, turns, "b")
	next := call(t.Context(), t, turns, "c")
	cancel()
	if err := <-gone.err; !errors.Is(err, context.Canceled) {
		t.Errorf("Take() = %v", err)
	}
	(<-holder.done)()
	(<-next.done)()
	if n := seen(turns); n != 0 || turns.free != 1 || len(turns.order) != 0 {
		t.Errorf("%d are left, %d places are free", n, turns.free)
	}
	if _, err := turns.Take(ctx, "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("Take() by one who is gone = %v", err)
	}
}

// A place that was given to one who gives up at that moment goes on.
func TestAPlaceGivenTooLateGoesOn(t *testing.T) {
	turns := NewTurns(1, 1)
	w, err := turns.enter("a")
	if err != nil {
		t.Fatal(err)
	}
	next := call(t.Context(), t, turns, "b")
	turns.leave("a", w)
	(<-next.done)()
	if turns.free != 1 {
		t.Errorf("%d places are free, want 1", turns.free)
	}
}

func TestOneKeyWaitsInABoundedLine(t *testing.T) {
	turns := NewTurns(1, 1)
	for range maxWaiting + 1 {
		if _, err := turns.enter("hostile"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := turns.enter("hostile"); !errors.Is(err, ErrFull) {
		t.Errorf("enter() = %v, want ErrFull", err)
	}
	if _, err := turns.enter("a"); err != nil {
		t.Errorf("another key: %v", err)
	}
}

func TestADoneThatIsCalledTwiceCountsOnce(t *testing.T) {
	turns := NewTurns(1, 1)
	done, err := turns.Take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	done()
	done()
	if turns.free != 1 {
		t.Errorf("%d places are free, want 1", turns.free)
	}
	var none *Turns
	if done, err := none.Take(t.Context(), "a"); err != nil {
		t.Error(err)
	} else {
		done()
	}
}
