package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/internal/manager"
	"github.com/freshbind/freshbind/scheduler"
)

var schedulingModes = []string{config.SchedulingNone, config.SchedulingExtender, config.SchedulingSecond}

func defaultScheduling() manager.Scheduling {
	c := config.Default().Scheduling
	return manager.Scheduling{
		Mode: c.Mode, SchedulerName: c.SchedulerName,
		Weights: scheduler.Weights{Zone: c.Weights.Zone, Node: c.Weights.Node, Image: c.Weights.Image},
	}
}

func addSchedulingFlags(fs *pflag.FlagSet, o *manager.Scheduling) {
	fs.StringVar(&o.Mode, "scheduling", o.Mode,
		"How members' pods get to nodes: None, Extender (the cluster's scheduler asks Freshbind, see scheduler-config) or SecondScheduler (they are sent to a scheduler of their own).")
	fs.StringVar(&o.SchedulerName, "scheduler-name", o.SchedulerName, "Name of the second scheduler. With another value of --scheduling, members whose pods have it are replaced.")
	fs.IntVar(&o.Weights.Zone, "scheduling-weight-zone", o.Weights.Zone, "How much each member of the pool in a node's zone counts against the node; 0 to ignore zones.")
	fs.IntVar(&o.Weights.Node, "scheduling-weight-node", o.Weights.Node, "How much each member of the pool on a node counts against it; 0 to ignore them.")
	fs.IntVar(&o.Weights.Image, "scheduling-weight-image", o.Weights.Image, "How much a pod's images on a node count for it; 0 to ignore images.")
}

// validateScheduling reports the first option that cannot be used.
func validateScheduling(o manager.Scheduling) error {
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
