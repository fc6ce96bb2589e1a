package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/doctor"
	"github.com/freshbind/freshbind/internal/selftest"
	"github.com/freshbind/freshbind/internal/settings"
)

const (
	// installedAs is the name of the webhook configurations and of the lease.
	installedAs = "freshbind"
	// wouldRefuse begins the note of an event about a bind in mode audit.
	wouldRefuse = "would be refused: "
	// recently is what is looked back at: the API server keeps events that long.
	recently = time.Hour
)

// Footer says, in one line, what can be known of Freshbind itself, and what it
// would have refused in mode audit. Whatever may not be read is left out.
func (c *Cluster) Footer(ctx context.Context, namespace string) (string, error) {
	var sentences []string
	for _, of := range []func(context.Context, string) (string, error){c.guard, c.selfTest, c.wouldHave} {
		sentence, err := of(ctx, namespace)
		if err != nil && !apierrors.IsForbidden(err) {
			return "", err
		}
		if sentence != "" {
			sentences = append(sentences, sentence)
		}
	}
	return strings.Join(sentences, " "), nil
}

func (c *Cluster) guard(ctx context.Context, _ string) (string, error) {
	var webhooks admissionregistrationv1.ValidatingWebhookConfiguration
	err := c.Client.Get(ctx, types.NamespacedName{Name: installedAs}, &webhooks)
	if apierrors.IsNotFound(err) {
		return "Guard: not installed (there is no ValidatingWebhookConfiguration " + installedAs + "), so nothing is refused.", nil
	}
	if err != nil {
		return "", fmt.Errorf("looking for the webhooks: %w", err)
	}
	installed := "Guard: " + c.replicas(ctx, &webhooks)
	var leases coordinationv1.LeaseList
	err = c.Client.List(ctx, &leases, client.MatchingFields{"metadata.name": installedAs})
	switch {
	case apierrors.IsForbidden(err):
		return installed + ".", nil
	case err != nil:
		return "", fmt.Errorf("looking for the leader: %w", err)
	case len(leases.Items) == 0 || leases.Items[0].Spec.RenewTime == nil:
		return installed + "; no leader is elected.", nil
	}
	ago := duration.HumanDuration(max(0, c.Now().Sub(leases.Items[0].Spec.RenewTime.Time)))
	return fmt.Sprintf("%s; the leader was alive %s ago.", installed, ago), nil
}

// replicas says how many serve, as far as that can be known.
func (c *Cluster) replicas(ctx context.Context, webhooks *admissionregistrationv1.ValidatingWebhookConfiguration) string {
	const installed = "webhooks are installed"
	if len(webhooks.Webhooks) == 0 || webhooks.Webhooks[0].ClientConfig.Service == nil {
		return installed
	}
	service := webhooks.Webhooks[0].ClientConfig.Service
	ready, all, err := doctor.Replicas(ctx, c.Client, service.Namespace, service.Name)
	if err != nil {
		return installed
	}
	return fmt.Sprintf("%d/%d replicas are ready", ready, all)
}

// selfTest says what the last self-test told, if there was any.
func (c *Cluster) selfTest(ctx context.Context, _ string) (string, error) {
	var leases coordinationv1.LeaseList
	err := c.Client.List(ctx, &leases, client.MatchingFields{"metadata.name": selftest.LeaseName})
	if err != nil {
		return "", fmt.Errorf("looking for the self-test: %w", err)
	}
	if len(leases.Items) == 0 || leases.Items[0].Spec.RenewTime == nil {
		return "", nil
	}
	ago := duration.HumanDuration(max(0, c.Now().Sub(leases.Items[0].Spec.RenewTime.Time)))
	if leases.Items[0].Annotations[settings.SelfTestKey] != selftest.Passed {
		return fmt.Sprintf("The last self-test, %s ago, FAILED: run freshbind doctor.", ago), nil
	}
	return fmt.Sprintf("The last self-test passed %s ago.", ago), nil
}

// wouldHave counts, by events, the binds that mode audit let through.
func (c *Cluster) wouldHave(ctx context.Context, namespace string) (string, error) {
	var list eventsv1.EventList
	err := c.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{"regarding.kind": c.Objects.Kinds().Claim.Kind})
	if err != nil {
		return "", fmt.Errorf("listing events of claims: %w", err)
	}
	var count int32
	for i := range list.Items {
		e := &list.Items[i]
		at, n := e.EventTime.Time, int32(1)
		if e.Series != nil {
			at, n = e.Series.LastObservedTime.Time, e.Series.Count
		}
		if strings.HasPrefix(e.Note, wouldRefuse) && c.Now().Sub(at) < recently {
			count += n
		}
	}
	if count == 0 {
		return "", nil
	}
	return fmt.Sprintf("Mode audit let through %d binds in the last hour that enforce would have refused.", count), nil
}
