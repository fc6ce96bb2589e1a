package manager

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"
)

// lock is one whose writes fail when err is set.
type lock struct {
	resourcelock.Interface
	err error
}

func (l *lock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }
func (l *lock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }
func (l *lock) Identity() string                                                { return "me" }

func TestHoldingTheLease(t *testing.T) {
	mine, released := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}, resourcelock.LeaderElectionRecord{}
	renew := func(l *lease, r resourcelock.LeaderElectionRecord, err error) {
		l.Interface = &lock{err: err}
		_ = l.Update(context.Background(), r)
	}
	cases := map[string]struct {
		play func(l *lease, c *clocktesting.FakeClock)
		want bool
	}{
		"never held": {func(*lease, *clocktesting.FakeClock) {}, false},
		"got a moment ago": {func(l *lease, _ *clocktesting.FakeClock) {
			_ = l.Create(context.Background(), mine)
		}, true},
		"renewed in time": {func(l *lease, c *clocktesting.FakeClock) {
			renew(l, mine, nil)
			c.Step(renewDeadline - time.Millisecond)
		}, true},
		"not renewed in time": {func(l *lease, c *clocktesting.FakeClock) {
			renew(l, mine, nil)
			c.Step(renewDeadline)
		}, false},
		"renewal failed": {func(l *lease, c *clocktesting.FakeClock) {
			renew(l, mine, nil)
			c.Step(renewDeadline / 2)
			renew(l, mine, errors.New("timed out"))
			c.Step(renewDeadline / 2)
		}, false},
		"renewed again": {func(l *lease, c *clocktesting.FakeClock) {
			renew(l, mine, nil)
			c.Step(renewDeadline / 2)
			renew(l, mine, nil)
			c.Step(renewDeadline / 2)
		}, true},
		"binds back": {func(l *lease, _ *clocktesting.FakeClock) {
			renew(l, mine, nil)
			renew(l, released, nil)
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			l := &lease{Interface: &lock{}, clock: c}
			tc.play(l, c)
			if got := l.held(); got != tc.want {
				t.Errorf("held() = %t, want %t", got, tc.want)
			}
		})
	}
}
