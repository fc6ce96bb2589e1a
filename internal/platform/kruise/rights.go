package kruise

import rbacv1 "k8s.io/api/rbac/v1"

// Rights are what Freshbind may do with the platform's objects: it reads them, marks
// members and SandboxSets, and deletes members. A
// SandboxClaim whose name is not known is looked for by its UID, and a Sandbox by the
// revision that it is of.
func Rights() []rbacv1.PolicyRule {
	may := func(resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{Group}, Resources: []string{resource}, Verbs: verbs}
	}
	return []rbacv1.PolicyRule{
		may(Sandboxes.Resource, "get", "list", "watch", "patch", "delete"), may(Templates.Resource, "get", "list", "watch"),
		may(Claims.Resource, "get", "list"), may(Sets.Resource, "get", "list", "watch", "patch"),
	}
}
