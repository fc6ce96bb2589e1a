// Package doctor checks an installation of Freshbind from outside, with the
// rights of whoever asks, and says what to do. It writes nothing but dry runs and
// access reviews.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform"
)

// Status is how well something is.
type Status string

const (
	// OK: as it has to be.
	OK Status = "OK"
	// Warning: it works, and somebody should know of this.
	Warning Status = "Warning"
	// Failed: Freshbind does not do its work, or not everywhere.
	Failed Status = "Failed"
	// Unknown: it could not be found out, for lack of rights above all.
	Unknown Status = "Unknown"
)

// Finding is the outcome of one check.
type Finding struct {
	// Check names what was looked at; the set is closed.
	Check  string `json:"check"`
	Status Status `json:"status"`
	// Found is what there is.
	Found string `json:"found"`
	// Do is what to do about it; empty when nothing.
	Do string `json:"do,omitempty"`
}

// Doctor has what the checks need.
type Doctor struct {
	Client client.Client
	// Mutating and Validating are the configurations as this version installs
	// them; what an installation chooses in them is not compared.
	Mutating   *admissionregistrationv1.MutatingWebhookConfiguration
	Validating *admissionregistrationv1.ValidatingWebhookConfiguration
	// Floors are those of floors that enforce.
	Floors []*admissionregistrationv1.ValidatingWebhookConfiguration
	// Policies are those that this version installs.
	Policies []client.Object
	// Others are the platforms that are guarded besides.
	Others []Other
	// Platform is what Freshbind guards, Name what it is called.
	Platform platform.Kinds
	Name     string
	// BarePodLabel is on Pods that may themselves be members of pools.
	BarePodLabel string
	// FormerScheduler is the second scheduler that does not run any more; "" for none.
	FormerScheduler string
	// Kinds finds its kinds; false when they are not served.
	Kinds func(context.Context) (platform.Served, bool, error)
	// Enforced reports whether Freshbind denies in a namespace with these labels.
	Enforced func(namespace labels.Set) bool
	// User is the one that Freshbind runs as.
	User string
	// Namespaces are the only ones that Freshbind looks at; all when empty.
	Namespaces []string
	// TestNamespace is where a dry run is tried.
	TestNamespace string
	Now           func() time.Time
}

// check looks at one thing. An error means that it could not be found out.
type check struct {
	name string
	run  func(context.Context) ([]Finding, error)
}

// Run does all checks, in the order in which faults explain each other.
func (d *Doctor) Run(ctx context.Context) []Finding {
	var out []Finding
	for _, c := range []check{
		{"Platforms", d.platforms},
		{"Webhooks", d.everywhere((*Doctor).webhooks)},
		{"CA", d.everywhere((*Doctor).authorities)},
		{"Replicas", d.replicas},
		{"Clients", d.clients},
		{"Policies", d.policies},
		{"Rights", d.rights},
		{"Leader", d.leader},
		{"SelfTest", d.selfTest},
		{"Controllers", d.controllers},
		{"Refusal", d.refusal},
		{"Enforcement", d.enforcement},
	} {
		found, err := c.run(ctx)
		if err != nil {
			found = append(found, Finding{Status: Unknown, Found: err.Error(), Do: "run it with more rights, or once the API server answers"})
		}
		for _, f := range found {
			f.Check = c.name
			out = append(out, f)
		}
	}
	return out
}

// Sick reports whether any check failed.
func Sick(findings []Finding) bool {
	for _, f := range findings {
		if f.Status == Failed {
			return true
		}
	}
	return false
}

// Blind reports whether something could not be found out. What is unknown is
// neither well nor broken.
func Blind(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Status == Unknown })
}

func ok(format string, args ...any) []Finding {
	return []Finding{{Status: OK, Found: fmt.Sprintf(format, args...)}}
}

func failed(do, format string, args ...any) Finding {
	return Finding{Status: Failed, Found: fmt.Sprintf(format, args...), Do: do}
}

func warning(do, format string, args ...any) Finding {
	return Finding{Status: Warning, Found: fmt.Sprintf(format, args...), Do: do}
}
