package doctor

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rights are what Freshbind may do, and no more: a verb that the code needs and
// that is missing here fails tests, which run with these.
var Rights = []rbacv1.PolicyRule{
	right("", "get list watch", "namespaces"),
	right("", "get list watch", "nodes"),
	// Deleted are bare Pods that a pool of v0.1 or v0.2 has as its members.
	right("", "get list watch patch delete", "pods"),
	right("apps", "get list watch create update delete", "controllerrevisions"),
	right("agents.x-k8s.io", "get list watch patch delete", "sandboxes"),
	right("agents.x-k8s.io", "patch", "sandboxes/status"),
	right("events.k8s.io", "create patch", "events"),
	right("extensions.agents.x-k8s.io", "get list patch", "sandboxclaims"),
	right("extensions.agents.x-k8s.io", "get list watch", "sandboxtemplates"),
	right("extensions.agents.x-k8s.io", "get list watch patch", "sandboxwarmpools"),
}

// LeaseRights are needed in the namespace of the leases only.
var LeaseRights = right("coordination.k8s.io", "get create update", "leases")

// SelfTestRights are needed in the namespace of the self-test only, for dry runs.
var SelfTestRights = right("agents.x-k8s.io", "create", "sandboxes")

func right(group, verbs string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Verbs: strings.Fields(verbs), Resources: resources}
}

func (d *Doctor) rights(ctx context.Context) ([]Finding, error) {
	var out []Finding
	count := 0
	for _, n := range d.needs() {
		missing, err := d.missing(ctx, n.namespace, n.rule)
		if err != nil {
			return out, err
		}
		count += len(n.rule.Verbs)
		if len(missing) > 0 {
			out = append(out, failed("put back the role of the release: helm upgrade",
				"%s may not %s %s in %s", d.User, strings.Join(missing, ", "), n.rule.Resources[0], where(n.namespace)))
		}
	}
	if len(out) == 0 {
		return ok("%s has the %d rights that it needs", d.User, count), nil
	}
	return out, nil
}

// need is a right and where it is needed.
type need struct {
	namespace string
	rule      rbacv1.PolicyRule
}

func (d *Doctor) needs() []need {
	var out []need
	for _, r := range Rights {
		clusterWide := r.Resources[0] == "namespaces" || r.Resources[0] == "nodes"
		if clusterWide || len(d.Namespaces) == 0 {
			out = append(out, need{metav1.NamespaceAll, r})
			continue
		}
		for _, namespace := range d.Namespaces {
			out = append(out, need{namespace, r})
		}
	}
	return append(out, need{d.TestNamespace, SelfTestRights})
}

func where(namespace string) string {
	if namespace == metav1.NamespaceAll {
		return "all namespaces"
	}
	return "namespace " + namespace
}

func (d *Doctor) missing(ctx context.Context, namespace string, r rbacv1.PolicyRule) ([]string, error) {
	resource, sub, _ := strings.Cut(r.Resources[0], "/")
	var out []string
	for _, verb := range r.Verbs {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: d.User, Groups: groupsOf(d.User),
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: r.APIGroups[0], Version: "*", Resource: resource, Subresource: sub,
			},
		}}
		err := d.Client.Create(ctx, review)
		if apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("asking what %s may do: %w", d.User, err)
		}
		if err != nil {
			return nil, fmt.Errorf("reviewing access: %w", err)
		}
		if !review.Status.Allowed {
			out = append(out, verb)
		}
	}
	return out, nil
}

// groupsOf are the groups that the API server puts a service account into.
func groupsOf(user string) []string {
	account, is := strings.CutPrefix(user, "system:serviceaccount:")
	if !is {
		return []string{"system:authenticated"}
	}
	namespace, _, _ := strings.Cut(account, ":")
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
}

// policies looks for the rules that hold while Freshbind is down.
func (d *Doctor) policies(ctx context.Context) ([]Finding, error) {
	var out []Finding
	for _, want := range d.Policies {
		have, is := want.DeepCopyObject().(client.Object)
		if !is {
			continue
		}
		err := d.Client.Get(ctx, client.ObjectKeyFromObject(want), have)
		kind := want.GetObjectKind().GroupVersionKind().Kind
		switch {
		case apierrors.IsNotFound(err):
			out = append(out, failed(reinstall, "%s %s does not exist: stamps and used sandboxes are not guarded", kind, want.GetName()))
		case err != nil:
			return out, fmt.Errorf("reading %s %s: %w", kind, want.GetName(), err)
		}
	}
	if len(out) == 0 {
		return ok("%d admission policies and bindings are installed", len(d.Policies)), nil
	}
	return out, nil
}
