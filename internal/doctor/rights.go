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

	"github.com/freshbind/freshbind/internal/platform"
)

// Rights are what Freshbind may do with a platform of these kinds, and no more: a verb
// that the code needs and that is missing here fails tests, which run with these.
func Rights(k platform.Kinds) []rbacv1.PolicyRule {
	out := []rbacv1.PolicyRule{
		right("", "get list watch", "namespaces"),
		right("", "get list watch", "nodes"),
		right("", "get list watch patch", "pods"),
		right("apps", "get list watch create update delete", "controllerrevisions"),
		right(k.Member.Group, "get list watch patch delete", k.Member.Resource),
		right(k.Member.Group, "patch", k.Member.Resource+"/status"),
		right("events.k8s.io", "create patch", "events"),
		right(k.Template.Group, "get list watch", k.Template.Resource),
		right(k.Pool.Group, "get list watch patch", k.Pool.Resource),
	}
	if k.HasClaims() {
		out = append(out, right(k.Claim.Group, "get list patch", k.Claim.Resource))
	}
	return out
}

// PodDeletes are the rights that Freshbind needs besides where Pods themselves are members,
// or wait for a second scheduler that is not there any more.
var PodDeletes = right("", "delete", "pods")

// LeaseRights are needed in the namespace of the leases only.
var LeaseRights = right("coordination.k8s.io", "get create update", "leases")

// DeploymentRights are needed there, too, by a manager that has a Deployment.
var DeploymentRights = right("apps", "get", "deployments")

// SelfTestRights are needed in the namespace of the self-test only, for dry runs.
func SelfTestRights(k platform.Kinds) rbacv1.PolicyRule {
	return right(k.Member.Group, "create", k.Member.Resource)
}

func right(group, verbs string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Verbs: strings.Fields(verbs), Resources: resources}
}

func (d *Doctor) rights(ctx context.Context) ([]Finding, error) {
	var out []Finding
	count := 0
	for _, n := range d.needs() {
		missing, err := d.missing(ctx, d.User, n.namespace, n.rule)
		if err != nil {
			return out, err
		}
		count += len(n.rule.Verbs)
		if len(missing) > 0 {
			out = append(out, failed("put back the role of the release: helm upgrade",
				"%s may not %s %s in %s", d.User, strings.Join(missing, ", "), n.rule.Resources[0], where(n.namespace)))
		}
	}
	deletes, err := d.podDeletes(ctx)
	if err != nil {
		return out, err
	}
	if out = append(out, deletes...); len(out) == 0 {
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
	rules := Rights(d.Platform)
	for _, o := range d.Others {
		rules = append(rules, o.Rights...)
	}
	for _, r := range rules {
		clusterWide := r.Resources[0] == "namespaces" || r.Resources[0] == "nodes"
		if clusterWide || len(d.Namespaces) == 0 {
			out = append(out, need{metav1.NamespaceAll, r})
			continue
		}
		for _, namespace := range d.Namespaces {
			out = append(out, need{namespace, r})
		}
	}
	return append(out, need{d.TestNamespace, SelfTestRights(d.Platform)})
}

func where(namespace string) string {
	if namespace == metav1.NamespaceAll {
		return "all namespaces"
	}
	return "namespace " + namespace
}

// missing are the verbs of a rule that a user lacks.
func (d *Doctor) missing(ctx context.Context, user, namespace string, r rbacv1.PolicyRule) ([]string, error) {
	resource, sub, _ := strings.Cut(r.Resources[0], "/")
	var out []string
	for _, verb := range r.Verbs {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, Groups: groupsOf(user),
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: r.APIGroups[0], Version: "*", Resource: resource, Subresource: sub,
			},
		}}
		err := d.Client.Create(ctx, review)
		if apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("asking what %s may do: %w", user, err)
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
			out = append(out, failed(reinstall, "%s %s does not exist: nothing guards revision labels and used sandboxes", kind, want.GetName()))
		case err != nil:
			return out, fmt.Errorf("reading %s %s: %w", kind, want.GetName(), err)
		}
	}
	if len(out) == 0 {
		return ok("%d admission policies and bindings are installed", len(d.Policies)), nil
	}
	return out, nil
}
