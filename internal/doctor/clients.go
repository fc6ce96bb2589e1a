package doctor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// clientCAKey is where the chart puts the CAs of the clients that are answered.
const clientCAKey = "client-ca.crt"

// clients says who may ask the webhooks. Whether the API server has such a
// certificate shows in whether it is answered: that is looked at by Refusal.
func (d *Doctor) clients(ctx context.Context) ([]Finding, error) {
	hooks, _, err := d.installed(ctx)
	if err != nil || len(hooks) == 0 || hooks[0].config.Service == nil {
		return nil, err
	}
	at := hooks[0].config.Service
	var config corev1.ConfigMap
	err = d.Client.Get(ctx, types.NamespacedName{Namespace: at.Namespace, Name: at.Name}, &config)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the configuration %s/%s: %w", at.Namespace, at.Name, err)
	case config.Data[clientCAKey] == "":
		return ok("the webhooks answer whoever reaches them; to answer the API server alone, see docs/security.md"), nil
	}
	if _, err := parse([]byte(config.Data[clientCAKey])); err != nil {
		return []Finding{failed("set webhooks.clients.caBundle to the CA of the API server's client certificate",
			"the CAs of clients in ConfigMap %s/%s cannot be read: %v", at.Namespace, at.Name, err)}, nil
	}
	return ok("the webhooks answer only clients with a certificate of the CAs in ConfigMap %s/%s", at.Namespace, at.Name), nil
}
