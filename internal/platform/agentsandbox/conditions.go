package agentsandbox

import (
	"strings"

	"github.com/freshbind/freshbind/internal/settings"
)

// What writes are, in the API server's language. Classify says the same in Go;
// test/cel runs one table through both.
const (
	celOwners     = `object.metadata.?ownerReferences.orValue([])`
	celOldOwners  = `oldObject.metadata.?ownerReferences.orValue([])`
	celOldLabels  = `oldObject.metadata.?labels.orValue({})`
	celNewLabels  = `object.metadata.?labels.orValue({})`
	celPoolLabel  = `'` + PodPoolLabel + `'`
	celClaimLabel = `'` + PodClaimLabel + `'`
	isStamped     = `'` + settings.StampKey + `' in object.metadata.?labels.orValue({})`
	// saysWhoMadeIt: it says that a pool's controller made it.
	saysWhoMadeIt = `'` + settings.CreatedByKey + `' in object.metadata.?annotations.orValue({})`

	// Of an owner o.
	claimOwner = `o.kind == 'SandboxClaim' && o.apiVersion.startsWith('` + ExtensionsGroup + `/')`
	poolOwner  = `o.kind == 'SandboxWarmPool' && o.apiVersion.startsWith('` + ExtensionsGroup + `/')`
	boxOwner   = `o.kind == 'Sandbox' && o.apiVersion.startsWith('` + CoreGroup + `/')`
	controls   = `o.?controller.orValue(false)`
	// foreignController is a controller that is neither pool nor claim. Upstream
	// asks for the UID of a controller only.
	foreignController = controls + ` && !(` + claimOwner + `) && !(` + poolOwner + `)`

	bornForAPool = celOwners + `.exists(o, ` + poolOwner + ` && ` + controls + `) && !` + celOwners + `.exists(o, ` + claimOwner + `)`
)

var (
	gainsAClaim             = gains(claimOwner, celOldOwners)
	gainsAForeignController = gains(foreignController, celOldOwners)
)

// gains is the condition that an owner is there for which the condition on o
// holds, and that was not among the old ones with the same UID and condition.
func gains(condition, old string) string {
	return celOwners + `.exists(o, ` + condition + ` && !` + old + `.exists(p, ` + ofP(condition) + ` && p.uid == o.uid))`
}

// ofP turns a condition on o into one on p.
func ofP(condition string) string {
	return strings.NewReplacer("o.", "p.", " o,", " p,").Replace(condition)
}
