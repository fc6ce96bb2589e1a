package selfcert

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// every is how often we check whether something is due, or somebody has emptied
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
	// configurations are the names of the webhook configurations, by kind.
	configurations map[string][]string
	clock          clock.WithTicker
}

// New returns a keeper of a Secret, for a Service in front of the webhooks. reader must
// not be a cache.
func New(reader client.Reader, writer client.Writer, secret types.NamespacedName, service string, mutating, validating []string, c clock.WithTicker) *Keeper {
	host := service + "." + secret.Namespace + ".svc"
	return &Keeper{
		reader: reader, writer: writer, secret: secret, names: []string{host, host + ".cluster.local"},
		configurations: map[string][]string{"MutatingWebhookConfiguration": mutating, "ValidatingWebhookConfiguration": validating}, clock: c,
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
	for kind, names := range k.configurations {
		for _, name := range names {
			if err := k.trust(ctx, kind, name, data[CACertKey]); err != nil {
				return renewed, err
			}
		}
	}
	return renewed, nil
}

// trust puts the CA into all webhooks of a configuration. One that is not there needs
// none.
func (k *Keeper) trust(ctx context.Context, kind, name string, ca []byte) error {
	c := &unstructured.Unstructured{}
	c.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind(kind))
	if err := k.reader.Get(ctx, types.NamespacedName{Name: name}, c); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("reading %s %s: %w", kind, name, err)
	}
	before := c.DeepCopy()
	webhooks, found, err := unstructured.NestedSlice(c.Object, "webhooks")
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", kind, name, err)
	}
	if !found {
		return nil
	}
	for _, w := range webhooks {
		webhook, is := w.(map[string]any)
		if !is {
			return fmt.Errorf("reading %s %s: webhooks: want objects, got %T", kind, name, w)
		}
		if err := unstructured.SetNestedField(webhook, base64.StdEncoding.EncodeToString(ca), "clientConfig", "caBundle"); err != nil {
			return fmt.Errorf("putting the CA into %s %s: %w", kind, name, err)
		}
	}
	if err := unstructured.SetNestedSlice(c.Object, webhooks, "webhooks"); err != nil {
		return fmt.Errorf("putting the CA into %s %s: %w", kind, name, err)
	}
	if apiequality.Semantic.DeepEqual(before, c) {
		return nil
	}
	// The webhooks are one list to a merge patch: what others add must not get lost.
	if err := k.writer.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("putting the CA into %s %s: %w", kind, name, err)
	}
	return nil
}
