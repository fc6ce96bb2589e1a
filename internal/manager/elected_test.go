package manager

import (
	"context"
	"testing"
	"testing/synctest"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// added is a manager that starts at once whatever it is given.
type added struct {
	manager.Manager
	t *testing.T
}

func (a added) Add(r manager.Runnable) error {
	go func() {
		if err := r.Start(a.t.Context()); err != nil {
			a.t.Error(err)
		}
	}()
	return nil
}

// What only a leader may run waits for the election, and nothing else does.
func TestWhoWaitsForTheElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elected := make(chan struct{})
		mgr := &electedManager{Manager: added{t: t}, elected: elected}
		everywhere, leading := false, false
		if err := mgr.Add(everyReplica(func(context.Context) error { everywhere = true; return nil })); err != nil {
			t.Fatal(err)
		}
		if err := mgr.Add(manager.RunnableFunc(func(context.Context) error { leading = true; return nil })); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !everywhere || leading {
			t.Errorf("before: what runs everywhere runs: %t, what only the leader runs: %t", everywhere, leading)
		}
		close(elected)
		synctest.Wait()
		if !leading {
			t.Error("after: what only the leader runs does not run")
		}
		select {
		case <-mgr.Elected():
		default:
			t.Error("nobody is told of the election")
		}
	})
}

// A process that ends before it leads has nothing to end.
func TestNobodyWaitsForAnElectionForEver(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	started := onceElected{manager.RunnableFunc(func(context.Context) error { t.Error("it runs"); return nil }), make(chan struct{})}
	if err := started.Start(ctx); err != nil {
		t.Error(err)
	}
}
