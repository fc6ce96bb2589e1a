package doctor

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// byAPoolController is the condition that names the pool controllers, and
// quotedString a name in it.
const byAPoolController = "by-a-pool-controller"

var quotedString = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// controllers asks whether any of the users that count as pool controllers could
// be one: births by anybody else are not judged.
func (d *Doctor) controllers(ctx context.Context) ([]Finding, error) {
	_, found, err := d.Kinds(ctx)
	if err != nil || !found {
		return nil, err
	}
	hooks, _, err := d.installed(ctx)
	users := poolControllers(hooks)
	if err != nil || len(users) == 0 {
		return nil, err
	}
	births := rbacv1.PolicyRule{APIGroups: []string{d.Platform.Member.Group}, Verbs: []string{"create"}, Resources: []string{d.Platform.Member.Resource}}
	namespaces := d.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, user := range users {
		for _, namespace := range namespaces {
			missing, err := d.missing(ctx, user, namespace, births)
			if err != nil {
				return nil, err
			}
			if len(missing) == 0 {
				return ok("%s counts as a pool controller, and may create sandboxes in %s", user, where(namespace)), nil
			}
		}
	}
	return []Finding{failed("set webhooks.poolControllerUsers to the user of agent-sandbox's controller, which is system:serviceaccount:NAMESPACE:NAME by the "+
		"serviceAccountName of its Deployment",
		"the pool controller runs as somebody else than %s, who may not create sandboxes: new members are not judged, and claims' sandboxes not guarded against its deletes",
		strings.Join(users, ", "))}, nil
}

// poolControllers are the users that the installed webhooks take for pool
// controllers.
func poolControllers(hooks []hook) []string {
	var users []string
	for _, h := range hooks {
		for _, c := range h.conditions {
			if c.Name != byAPoolController {
				continue
			}
			for _, quoted := range quotedString.FindAllString(c.Expression, -1) {
				if user, err := strconv.Unquote(quoted); err == nil && !slices.Contains(users, user) {
					users = append(users, user)
				}
			}
		}
	}
	return users
}
