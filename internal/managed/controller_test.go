package managed

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRetries(t *testing.T) {
	limiter := retries[string]()
	waits := map[int]time.Duration{}
	for failure := 1; failure <= 100; failure++ {
		wait := limiter.When("pool")
		switch failure {
		case 1, 2, 13, 14, 100:
			waits[failure] = wait
		}
	}
	waits[0] = limiter.When("another")
	limiter.Forget("pool")
	waits[101] = limiter.When("pool")
	want := map[int]time.Duration{
		0: 5 * time.Millisecond, 1: 5 * time.Millisecond, 2: 10 * time.Millisecond, 13: 20480 * time.Millisecond, 14: 30 * time.Second,
		100: 30 * time.Second, 101: 5 * time.Millisecond,
	}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits after so many failures in a row (-want,+got):\n%s", diff)
	}
}
