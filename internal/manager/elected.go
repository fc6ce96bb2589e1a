package manager

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// electedManager is a manager that runs what only a leader may as soon as another one is
// elected, which ends the process when it leads no more.
type electedManager struct {
	manager.Manager
	elected <-chan struct{}
}

// Elected is closed when the other one is elected.
func (m *electedManager) Elected() <-chan struct{} { return m.elected }

// Add has wait what needs to lead, as everything does that does not say otherwise.
func (m *electedManager) Add(r manager.Runnable) error {
	if says, ok := r.(manager.LeaderElectionRunnable); ok && !says.NeedLeaderElection() {
		return m.Manager.Add(r)
	}
	return m.Manager.Add(onceElected{r, m.elected})
}

// onceElected runs something as soon as this process leads.
type onceElected struct {
	manager.Runnable
	elected <-chan struct{}
}

func (o onceElected) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-o.elected:
		return o.Runnable.Start(ctx)
	}
}
