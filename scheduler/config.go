package scheduler

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Config is what a kube-scheduler, 1.30 and later, has to be told.
type Config struct {
	// URL is the base, https://host:port, as the scheduler reaches it.
	URL string
	// CAFile is a path where the scheduler runs. Without a CA it trusts anybody
	// (kube-scheduler's extender.go, makeTransport).
	CAFile string
	// ServerName is the name in the serving certificate where URL has another.
	ServerName string
	Timeout    time.Duration
	Weight     int64
	// Ignorable: the scheduler goes on without an answer.
	Ignorable bool
	// SchedulerName and LeaseNamespace are the second scheduler's.
	SchedulerName, LeaseNamespace string
}

// Stanza is the part extenders of a KubeSchedulerConfiguration.
func (c Config) Stanza() map[string]any {
	return map[string]any{"extenders": []configv1.Extender{c.extender()}}
}

// SecondScheduler is the whole configuration of a scheduler with one profile.
func (c Config) SecondScheduler() map[string]any {
	config := c.Stanza()
	config["apiVersion"], config["kind"] = configv1.SchemeGroupVersion.String(), "KubeSchedulerConfiguration"
	config["profiles"] = []any{map[string]any{"schedulerName": c.SchedulerName}}
	config["leaderElection"] = map[string]any{
		"leaderElect": true, "resourceName": c.SchedulerName, "resourceNamespace": c.LeaseNamespace,
	}
	return config
}

func (c Config) extender() configv1.Extender {
	return configv1.Extender{
		URLPrefix:      strings.TrimSuffix(c.URL, "/") + PathPrefix,
		FilterVerb:     verbFilter,
		PreemptVerb:    verbPreempt,
		PrioritizeVerb: verbPrioritize,
		Weight:         c.Weight,
		EnableHTTPS:    true,
		TLSConfig:      &configv1.ExtenderTLSConfig{CAFile: c.CAFile, ServerName: c.ServerName},
		HTTPTimeout:    metav1.Duration{Duration: c.Timeout},
		// Otherwise every request carries all nodes in full, and the scheduler
		// scores them without their pods.
		NodeCacheCapable: true,
		Ignorable:        c.Ignorable,
	}
}
