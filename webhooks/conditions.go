package webhooks

import (
	"strings"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

// What writes are, in the API server's language. Package agentsandbox says the
// same in Go (Classify); test/cel runs one table through both.
const (
	owners     = `object.metadata.?ownerReferences.orValue([])`
	oldOwners  = `oldObject.metadata.?ownerReferences.orValue([])`
	oldLabels  = `oldObject.metadata.?labels.orValue({})`
	newLabels  = `object.metadata.?labels.orValue({})`
	poolLabel  = `'` + agentsandbox.PodPoolLabel + `'`
	claimLabel = `'` + agentsandbox.PodClaimLabel + `'`
	carries    = `'` + platform.StampKey + `' in object.metadata.?labels.orValue({})`
	// carriesBirth: it says that a pool's controller made it.
	carriesBirth = `'` + platform.CreatedByKey + `' in object.metadata.?annotations.orValue({})`

	// Of an owner o.
	claimOwner = `o.kind == 'SandboxClaim' && o.apiVersion.startsWith('` + agentsandbox.ExtensionsGroup + `/')`
	poolOwner  = `o.kind == 'SandboxWarmPool' && o.apiVersion.startsWith('` + agentsandbox.ExtensionsGroup + `/')`
	boxOwner   = `o.kind == 'Sandbox' && o.apiVersion.startsWith('` + agentsandbox.CoreGroup + `/')`
	controls   = `o.?controller.orValue(false)`
	// foreignController is a controller that is neither pool nor claim. Upstream
	// asks for the UID of a controller only.
	foreignController = controls + ` && !(` + claimOwner + `) && !(` + poolOwner + `)`

	bornForAPool = owners + `.exists(o, ` + poolOwner + ` && ` + controls + `) && !` + owners + `.exists(o, ` + claimOwner + `)`
)

var (
	gainsAClaim             = gains(claimOwner, oldOwners)
	gainsAForeignController = gains(foreignController, oldOwners)
)

// gains is the condition that an owner is there for which the condition on o
// holds, and that was not among the old ones with the same UID and condition.
func gains(condition, old string) string {
	return owners + `.exists(o, ` + condition + ` && !` + old + `.exists(p, ` + ofP(condition) + ` && p.uid == o.uid))`
}

// ofP turns a condition on o into one on p.
func ofP(condition string) string {
	return strings.NewReplacer("o.", "p.", " o,", " p,").Replace(condition)
}
