package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
)

// The values of a log format.
const (
	JSON = "json"
	Text = "text"
)

// The values of a scheduling mode.
const (
	SchedulingNone     = "None"
	SchedulingExtender = "Extender"
	SchedulingSecond   = "SecondScheduler"
)

// defaultDirectory is used when neither Secret nor directory is named.
const defaultDirectory = "/etc/freshbind/certs"

// Default is what holds where a file says nothing, and without a file.
func Default() Configuration {
	c := baseDefaults()
	c.complete()
	return c
}

// baseDefaults are the defaults of single fields.
func baseDefaults() Configuration {
	return Configuration{
		TypeMeta:          metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Defaults:          Defaults{Enforcement: string(settings.Audit), RolloutStrategy: string(freshness.OnReplenish)},
		Floors:            []Floor{},
		Repair:            true,
		Revisions:         Revisions{Limit: 10},
		ReplacementBudget: 50,
		Namespaces:        []string{},
		LeaderElection:    LeaderElection{Enabled: true},
		Webhook:           Webhook{BindAddress: ":9443", Clients: Clients{Names: []string{}}},
		Metrics:           Metrics{Listener: Listener{BindAddress: ":8080"}},
		Health:            Listener{BindAddress: ":8081"},
		Profiling:         Listener{BindAddress: "0"},
		GracePeriod:       Duration{Duration: 20 * time.Second},
		ReleasePeriod:     Duration{Duration: 20 * time.Second},
		SelfTest:          SelfTest{Enabled: true, Interval: Duration{Duration: 30 * time.Second}},
		Scheduling: Scheduling{
			Mode: SchedulingNone, SchedulerName: "freshbind-scheduler", Weights: Weights{Zone: 2, Node: 2, Image: 1},
		},
		Logging: Logging{Format: JSON},
	}
}

// complete adds the defaults that depend on other fields.
func (c *Configuration) complete() {
	cert := &c.Webhook.Certificate
	if cert.SecretName == "" && cert.Directory == "" {
		cert.Directory = defaultDirectory
	}
	if c.SelfTest.Namespace == "" {
		c.SelfTest.Namespace = metav1.NamespaceDefault
		if len(c.Namespaces) > 0 {
			c.SelfTest.Namespace = c.Namespaces[0]
		}
	}
}
