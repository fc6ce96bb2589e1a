package webhooks

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/freshbind/freshbind/internal/platform"
)

// What policies ask, in the API server's language, of the keys that are Freshbind's.
const (
	stampOf       = `.metadata.?labels['` + platform.StampKey + `'].orValue('')`
	enforcementOf = `.metadata.?labels['` + platform.EnforcementKey + `'].orValue('')`
	createdByOf   = `.metadata.?annotations['` + platform.CreatedByKey + `'].orValue('')`
	carriesBirth  = `'` + platform.CreatedByKey + `' in object.metadata.?annotations.orValue({})`
	repairedOf    = `.metadata.?annotations['` + platform.RepairedKey + `'].orValue('')`
	stampPath     = `'/metadata/labels/' + jsonpatch.escapeKey('` + platform.StampKey + `')`

	// putBack gives a stamp the value that it had, or takes away one that was not
	// there.
	putBack = `oldObject` + stampOf + ` == '' ? [JSONPatch{op: 'remove', path: ` + stampPath + `}] : ` +
		`has(object.metadata.labels) ? [JSONPatch{op: 'add', path: ` + stampPath + `, value: oldObject` + stampOf + `}] : ` +
		`[JSONPatch{op: 'add', path: '/metadata/labels', value: {'` + platform.StampKey + `': oldObject` + stampOf + `}}]`
)

var stampChanges = platform.When("changes-a-stamp", `object`+stampOf+` != oldObject`+stampOf)

var (
	stampStays = admissionregistrationv1.Validation{
		Expression: `object` + stampOf + ` == oldObject` + stampOf,
		Message:    "metadata.labels[" + platform.StampKey + "]: says what the sandbox was built from; only Freshbind may write it",
	}
	enforcementStays = admissionregistrationv1.Validation{
		Expression: `oldObject` + enforcementOf + ` == '' || object` + enforcementOf + ` == oldObject` + enforcementOf,
		Message:    "metadata.labels[" + platform.EnforcementKey + "]: says what the sandbox's pool asked for; only Freshbind may write it",
	}
	birthStays = admissionregistrationv1.Validation{
		Expression: `object` + createdByOf + ` == oldObject` + createdByOf,
		Message:    "metadata.annotations[" + platform.CreatedByKey + "]: says who created the sandbox, and cannot be changed",
	}
	repairedStays = admissionregistrationv1.Validation{
		Expression: `object` + repairedOf + ` == oldObject` + repairedOf,
		Message:    "metadata.annotations[" + platform.RepairedKey + "]: says how the sandbox was repaired when it was created, and cannot be changed",
	}
)
