package agentsandbox

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/freshbind/freshbind/internal/platform"
)

const (
	// Of an owner o.
	templateOwner = controls + ` && o.kind == 'SandboxTemplate' && o.apiVersion.startsWith('` + ExtensionsGroup + `/')`

	celOldStatus = `dyn(oldObject).?status.orValue({})`
	celNewStatus = `dyn(object).?status.orValue({})`
)

// ownWrites are those of Freshbind's controllers. OfferPatch takes the node off the
// status, nothing else.
func ownWrites() platform.OwnWrites {
	return platform.OwnWrites{
		Marked: []admissionregistrationv1.RuleWithOperations{
			platform.On(CoreGroup, "*", Sandboxes.Resource, update),
			platform.On(ExtensionsGroup, "*", Claims.Resource, update),
			platform.On(ExtensionsGroup, "*", Pools.Resource, update),
		},
		Labels: []string{TemplateRefHashLabel},
		Status: platform.On(CoreGroup, "*", Sandboxes.Resource+"/status", update),
		// v1alpha1 has replicas, v1beta1 (from v0.5 on) operatingMode instead.
		Converted: []string{"operatingMode", "replicas"},
		StatusKept: admissionregistrationv1.Validation{
			Expression: celNewStatus + `.all(k, k in ` + celOldStatus + ` && ` + celOldStatus + `[k] == ` + celNewStatus + `[k]) && ` +
				celOldStatus + `.all(k, k == 'nodeName' || k in ` + celNewStatus + `)`,
			Message: "status: Freshbind removes nodeName, and writes nothing else",
		},
		Members: sandboxes(create, admissionregistrationv1.Delete),
		Idle:    celOldOwners + `.exists(o, ` + poolOwner + ` && ` + controls + `) && !` + celOldOwners + `.exists(o, ` + claimOwner + `)`,
		// A bare Pod that has left its pool has no controller, and the name that was
		// generated for it.
		IdlePod: celOldOwners + `.exists(o, ` + controls + ` && (` + poolOwner + ` || ` + boxOwner + ` && oldObject.spec.?nodeName.orValue('') == '')) || ` +
			`oldObject.metadata.?generateName.orValue('') != '' && !` + celOldOwners + `.exists(o, ` + controls + `)`,
		Template: templateOwner,
	}
}
