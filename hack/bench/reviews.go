package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/upstream"
	"github.com/freshbind/freshbind/webhooks"
)

// reviews are what the API server asks about the binds of all members, in its words.
func (b *binder) reviews(ctx context.Context) ([][]byte, error) {
	var out [][]byte
	for i, member := range b.members {
		stored, err := b.try(ctx, b.bound[i])
		if err != nil {
			return nil, err
		}
		object, err := stored.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encode sandbox: %w", err)
		}
		old, err := member.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encode sandbox: %w", err)
		}
		kind, resource := metav1.GroupVersionKind(stored.GroupVersionKind()), metav1.GroupVersionResource(upstream.Sandboxes.WithVersion(stored.GroupVersionKind().Version))
		review, err := json.Marshal(admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
			Request: &admissionv1.AdmissionRequest{
				UID: uuid.NewUUID(), Kind: kind, Resource: resource, RequestKind: &kind, RequestResource: &resource,
				Name: stored.GetName(), Namespace: stored.GetNamespace(), Operation: admissionv1.Update,
				UserInfo: authenticationv1.UserInfo{Username: upstream.User, Groups: []string{"system:serviceaccounts", "system:authenticated"}},
				Object:   runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old}, DryRun: ptr.To(false),
				Options: runtime.RawExtension{Raw: []byte(`{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}`)},
			},
		})
		if err != nil {
			return nil, fmt.Errorf("encode review: %w", err)
		}
		out = append(out, review)
	}
	return out, nil
}

// asker asks a replica about binds, as the API server does, without having them stored.
type asker struct {
	client  *http.Client
	url     string
	reviews [][]byte
}

func newAsker(replica *fixture.Freshbind, reviews [][]byte) *asker {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(replica.CA())
	return &asker{
		// The API server, too, has all calls of a webhook share connections of HTTP/2.
		client:  &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}},
		url:     replica.WebhookURL() + agentsandbox.Admission().PathPrefix + webhooks.BindHook.Path,
		reviews: reviews,
	}
}

// ask wants the bind allowed.
func (a *asker) ask(ctx context.Context, number int) (err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(a.reviews[number%len(a.reviews)]))
	if err != nil {
		return fmt.Errorf("ask about a bind: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("ask about a bind: %w", err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(resp.Body).Decode(&review); err != nil {
		return fmt.Errorf("ask about a bind: %s: %w", resp.Status, err)
	}
	if review.Response == nil || !review.Response.Allowed {
		return fmt.Errorf("ask about a bind: %s: it is not allowed: %+v", resp.Status, review.Response)
	}
	return nil
}

// flood asks as fast as so many get answers, and returns how many they got in a second.
func (a *asker) flood(ctx context.Context, writers int, during time.Duration) (float64, error) {
	var asked atomic.Int64
	start := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for writer := range writers {
		g.Go(func() error {
			for number := writer; time.Since(start) < during; number += writers {
				if err := a.ask(ctx, number); err != nil {
					return err
				}
				asked.Add(1)
			}
			return nil
		})
	}
	err := g.Wait()
	return float64(asked.Load()) / time.Since(start).Seconds(), err
}

// offer asks so often in a second, however long the answers take. It returns how long after
// the moment in which it was due each came; one that is no answer took as long as the API
// server would have waited.
func (a *asker) offer(ctx context.Context, rate float64, during time.Duration) ([]time.Duration, error) {
	took := make([]time.Duration, int(rate*during.Seconds()))
	var wg sync.WaitGroup
	start := time.Now()
	for number := range took {
		due := start.Add(time.Duration(float64(number) / rate * float64(time.Second)))
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		wg.Go(func() {
			if took[number] = webhooks.BindHook.Timeout; a.ask(ctx, number) == nil {
				took[number] = time.Since(due)
			}
		})
	}
	wg.Wait()
	return took, nil
}
