package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/upstream"
)

// Claim builds a claim on the pool, in the form that the release understands:
// v1alpha1 claims name template and pool.
func (n *Namespace) Claim(p Pool, name string) *unstructured.Unstructured {
	if n.Version == builders.V1Alpha1 {
		return builders.MakeClaimV1Alpha1(n.Name, name, p.Template, p.Name).Obj()
	}
	return builders.MakeClaim(n.Name, name).Pool(p.Name).Obj()
}

// Names returns prefix1 to prefixN.
func Names(prefix string, count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", prefix, i+1)
	}
	return names
}

// CreateClaims creates claims on the pool, all at once.
func (n *Namespace) CreateClaims(ctx context.Context, p Pool, names ...string) error {
	return concurrently(names, func(name string) error { return n.Create(ctx, n.Claim(p, name)) })
}

// DeleteClaims deletes claims, all at once; one that is gone is no error.
func (n *Namespace) DeleteClaims(ctx context.Context, names ...string) error {
	return concurrently(names, func(name string) error {
		err := n.Resource(upstream.SandboxClaims).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete claim %s/%s: %w", n.Name, name, err)
		}
		return nil
	})
}

// UnreadyClaim is a claim that is not ready, and why, in its own words.
type UnreadyClaim struct{ Name, Reason, Message string }

// String is the claim in one line.
func (c UnreadyClaim) String() string {
	switch {
	case c.Reason == "":
		return c.Name + " (no condition yet)"
	case c.Message == "":
		return fmt.Sprintf("%s (%s)", c.Name, c.Reason)
	}
	return fmt.Sprintf("%s (%s: %s)", c.Name, c.Reason, c.Message)
}

// UnreadyError says which claims did not become ready in time.
type UnreadyError struct {
	Namespace string
	// Waited is how many claims were waited for, and Within how long.
	Waited int
	Within time.Duration
	Claims []UnreadyClaim
}

// shownReasons is how many claims an UnreadyError gives the reason of: they
// tend to be the same.
const shownReasons = 3

// Error names every claim that is not ready, the first ones with their reason.
func (e *UnreadyError) Error() string {
	lines := make([]string, len(e.Claims))
	for i, c := range e.Claims {
		if lines[i] = c.Name; i < shownReasons {
			lines[i] = c.String()
		}
	}
	return fmt.Sprintf("%d of %d claims in %s not ready within %s: %s",
		len(e.Claims), e.Waited, e.Namespace, e.Within, strings.Join(lines, "; "))
}

// WaitClaims waits until all these claims are ready. When the time is up the
// error is an *UnreadyError.
func (n *Namespace) WaitClaims(ctx context.Context, within time.Duration, names ...string) error {
	var unready []UnreadyClaim
	err := until(ctx, within, fmt.Sprintf("%d claims in %s", len(names), n.Name), func(ctx context.Context) (string, bool, error) {
		list, err := n.Resource(upstream.SandboxClaims).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", false, fmt.Errorf("list claims of %s: %w", n.Name, err)
		}
		unready = unreadyAmong(list.Items, names)
		return fmt.Sprintf("%d not ready", len(unready)), len(unready) == 0, nil
	})
	if TooLate(err) && len(unready) > 0 {
		return &UnreadyError{Namespace: n.Name, Waited: len(names), Within: within, Claims: unready}
	}
	return err
}

// unreadyAmong lists the named claims that are not ready, in the order of names.
func unreadyAmong(stored []unstructured.Unstructured, names []string) []UnreadyClaim {
	var unready []UnreadyClaim
	for _, name := range names {
		i := slices.IndexFunc(stored, func(o unstructured.Unstructured) bool { return o.GetName() == name })
		switch {
		case i < 0:
			unready = append(unready, UnreadyClaim{Name: name, Reason: "NotFound"})
		case !isReady(&stored[i]):
			c, _ := condition(&stored[i])
			unready = append(unready, UnreadyClaim{Name: name, Reason: c.Reason, Message: c.Message})
		}
	}
	return unready
}

var errNoSandbox = errors.New("has no sandbox")

// SandboxOf returns the Sandbox that a claim was given. A claim that has none,
// or whose Sandbox belongs to somebody else, is an error.
func (n *Namespace) SandboxOf(ctx context.Context, claim string) (*unstructured.Unstructured, error) {
	c, err := n.Resource(upstream.SandboxClaims).Get(ctx, claim, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get claim %s/%s: %w", n.Name, claim, err)
	}
	name, _, _ := unstructured.NestedString(c.Object, "status", "sandbox", "name")
	if name == "" {
		return nil, fmt.Errorf("claim %s/%s %w", n.Name, claim, errNoSandbox)
	}
	sandbox, err := n.Resource(upstream.Sandboxes).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get sandbox of claim %s/%s: %w", n.Name, claim, err)
	}
	if owner := metav1.GetControllerOf(sandbox); owner == nil || owner.UID != c.GetUID() {
		return nil, fmt.Errorf("claim %s/%s says it has sandbox %s, which is not its own", n.Name, claim, name)
	}
	return sandbox, nil
}
