package selfcert

import (
	"bytes"
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// every is how often it is looked whether something is due, or somebody has emptied
	// what the API server trusts; again is the pause after a failure.
	every = time.Minute
	again = time.Second
)

// Keeper keeps Secret and webhook configurations. It runs on every replica: none
// serves before there is a certificate, and each write names the version that it was
// made from, so that of several replicas one wins and the others read what it wrote.
type Keeper struct {
	reader client.Reader
	writer client.Writer
	secret types.NamespacedName
	// names are those that the API server calls.
	names []string
	// mutating and validating are the names of the configurations.
	mutating, validating []string
	clock                clock.WithTicker
}

// New returns a keeper of a Secret, for a Service in front of the webhooks. reader must
// not be a cache.
func New(reader client.Reader, writer client.Writer, secret types.NamespacedName, service string, mutating, validating []string, c clock.WithTicker) *Keeper {
	host := service + "." + secret.Namespace + ".svc"
	return &Keeper{
		reader: reader, writer: writer, secret: secret, names: []string{host, host + ".cluster.local"},
		mutating: mutating, validating: validating, clock: c,
	}
}

// NeedLeaderElection is false: nobody leads before there is a certificate.
func (*Keeper) NeedLeaderElection() bool { return false }

// Start keeps them until ctx ends. A failure is logged once.
func (k *Keeper) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("certificate-authority").WithValues("secret", k.secret)
	failing := ""
	for {
		wait := every
		switch renewed, err := k.Hold(ctx); {
		case err == nil:
			failing = ""
			if len(renewed) > 0 {
				log.Info("Made certificates", "renewed", renewed)
			}
		case apierrors.IsConflict(err):
			wait = again
		case ctx.Err() == nil:
			wait = again
			if err.Error() != failing {
				failing = err.Error()
				log.Error(err, "Cannot keep the certificate that the API server trusts")
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.clock.After(wait):
		}
	}
}

// Hold makes what is due, and has the API server trust the CA.
func (k *Keeper) Hold(ctx context.Context) (renewed []string, err error) {
	var secret corev1.Secret
	if err := k.reader.Get(ctx, k.secret, &secret); err != nil {
		return nil, fmt.Errorf("reading the secret, which the chart creates: %w", err)
	}
	data, renewed, err := issue(secret.Data, k.names, k.clock.Now())
	if err != nil {
		return nil, err
	}
	if len(renewed) > 0 {
		secret.Data = data
		if err := k.writer.Update(ctx, &secret); err != nil {
			return nil, fmt.Errorf("writing the secret: %w", err)
		}
	}
	for _, name := range k.mutating {
		var c admissionregistrationv1.MutatingWebhookConfiguration
		if err := k.trust(ctx, name, &c, func() (configs []*admissionregistrationv1.WebhookClientConfig) {
			for i := range c.Webhooks {
				configs = append(configs, &c.Webhooks[i].ClientConfig)
			}
			return configs
		}, data[CACertKey]); err != nil {
			return renewed, err
		}
	}
	for _, name := range k.validating {
		var c admissionregistrationv1.ValidatingWebhookConfiguration
		if err := k.trust(ctx, name, &c, func() (configs []*admissionregistrationv1.WebhookClientConfig) {
			for i := range c.Webhooks {
				configs = append(configs, &c.Webhooks[i].ClientConfig)
			}
			return configs
		}, data[CACertKey]); err != nil {
			return renewed, err
		}
	}
	return renewed, nil
}

// trust puts the CA into all webhooks of a configuration. One that is not there needs
// none.
func (k *Keeper) trust(ctx context.Context, name string, c client.Object, configs func() []*admissionregistrationv1.WebhookClientConfig, ca []byte) error {
	if err := k.reader.Get(ctx, types.NamespacedName{Name: name}, c); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("reading webhook configuration %s: %w", name, err)
	}
	before, is := c.DeepCopyObject().(client.Object)
	if !is {
		return fmt.Errorf("copying webhook configuration %s: it is no object", name)
	}
	changed := false
	for _, config := range configs() {
		if !bytes.Equal(config.CABundle, ca) {
			config.CABundle, changed = ca, true
		}
	}
	if !changed {
		return nil
	}
	// The webhooks are one list to a merge patch: what others add must not get lost.
	if err := k.writer.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("putting the CA into webhook configuration %s: %w", name, err)
	}
	return nil
}
