package doctor

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/freshbind/freshbind/internal/platform"
)

// Other is a platform that is guarded besides Doctor.Platform. Its policies are among
// Doctor.Policies.
type Other struct {
	// Name is what it is called.
	Name string
	// Mutating, Validating and Floors are its configurations, as those of Doctor.
	Mutating   *admissionregistrationv1.MutatingWebhookConfiguration
	Validating *admissionregistrationv1.ValidatingWebhookConfiguration
	Floors     []*admissionregistrationv1.ValidatingWebhookConfiguration
	// Rights are what Freshbind may do with its objects.
	Rights []rbacv1.PolicyRule
	// Kinds finds its kinds; false when they are not served.
	Kinds func(context.Context) (platform.Served, bool, error)
}

// everywhere makes a check for the configurations of each platform.
func (d *Doctor) everywhere(check func(*Doctor, context.Context) ([]Finding, error)) func(context.Context) ([]Finding, error) {
	return func(ctx context.Context) ([]Finding, error) {
		out, err := check(d, ctx)
		for _, o := range d.Others {
			if err != nil {
				break
			}
			of := *d
			of.Mutating, of.Validating, of.Floors = o.Mutating, o.Validating, o.Floors
			var found []Finding
			found, err = check(&of, ctx)
			out = append(out, found...)
		}
		return out, err
	}
}

// othersFound are findings on the other platforms that there are.
func (d *Doctor) othersFound(ctx context.Context) ([]Finding, error) {
	var out []Finding
	for _, o := range d.Others {
		k, found, err := o.Kinds(ctx)
		switch {
		case err != nil:
			return nil, err
		case found:
			out = append(out, ok("%s: sandboxes %s, pools %s", o.Name, k.Sandboxes.Version, k.Pools.Version)...)
		}
	}
	return out, nil
}
