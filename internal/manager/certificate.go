package manager

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/freshbind/freshbind/internal/selfcert"
	"github.com/freshbind/freshbind/webhooks"
)

// certificateSecret is where the serving certificate is.
func (o *process) certificateSecret() (types.NamespacedName, error) {
	secret := types.NamespacedName{Namespace: o.Certificate.SecretNamespace, Name: o.Certificate.SecretName}
	if secret.Namespace != "" {
		return secret, nil
	}
	var err error
	if secret.Namespace, err = ownNamespace(); errors.Is(err, os.ErrNotExist) {
		return secret, errors.New("webhook.certificate.secretNamespace: required outside of a cluster")
	}
	return secret, err
}

// generate has the certificate made here, where nobody else makes it.
func (o *process) generate(mgr manager.Manager) error {
	if o.Certificate.GenerateFor == "" {
		return nil
	}
	secret, err := o.certificateSecret()
	if err != nil {
		return err
	}
	var mutating, validating []string
	for _, a := range o.admissions {
		mutating, validating = append(mutating, webhooks.ConfigurationOf(a)), append(validating, webhooks.ConfigurationOf(a))
		for _, c := range webhooks.FloorConfigurations(a, webhooks.Endpoint{}, o.Scope) {
			validating = append(validating, c.Name)
		}
	}
	k := selfcert.New(mgr.GetAPIReader(), mgr.GetClient(), secret, o.Certificate.GenerateFor, mutating, validating, clock.RealClock{})
	if err := mgr.Add(k); err != nil {
		return fmt.Errorf("adding what makes the serving certificate: %w", err)
	}
	return nil
}
