package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/freshbind/freshbind/internal/sentinel"
)

// SentinelOptions configure the process that keeps deleted sandboxes deleted in
// OpenKruise's gateways.
type SentinelOptions struct {
	routesProcess

	URLs     []string
	Services []string
	Port     int

	Pace         sentinel.Pace
	Keep         time.Duration
	MaxDeletions int

	services []types.NamespacedName
}

// NewSentinelOptions returns the defaults.
func NewSentinelOptions() *SentinelOptions {
	return &SentinelOptions{
		routesProcess: newRoutesProcess(), Port: 7789, Pace: sentinel.Pace{Interval: 5 * time.Second, Rate: 200, Timeout: time.Second},
		Keep: time.Hour, MaxDeletions: 10_000,
	}
}

func newSentinelCommand() *cobra.Command {
	o := NewSentinelOptions()
	cmd := &cobra.Command{
		Use:   "sentinel (--gateway-service NAMESPACE/NAME | --gateway-url URL)...",
		Short: "Keep deleted sandboxes deleted in unmodified OpenKruise gateways",
		Long: "Sentinel watches OpenKruise's Sandboxes, and repeats to each gateway that a deleted one is dead, with the version\n" +
			"of its deletion: gateways forget that after ten minutes, and when they restart. It is for gateways after v0.3.0.\n" +
			"It only reads from the cluster. Several replicas do no harm.",
		Example: "  freshbind routes sentinel --gateway-service sandbox-system/sandbox-gateway",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Complete(); err != nil {
				return &ExitError{Code: exitUsage, Err: err}
			}
			if err := o.Validate(); err != nil {
				return &ExitError{Code: exitUsage, Err: err}
			}
			return o.Run(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags())
	return cmd
}

// AddFlags adds the options to fs.
func (o *SentinelOptions) AddFlags(fs *pflag.FlagSet) {
	o.routesProcess.AddFlags(fs)
	fs.StringSliceVar(&o.Services, "gateway-service", o.Services, "Service (namespace/name) whose endpoints are gateways. Can be given several times.")
	fs.IntVar(&o.Port, "refresh-port", o.Port, "Port at which these gateways take messages of their peers.")
	fs.StringSliceVar(&o.URLs, "gateway-url", o.URLs, "URL at which one gateway takes messages of its peers. Can be given several times.")
	fs.DurationVar(&o.Pace.Interval, "interval", o.Pace.Interval, "How often to repeat each deletion: a route that comes back can stay that long.")
	fs.IntVar(&o.Pace.Rate, "rate", o.Pace.Rate, "Most messages a second for one gateway. With more deletions than rate times interval, the interval grows.")
	fs.DurationVar(&o.Pace.Timeout, "timeout", o.Pace.Timeout, "How long one message may take.")
	fs.DurationVar(&o.Keep, "keep", o.Keep, "How long to repeat a deletion.")
	fs.IntVar(&o.MaxDeletions, "max-deletions", o.MaxDeletions, "How many deletions to repeat at most; the oldest are forgotten first.")
}

// Complete reads the names of Services.
func (o *SentinelOptions) Complete() error {
	o.services = nil
	for _, text := range o.Services {
		namespace, name, ok := strings.Cut(text, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return fmt.Errorf("--gateway-service %q: write it as namespace/name", text)
		}
		o.services = append(o.services, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return nil
}

// Validate reports the first option that cannot be used.
func (o *SentinelOptions) Validate() error {
	if len(o.services) == 0 && len(o.URLs) == 0 {
		return errors.New("--gateway-service, --gateway-url: say where the gateways are")
	}
	for _, u := range o.URLs {
		if !httpURL(u) {
			return fmt.Errorf("--gateway-url %q is no http or https URL", u)
		}
	}
	switch {
	case o.Port < 1 || o.Port > 65535:
		return fmt.Errorf("--refresh-port: %d is no port", o.Port)
	case o.Pace.Interval < time.Second:
		return fmt.Errorf("--interval: %s is too short, use 1s or more", o.Pace.Interval)
	case o.Pace.Rate < 1 || o.Pace.Rate > 10_000:
		return fmt.Errorf("--rate: %d is not between 1 and 10000", o.Pace.Rate)
	case o.Pace.Timeout <= 0:
		return fmt.Errorf("--timeout: %s is not positive", o.Pace.Timeout)
	case o.Keep < time.Minute:
		return fmt.Errorf("--keep: %s is too short, use 1m or more", o.Keep)
	case o.MaxDeletions < 1 || o.MaxDeletions > 1_000_000:
		return fmt.Errorf("--max-deletions: %d is not between 1 and 1000000", o.MaxDeletions)
	}
	return nil
}

// Run watches and repeats until ctx ends.
func (o *SentinelOptions) Run(ctx context.Context) error {
	return o.run(ctx, o.cacheOptions(), o.assemble)
}

func (o *SentinelOptions) assemble(mgr manager.Manager) error {
	m := sentinel.NewMetrics(metrics.Registry)
	deletions := sentinel.NewDeletions(o.MaxDeletions, o.Keep, m)
	s := sentinel.New(deletions, &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, o.Pace, m)
	watch := &sentinel.Watch{
		Cache: mgr.GetCache(), Deletions: deletions, Sentinel: s, URLs: o.URLs, Services: o.services, Port: o.Port,
	}
	ready := func(*http.Request) error { return watch.Ready() }
	if err := errors.Join(mgr.Add(manager.RunnableFunc(s.Start)), mgr.Add(manager.RunnableFunc(watch.Start)), mgr.AddReadyzCheck("watch", ready)); err != nil {
		return fmt.Errorf("assembling the sentinel: %w", err)
	}
	return nil
}

// cacheOptions have the cache hold names and versions of Sandboxes, and the
// endpoints of gateways.
func (o *SentinelOptions) cacheOptions() cache.Options {
	sandboxes := &metav1.PartialObjectMetadata{}
	sandboxes.SetGroupVersionKind(sentinel.SandboxKind)
	namespaces := map[string]cache.Config{}
	for _, service := range o.services {
		namespaces[service.Namespace] = cache.Config{}
	}
	by := map[client.Object]cache.ByObject{sandboxes: {Transform: keepNames}}
	if len(namespaces) > 0 {
		by[&discoveryv1.EndpointSlice{}] = cache.ByObject{Namespaces: namespaces}
	}
	return cache.Options{ByObject: by}
}

// keepNames drops what tenants write.
func keepNames(o any) (any, error) {
	if object, ok := o.(*metav1.PartialObjectMetadata); ok {
		object.Labels, object.Annotations, object.ManagedFields, object.OwnerReferences, object.Finalizers = nil, nil, nil, nil, nil
	}
	return o, nil
}
