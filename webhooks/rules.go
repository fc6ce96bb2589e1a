package webhooks

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// What policies ask, in the API server's language, of the keys that are Freshbind's.
const (
	stampOf       = `.metadata.?labels['` + settings.StampKey + `'].orValue('')`
	enforcementOf = `.metadata.?labels['` + settings.EnforcementKey + `'].orValue('')`
	createdByOf   = `.metadata.?annotations['` + settings.CreatedByKey + `'].orValue('')`
	carriesBirth  = `'` + settings.CreatedByKey + `' in object.metadata.?annotations.orValue({})`
	repairedOf    = `.metadata.?annotations['` + settings.RepairedKey + `'].orValue('')`
	stampPath     = `'/metadata/labels/' + jsonpatch.escapeKey('` + settings.StampKey + `')`

	// putBack gives a stamp the value that it had, or takes away one that was not
	// there.
	putBack = `oldObject` + stampOf + ` == '' ? [JSONPatch{op: 'remove', path: ` + stampPath + `}] : ` +
		`has(object.metadata.labels) ? [JSONPatch{op: 'add', path: ` + stampPath + `, value: oldObject` + stampOf + `}] : ` +
		`[JSONPatch{op: 'add', path: '/metadata/labels', value: {'` + settings.StampKey + `': oldObject` + stampOf + `}}]`
)

var stampChanges = platform.When("changes-a-stamp", `object`+stampOf+` != oldObject`+stampOf)

var (
	stampStays = admissionregistrationv1.Validation{
		Expression: `object` + stampOf + ` == oldObject` + stampOf,
		Message:    "metadata.labels[" + settings.StampKey + "]: says what the sandbox was built from; only Freshbind may write it",
	}
	enforcementStays = admissionregistrationv1.Validation{
		Expression: `oldObject` + enforcementOf + ` == '' || object` + enforcementOf + ` == oldObject` + enforcementOf,
		Message:    "metadata.labels[" + settings.EnforcementKey + "]: says what the sandbox's pool asked for; only Freshbind may write it",
	}
	birthStays = admissionregistrationv1.Validation{
		Expression: `object` + createdByOf + ` == oldObject` + createdByOf,
		Message:    "metadata.annotations[" + settings.CreatedByKey + "]: says who created the sandbox, and cannot be changed",
	}
	repairedStays = admissionregistrationv1.Validation{
		Expression: `object` + repairedOf + ` == oldObject` + repairedOf,
		Message:    "metadata.annotations[" + settings.RepairedKey + "]: says how the sandbox was repaired when it was created, and cannot be changed",
	}
)
