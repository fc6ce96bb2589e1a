package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/freshbind/freshbind/controllers/recreate"
	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/scheduler"
)

var schedulingModes = []string{config.SchedulingNone, config.SchedulingExtender, config.SchedulingSecond}

// SchedulingOptions say how members' pods get to nodes.
type SchedulingOptions struct {
	// Mode is None, Extender or SecondScheduler.
	Mode string
	// SchedulerName is the second scheduler's. Outside of that mode members whose
	// Pods have it are replaced.
	SchedulerName string
	Weights       scheduler.Weights
}

// NewSchedulingOptions returns the defaults.
func NewSchedulingOptions() SchedulingOptions {
	c := config.Default().Scheduling
	return SchedulingOptions{
		Mode: c.Mode, SchedulerName: c.SchedulerName,
		Weights: scheduler.Weights{Zone: c.Weights.Zone, Node: c.Weights.Node, Image: c.Weights.Image},
	}
}

// AddFlags adds the options to fs.
func (o *SchedulingOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Mode, "scheduling", o.Mode, "How members' pods get to nodes: None, Extender (the cluster's scheduler asks Freshbind, see scheduler-config) or SecondScheduler (they are sent to a scheduler of their own).")
	fs.StringVar(&o.SchedulerName, "scheduler-name", o.SchedulerName, "Name of the second scheduler. With another value of --scheduling, members whose pods have it are replaced.")
	fs.IntVar(&o.Weights.Zone, "scheduling-weight-zone", o.Weights.Zone, "How much each member of the pool in a node's zone counts against the node; 0 to ignore zones.")
	fs.IntVar(&o.Weights.Node, "scheduling-weight-node", o.Weights.Node, "How much each member of the pool on a node counts against it; 0 to ignore them.")
	fs.IntVar(&o.Weights.Image, "scheduling-weight-image", o.Weights.Image, "How much a pod's images on a node count for it; 0 to ignore images.")
}

// Validate reports the first option that cannot be used.
func (o *SchedulingOptions) Validate() error {
	if !slices.Contains(schedulingModes, o.Mode) {
		return fmt.Errorf("--scheduling: %q is not known: use one of %s", o.Mode, strings.Join(schedulingModes, ", "))
	}
	if err := validateSchedulerName(o.SchedulerName); err != nil {
		return fmt.Errorf("--scheduler-name: %w", err)
	}
	for _, w := range []struct {
		flag  string
		value int
	}{{"zone", o.Weights.Zone}, {"node", o.Weights.Node}, {"image", o.Weights.Image}} {
		if w.value < 0 || w.value > 100 {
			return fmt.Errorf("--scheduling-weight-%s: %d is out of range: use 0 to 100", w.flag, w.value)
		}
	}
	return nil
}

func validateSchedulerName(name string) error {
	if name == corev1.DefaultSchedulerName {
		return fmt.Errorf("%q is the cluster's own scheduler: use another name", name)
	}
	if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
		return fmt.Errorf("%q is not a name: %s", name, strings.Join(faults, "; "))
	}
	return nil
}

// sendsTo is the scheduler that members' Pods are sent to; "" for none.
func (o *SchedulingOptions) sendsTo() string {
	if o.Mode == config.SchedulingSecond {
		return o.SchedulerName
	}
	return ""
}

// strays is the scheduler whose Pods are not to be left behind; "" for none.
func (o *SchedulingOptions) strays() string {
	if o.Mode == config.SchedulingSecond {
		return ""
	}
	return o.SchedulerName
}

// registerScheduler serves the extender beside the webhooks.
func registerScheduler(mgr manager.Manager, o SchedulingOptions, leads func() bool, forecast *recreate.Forecast, reg prometheus.Registerer) error {
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
