package webhooks

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

// What policies ask, in the API server's language.
const (
	stampOf       = `.metadata.?labels['` + platform.StampKey + `'].orValue('')`
	enforcementOf = `.metadata.?labels['` + platform.EnforcementKey + `'].orValue('')`
	boundToOf     = `.metadata.?annotations['` + platform.BoundToKey + `'].orValue('')`
	createdByOf   = `.metadata.?annotations['` + platform.CreatedByKey + `'].orValue('')`
	stampPath     = `'/metadata/labels/' + jsonpatch.escapeKey('` + platform.StampKey + `')`

	// usedBefore: what a claim leaves on its Sandbox when it is gone.
	usedBefore = `oldObject` + boundToOf + ` != '' || oldObject.metadata.?labels[` + claimLabel + `].orValue('') != '' || ` +
		`oldObject.?spec.?podTemplate.?metadata.?labels[` + claimLabel + `].orValue('') != ''`
	wasClaimed = usedBefore + ` || ` + oldOwners + `.exists(o, ` + claimOwner + `)`

	// putBack gives a stamp the value that it had, or takes away one that was not
	// there.
	putBack = `oldObject` + stampOf + ` == '' ? [JSONPatch{op: 'remove', path: ` + stampPath + `}] : ` +
		`has(object.metadata.labels) ? [JSONPatch{op: 'add', path: ` + stampPath + `, value: oldObject` + stampOf + `}] : ` +
		`[JSONPatch{op: 'add', path: '/metadata/labels', value: {'` + platform.StampKey + `': oldObject` + stampOf + `}}]`
)

var stampChanges = when("changes-a-stamp", `object`+stampOf+` != oldObject`+stampOf)

var (
	stampStays = admissionregistrationv1.Validation{
		Expression: `object` + stampOf + ` == oldObject` + stampOf,
		Message:    "metadata.labels[" + platform.StampKey + "]: says what the sandbox was built from, and is Freshbind's to write",
	}
	enforcementStays = admissionregistrationv1.Validation{
		Expression: `oldObject` + enforcementOf + ` == '' || object` + enforcementOf + ` == oldObject` + enforcementOf,
		Message:    "metadata.labels[" + platform.EnforcementKey + "]: says what the sandbox's pool asked for, and is Freshbind's to write",
	}
	birthStays = admissionregistrationv1.Validation{
		Expression: `object` + createdByOf + ` == oldObject` + createdByOf,
		Message:    "metadata.annotations[" + platform.CreatedByKey + "]: says who created the sandbox, and stays",
	}
	// noPoolAgain leaves alone what is there already: a rule that no write of such
	// a Sandbox passes would stop its own controllers.
	noPoolAgain = admissionregistrationv1.Validation{
		Expression: `!` + owners + `.exists(o, ` + poolOwner + ` && !` + oldOwners +
			`.exists(p, ` + ofP(poolOwner) + ` && p.uid == o.uid && (` + ofP(controls) + ` || !(` + controls + `))))`,
		Message: "metadata.ownerReferences: this sandbox had a claim, and can never be a member of a pool again",
	}
	boundToStays = admissionregistrationv1.Validation{
		Expression: `oldObject` + boundToOf + ` == '' || object` + boundToOf + ` == oldObject` + boundToOf,
		Message:    "metadata.annotations[" + platform.BoundToKey + "]: says whose sandbox this is or was, and stays",
	}
	// leavesAMark: a claim's owner reference is the only proof of it until
	// Freshbind has written one that stays.
	leavesAMark = admissionregistrationv1.Validation{
		Expression: `object` + boundToOf + ` != '' || ` + oldOwners + `.all(o, !(` + claimOwner + `) || ` +
			owners + `.exists(p, ` + ofP(claimOwner) + ` && p.uid == o.uid))`,
		Message: "metadata.ownerReferences: the claim can be taken off after Freshbind has noted whose sandbox this is; try again",
	}
	noDisguise = admissionregistrationv1.Validation{
		Expression: owners + `.all(o, ` + claimOwner + ` || ` +
			oldOwners + `.exists(p, p.uid == o.uid && p.kind == o.kind && p.apiVersion == o.apiVersion) || ` +
			`!(` + owners + ` + ` + oldOwners + `).exists(p, ` + ofP(claimOwner) + ` && p.uid == o.uid) && ` +
			`!(o.uid in [object` + boundToOf + `, oldObject` + boundToOf + `, ` + claimUIDOf(`object`) + `, ` + claimUIDOf(`oldObject`) + `]))`,
		Message: "metadata.ownerReferences: an owner of another kind has the UID of a claim",
	}
	noOtherController = admissionregistrationv1.Validation{
		Expression: `!` + oldOwners + `.exists(o, ` + poolOwner + ` && ` + controls + `) || !` + owners + `.exists(o, ` + foreignController + `)`,
		Message:    "metadata.ownerReferences: a member of a pool is given to claims, and to no other controller",
	}
)

// claimUIDOf is upstream's mark of the claim.
func claimUIDOf(object string) string {
	return object + `.metadata.?labels['` + agentsandbox.PodClaimLabel + `'].orValue('')`
}
