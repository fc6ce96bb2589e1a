package manager

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/freshbind/freshbind/controllers/pools"
	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/scheduler"
)

// sendsTo is the scheduler that members' Pods are sent to; "" for none.
func (o *Scheduling) sendsTo() string {
	if o.Mode == config.SchedulingSecond {
		return o.SchedulerName
	}
	return ""
}

// formerScheduler is the scheduler whose Pods are not to be left behind; "" for none.
func (o *Scheduling) formerScheduler() string {
	if o.Mode == config.SchedulingSecond {
		return ""
	}
	return o.SchedulerName
}

// formerSchedulerOf is formerScheduler for a platform whose Pods are sent anywhere.
func (o *Scheduling) formerSchedulerOf(a platform.Admission) string {
	if !a.SendsPods {
		return ""
	}
	return o.formerScheduler()
}

// registerScheduler serves the extender beside the webhooks.
func registerScheduler(mgr manager.Manager, o Scheduling, sentBy platform.Admission, objects platform.Objects, leads func() bool, dispositions *pools.Dispositions, reg prometheus.Registerer) error {
	if former := o.formerSchedulerOf(sentBy); former != "" {
		if err := scheduler.SetupFormerScheduler(mgr, dispositions.Caches(), dispositions.Kinds().Sandboxes, objects, former, leads); err != nil {
			return err
		}
	}
	if o.Mode == config.SchedulingNone {
		return nil
	}
	nodes := scheduler.NewNodes()
	placed := scheduler.NewPlaced(nodes)
	informer, err := dispositions.Caches().GetInformer(context.Background(), dispositions.NodeObject())
	if err == nil {
		_, err = informer.AddEventHandler(nodes)
	}
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	dispositions.Members().HandleSandboxes(placed.Member)
	dispositions.Members().HandlePods(placed.Pod)
	m := scheduler.NewMetrics(reg)
	kinds := dispositions.Kinds()
	err = scheduler.SetupRequeuer(mgr, scheduler.Watched{
		Informers: dispositions.Caches(), Pools: kinds.Pools, Templates: kinds.Templates, Sandboxes: kinds.Sandboxes,
	}, dispositions, m)
	if err != nil {
		return err
	}
	extender := &scheduler.Extender{
		Members: dispositions, Nodes: nodes, Placed: placed, Assumed: scheduler.NewAssumeCache(clock.RealClock{}), Weights: o.Weights, Metrics: m,
	}
	for path, handler := range extender.Handlers() {
		mgr.GetWebhookServer().Register(path, handler)
	}
	return nil
}
