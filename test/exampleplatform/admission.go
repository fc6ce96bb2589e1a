package exampleplatform

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/freshbind/freshbind/internal/platform"
)

// What writes are, in the API server's language; Classify says the same in Go.
const (
	// Of an owner o.
	fleetOwner = `o.kind == '` + fleetKind + `' && o.apiVersion.startsWith('` + Group + `/')`
	boxOwner   = `o.kind == '` + boxKind + `' && o.apiVersion.startsWith('` + Group + `/')`

	ownedByFleet  = `object.metadata.?ownerReferences.orValue([]).exists(o, ` + fleetOwner + `)`
	wasOwned      = `oldObject.metadata.?ownerReferences.orValue([]).exists(o, ` + fleetOwner + `)`
	ownedByBox    = `object.metadata.?ownerReferences.orValue([]).exists(o, ` + boxOwner + `)`
	claim         = `object.metadata.?annotations[?'` + ClaimKey + `'].orValue('')`
	oldClaim      = `oldObject.metadata.?annotations[?'` + ClaimKey + `'].orValue('')`
	leavesOrTaken = wasOwned + ` && !` + ownedByFleet + ` || ` + claim + ` != '' && ` + claim + ` != ` + oldClaim
)

// Admission says which requests each hook is about. There are no cold starts, and
// nothing deletes a Box that somebody has: those hooks are not installed.
func Admission() platform.Admission {
	create, update, remove := admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete
	boxes := func(ops ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{platform.On(Group, "*", Boxes.Resource, ops...)}
	}
	return platform.Admission{
		Members: Boxes, MadeForPool: ownedByFleet, Controllers: []string{ControllerUser},
		Requests: map[platform.Requested]platform.Requests{
			platform.Binds:      {Rules: boxes(update), Conditions: platform.When("somebody-takes-a-box", leavesOrTaken)},
			platform.Births:     {Rules: boxes(create), Conditions: platform.When("made-for-a-fleet", ownedByFleet)},
			platform.NewMembers: {Rules: boxes(create), Conditions: platform.When("made-for-a-fleet", ownedByFleet)},
			platform.NewPods: {
				Rules:      []admissionregistrationv1.RuleWithOperations{platform.On("", "v1", pods.Resource, create)},
				Conditions: platform.When("made-for-a-box", ownedByBox),
			},
		},
		// The mark of a used Box can be read off it alone.
		Rules: []platform.MemberRule{{
			Name: "freshbind-box-used", Conditions: platform.When("somebody-has-it", oldClaim+` != ''`),
			Validations: []admissionregistrationv1.Validation{{
				Expression: claim + ` != ''`, Message: "metadata.annotations[" + ClaimKey + "]: says that the box was used, and cannot be removed",
			}},
		}},
		// Freshbind records what Fleets were, and no more. Kept says what else it writes.
		Own: platform.OwnWrites{
			Members: boxes(create, remove), Idle: `false`, IdlePod: `false`, Template: fleetOwner,
		},
	}
}
