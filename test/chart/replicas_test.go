package chart

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// uncompleted is the API server's own count of calls of our webhooks that it
// could not complete, whatever the failurePolicy made of them.
func (w *world) uncompleted(t *testing.T) (calls float64) {
	t.Helper()
	metrics := w.apiServer(t)
	for _, name := range []string{"apiserver_admission_webhook_rejection_count", "apiserver_admission_webhook_fail_open_count"} {
		for _, s := range metrics[name] {
			if strings.HasSuffix(s.Labels["name"], ".freshbind.dev") && !s.Has(`error_type="no_error"`) {
				calls += s.Value
			}
		}
	}
	return calls
}

func TestRollingTheReplicasFailsNoCall(t *testing.T) {
	w := sharedWorld(t)
	w.install(t)
	b := w.binds(t)
	before := w.uncompleted(t)
	b.during(t.Context(), func() {
		for _, r := range w.replicas {
			w.roll(t, r)
			w.serving(t, len(w.replicas))
		}
	})
	t.Logf("two replicas rolled at %d binds/s: %s; the API server counts %v calls that it could not complete", bindRate, b.result(), w.uncompleted(t)-before)
	if len(b.lost()) > 0 {
		t.Error("rolling the replicas has lost calls")
	}
}

// preStop is what the chart's Pods wait before they stop.
const preStop = 10 * time.Second

// roll replaces a replica as a Deployment does with a Pod: it leaves the
// endpoints, stops preStop later, and comes back. However late the endpoints are
// written here, the API server has that time to learn of them.
func (w *world) roll(t *testing.T, r *replica) {
	t.Helper()
	w.kubelet.leave(r)
	w.serving(t, len(w.replicas)-1)
	<-time.After(preStop)
	w.must(t, w.kubelet.stop(r))
	w.must(t, w.kubelet.start(t.Context(), r))
}

// A replica that dies without a word takes calls with it until the endpoints
// leave it out; nothing binds wrongly meanwhile, and every bind gets through.
func TestAKilledReplicaIsSoonLeftOut(t *testing.T) {
	w := sharedWorld(t)
	w.install(t)
	b := w.binds(t)
	var killed time.Time
	lostBefore := 0
	b.during(t.Context(), func() {
		killed = time.Now()
		w.must(t, w.kubelet.kill(w.replicas[0]))
		w.serving(t, len(w.replicas)-1)
		// The API server learns of the endpoints a moment after they are stored. As long
		// as it does not know, every other call is lost.
		w.eventually(t, "the API server knows the endpoints", func(ctx context.Context) (string, bool) {
			lostBefore = len(b.lost())
			for range bindRate {
				b.bind(ctx)
			}
			return fmt.Sprintf("%d of %d calls lost", len(b.lost())-lostBefore, bindRate), len(b.lost()) == lostBefore
		})
		for range bindRate {
			b.bind(t.Context())
		}
	})
	w.must(t, w.kubelet.stop(w.replicas[0]))
	last := time.Duration(0)
	for _, f := range b.lost() {
		last = max(last, f.at.Sub(killed))
	}
	t.Logf("one of two replicas killed at %d binds/s: %s; the last lost call %s after the kill", bindRate, b.result(), last.Round(time.Millisecond))
	if after := len(b.lost()) - lostBefore; after > 0 {
		t.Errorf("%d calls were lost after the endpoints had left the dead replica out", after)
	}
}
