package manager

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/freshbind/freshbind/controllers/recreate"
	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/scheduler"
)

// sendsTo is the scheduler that members' Pods are sent to; "" for none.
func (o *Scheduling) sendsTo() string {
	if o.Mode == config.SchedulingSecond {
		return o.SchedulerName
	}
	return ""
}

// strays is the scheduler whose Pods are not to be left behind; "" for none.
func (o *Scheduling) strays() string {
	if o.Mode == config.SchedulingSecond {
		return ""
	}
	return o.SchedulerName
}

// registerScheduler serves the extender beside the webhooks.
func registerScheduler(mgr manager.Manager, o Scheduling, leads func() bool, forecast *recreate.Forecast, reg prometheus.Registerer) error {
	if strays := o.strays(); strays != "" {
		if err := scheduler.SetupStrays(mgr, forecast.Caches(), forecast.Kinds().Sandboxes, builtIn, strays, leads); err != nil {
			return err
		}
	}
	if o.Mode == config.SchedulingNone {
		return nil
	}
	nodes := scheduler.NewNodes()
	placed := scheduler.NewPlaced(nodes)
	informer, err := forecast.Caches().GetInformer(context.Background(), forecast.NodeObject())
	if err == nil {
		_, err = informer.AddEventHandler(nodes)
	}
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	forecast.Members().HandleSandboxes(placed.Member)
	forecast.Members().HandlePods(placed.Pod)
	m := scheduler.NewMetrics(reg)
	kinds := forecast.Kinds()
	err = scheduler.SetupNudger(mgr, scheduler.Watched{
		Informers: forecast.Caches(), Pools: kinds.Pools, Templates: kinds.Templates, Sandboxes: kinds.Sandboxes,
	}, forecast, m)
	if err != nil {
		return err
	}
	extender := &scheduler.Extender{
		Members: forecast, Nodes: nodes, Placed: placed, Ledger: scheduler.NewLedger(clock.RealClock{}), Weights: o.Weights, Metrics: m,
	}
	for path, handler := range extender.Handlers() {
		mgr.GetWebhookServer().Register(path, handler)
	}
	return nil
}
