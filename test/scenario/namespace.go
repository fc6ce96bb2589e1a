package scenario

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	// poll is how soon a state that is waited for is looked at again, and
	// slowPoll when it takes long: many wait at once, and looking costs the API
	// server, and with it what they wait for, more than the wait is worth.
	poll     = 50 * time.Millisecond
	slowPoll = 6 * poll
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Enforce are the labels of a namespace in which Freshbind denies.
func Enforce() map[string]string { return map[string]string{settings.EnforcementKey: "enforce"} }

// Namespace is a namespace in which a scenario is played.
type Namespace struct {
	// Name is the namespace's name.
	Name string
	// Version is the API version of the warm-pool system, v1beta1 or v1alpha1.
	Version string

	client dynamic.Interface
}

// Use returns a handle to a namespace, which need not exist. version is the one
// in which agent-sandbox's kinds are written (upstream.APIVersion).
func Use(cfg *rest.Config, version, name string) (*Namespace, error) {
	cfg = rest.CopyConfig(cfg)
	// A burst of claims has to be a burst, and advice is for people.
	cfg.QPS, cfg.WarningHandler = -1, rest.NoWarnings{}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client for namespace %s: %w", name, err)
	}
	return &Namespace{Name: name, Version: version, client: client}, nil
}

// CreateNamespace creates a namespace with labels; one that exists is an error.
func CreateNamespace(ctx context.Context, cfg *rest.Config, version, name string, labels map[string]string) (*Namespace, error) {
	n, err := Use(cfg, version, name)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("v1")
	object.SetKind("Namespace")
	object.SetName(name)
	object.SetLabels(labels)
	if _, err := n.client.Resource(namespaces).Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create namespace %s: %w", name, err)
	}
	return n, nil
}

// Remove deletes the namespace, if it is there, and does not wait for the end
// of its content.
func (n *Namespace) Remove(ctx context.Context) error {
	err := n.client.Resource(namespaces).Delete(ctx, n.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete namespace %s: %w", n.Name, err)
	}
	return nil
}

// Resource is the client of one of agent-sandbox's resources (upstream.Sandboxes
// and so on) in the namespace.
func (n *Namespace) Resource(r schema.GroupResource) dynamic.ResourceInterface {
	return n.client.Resource(r.WithVersion(n.Version)).Namespace(n.Name)
}

var resources = map[string]schema.GroupResource{
	"Sandbox":         upstream.Sandboxes,
	"SandboxClaim":    upstream.SandboxClaims,
	"SandboxTemplate": upstream.SandboxTemplates,
	"SandboxWarmPool": upstream.SandboxWarmPools,
}

// Create stores objects of agent-sandbox's kinds, one after the other.
func (n *Namespace) Create(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, o := range objects {
		resource, ok := resources[o.GetKind()]
		if !ok {
			return fmt.Errorf("create %s %s: not a kind of agent-sandbox", o.GetKind(), o.GetName())
		}
		if _, err := n.Resource(resource).Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create %s %s/%s: %w", o.GetKind(), n.Name, o.GetName(), err)
		}
	}
	return nil
}

// LateError says that the cluster did not get where it was waited for.
type LateError struct {
	// What was waited for, Within how long, and how far it had come.
	What   string
	Within time.Duration
	State  string
}

// Error names all three.
func (e *LateError) Error() string {
	return fmt.Sprintf("not within %s: %s; there is: %s", e.Within, e.What, e.State)
}

// TooLate reports whether err says that the cluster did not get somewhere in
// time, as opposed to a request that failed.
func TooLate(err error) bool {
	var late *LateError
	var unready *UnreadyError
	return errors.As(err, &late) || errors.As(err, &unready)
}

// until polls condition, which tells how far things are. When the time is up
// the error is a *LateError.
func until(ctx context.Context, within time.Duration, what string, condition func(context.Context) (string, bool, error)) error {
	state := "nothing seen yet"
	err := Poll(ctx, within, func(ctx context.Context) (bool, error) {
		seen, done, err := condition(ctx)
		if err == nil {
			state = seen
		}
		return done, err
	})
	switch {
	case err == nil:
		return nil
	case context.Cause(ctx) != nil:
		return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
	case wait.Interrupted(err):
		return &LateError{What: what, Within: within, State: state}
	}
	return fmt.Errorf("wait for %s: %w", what, err)
}

// Poll looks at condition until it is done or fails, ever less often. When the
// time is up the error is one of which wait.Interrupted tells.
func Poll(ctx context.Context, within time.Duration, condition wait.ConditionWithContextFunc) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	pauses := wait.Backoff{Duration: poll, Factor: 1.3, Cap: slowPoll, Steps: math.MaxInt32}
	return pauses.DelayFunc().Until(ctx, true, true, condition)
}

// Pause waits, and returns why ctx ended if it does before.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// isReady reads the condition Ready of a Sandbox or a claim.
func isReady(o *unstructured.Unstructured) bool {
	c, ok := condition(o)
	return ok && c.Status == metav1.ConditionTrue
}

func condition(o *unstructured.Unstructured) (metav1.Condition, bool) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		m, _ := item.(map[string]any)
		if m["type"] != "Ready" {
			continue
		}
		status, _ := m["status"].(string)
		reason, _ := m["reason"].(string)
		message, _ := m["message"].(string)
		return metav1.Condition{Status: metav1.ConditionStatus(status), Reason: reason, Message: message}, true
	}
	return metav1.Condition{}, false
}

// concurrently calls f for all items at once and joins the errors.
func concurrently[T any](items []T, f func(T) error) error {
	errs := make(chan error, len(items))
	for _, item := range items {
		go func() { errs <- f(item) }()
	}
	var all []error
	for range items {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}
