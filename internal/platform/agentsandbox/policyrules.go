package agentsandbox

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// What policies ask, in the API server's language.
const (
	boundToOf = `.metadata.?annotations['` + settings.BoundToKey + `'].orValue('')`

	// usedBefore: what a claim leaves on its Sandbox when it is gone.
	usedBefore = `oldObject` + boundToOf + ` != '' || oldObject.metadata.?labels[` + celClaimLabel + `].orValue('') != '' || ` +
		`oldObject.?spec.?podTemplate.?metadata.?labels[` + celClaimLabel + `].orValue('') != ''`
	hadAClaim = usedBefore + ` || ` + celOldOwners + `.exists(o, ` + claimOwner + `)`
)

var (
	// noPoolAgain leaves alone what is there already: a rule that no write of such
	// a Sandbox passes would stop its own controllers.
	noPoolAgain = admissionregistrationv1.Validation{
		Expression: `!` + celOwners + `.exists(o, ` + poolOwner + ` && !` + celOldOwners +
			`.exists(p, ` + ofP(poolOwner) + ` && p.uid == o.uid && (` + ofP(controls) + ` || !(` + controls + `))))`,
		Message: "metadata.ownerReferences: this sandbox had a claim, and can never be a member of a pool again",
	}
	boundToStays = admissionregistrationv1.Validation{
		Expression: `oldObject` + boundToOf + ` == '' || object` + boundToOf + ` == oldObject` + boundToOf,
		Message:    "metadata.annotations[" + settings.BoundToKey + "]: says whose sandbox this is or was, and cannot be changed",
	}
	// leavesAMark: a claim's owner reference is the only proof of it until
	// Freshbind has written one that stays.
	leavesAMark = admissionregistrationv1.Validation{
		Expression: `object` + boundToOf + ` != '' || ` + celOldOwners + `.all(o, !(` + claimOwner + `) || ` +
			celOwners + `.exists(p, ` + ofP(claimOwner) + ` && p.uid == o.uid))`,
		Message: "metadata.ownerReferences: Freshbind has not yet noted whose sandbox this is, so the claim cannot be removed; try again",
	}
	noDisguise = admissionregistrationv1.Validation{
		Expression: celOwners + `.all(o, ` + claimOwner + ` || ` +
			celOldOwners + `.exists(p, p.uid == o.uid && p.kind == o.kind && p.apiVersion == o.apiVersion) || ` +
			`!(` + celOwners + ` + ` + celOldOwners + `).exists(p, ` + ofP(claimOwner) + ` && p.uid == o.uid) && ` +
			`!(o.uid in [object` + boundToOf + `, oldObject` + boundToOf + `, ` + claimUIDOf(`object`) + `, ` + claimUIDOf(`oldObject`) + `]))`,
		Message: "metadata.ownerReferences: an owner of another kind has the UID of a claim",
	}
	noOtherController = admissionregistrationv1.Validation{
		Expression: `!` + celOldOwners + `.exists(o, ` + poolOwner + ` && ` + controls + `) || !` + celOwners + `.exists(o, ` + foreignController + `)`,
		Message:    "metadata.ownerReferences: only a claim can take a member of a pool, no other controller",
	}
)

// memberRules are the policies that members are kept to.
func memberRules() []platform.MemberRule {
	return []platform.MemberRule{
		// A used sandbox never goes back to a pool, whoever takes its owner away: the
		// next tenant would get it (upstream adopts what carries a pool's label).
		{
			Name: "freshbind-used", Conditions: platform.When("had-a-claim", hadAClaim),
			Validations: []admissionregistrationv1.Validation{noPoolAgain, boundToStays, leavesAMark},
		},
		{
			Name: "freshbind-owners", Conditions: platform.When("has-owners", celOwners+`.size() > 0`),
			Validations: []admissionregistrationv1.Validation{noDisguise, noOtherController},
		},
	}
}

// claimUIDOf is upstream's mark of the claim.
func claimUIDOf(object string) string {
	return object + `.metadata.?labels['` + PodClaimLabel + `'].orValue('')`
}
