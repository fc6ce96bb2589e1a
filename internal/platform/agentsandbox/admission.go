package agentsandbox

import (
	"maps"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

const (
	create = admissionregistrationv1.Create
	update = admissionregistrationv1.Update
)

// Admission says what writes of agent-sandbox are. Each condition says exactly what
// the handler judges, so that no other write costs a call.
func Admission() platform.Admission {
	return platform.Admission{
		Members: Sandboxes, Pools: Pools, MadeForPool: bornForAPool, Rules: memberRules(), Controllers: []string{ControllerUser}, SendsPods: true,
		Requests: requests(), Own: ownWrites(),
	}
}

func requests() map[platform.Requested]platform.Requests {
	out := map[platform.Requested]platform.Requests{
		platform.Binds: {
			Rules:      sandboxes(update),
			Conditions: platform.When("a-claim-gains-the-sandbox", gainsAClaim),
		},
		platform.ForeignControllers: {
			Rules: sandboxes(create, update),
			Conditions: platform.When("a-controller-that-is-neither-pool-nor-claim",
				`request.operation == 'CREATE' ? `+celOwners+`.exists(o, `+foreignController+`) && !`+celOwners+`.exists(o, `+claimOwner+`) : `+
					gainsAForeignController+` && !`+gainsAClaim),
		},
		platform.ColdStarts: {
			Rules:      sandboxes(create),
			Conditions: platform.When("made-for-a-claim", celOwners+`.exists(o, `+claimOwner+`)`),
		},
		platform.Births: {
			Rules:      sandboxes(create),
			Conditions: platform.When("made-for-a-pool", bornForAPool),
		},
		platform.NewMembers: {
			Rules: sandboxes(create),
			Conditions: platform.When("made-for-a-pool-or-claim-or-carrying-a-mark",
				celOwners+`.exists(o, `+poolOwner+` || `+claimOwner+`) || `+isStamped+` || `+saysWhoMadeIt),
		},
		platform.Deletes: {
			Rules:      sandboxes(admissionregistrationv1.Delete),
			Conditions: append(platform.When("of-a-claim", celOldOwners+`.exists(o, `+claimOwner+`)`), platform.WithoutUID()...),
		},
		platform.NewPods: {
			Rules: []admissionregistrationv1.RuleWithOperations{platform.On("", "v1", "pods", create)},
			Conditions: platform.When("made-for-a-sandbox-or-a-pool",
				celOwners+`.exists(o, `+boxOwner+` || `+poolOwner+` && `+controls+`)`),
		},
		platform.Advised: advised(),
	}
	maps.Copy(out, barePodRequests())
	return out
}

// barePodRequests are about the members of v0.1 and v0.2. Orphaning a pool's Pods keeps
// the label, and is no bind. Their names are generated, and those of later releases'
// Pods are not.
func barePodRequests() map[platform.Requested]platform.Requests {
	return map[platform.Requested]platform.Requests{
		platform.BarePodBinds: {
			Rules: []admissionregistrationv1.RuleWithOperations{platform.On("", "v1", "pods", update)},
			Conditions: platform.When("a-bare-pod-leaves-its-pool-or-is-given-to-another-claim",
				celPoolLabel+` in `+celOldLabels+` && !(`+celPoolLabel+` in `+celNewLabels+`) && `+
					`!`+celOwners+`.exists(o, `+poolOwner+` && `+controls+`) || `+
					celClaimLabel+` in `+celOldLabels+` && `+celClaimLabel+` in `+celNewLabels+` && `+
					`object.metadata.labels[`+celClaimLabel+`] != oldObject.metadata.labels[`+celClaimLabel+`] && `+
					`!`+celOldOwners+`.exists(o, `+controls+`)`),
		},
		platform.BarePodBirths: {
			Rules:      []admissionregistrationv1.RuleWithOperations{platform.On("", "v1", "pods", create)},
			Conditions: platform.When("made-for-a-pool", celOwners+`.exists(o, `+poolOwner+` && `+controls+`)`),
		},
		platform.BarePodDeletes: {
			Rules: []admissionregistrationv1.RuleWithOperations{platform.On("", "v1", "pods", admissionregistrationv1.Delete)},
			Conditions: append(platform.When("a-bare-pod-that-left-its-pool",
				`oldObject.metadata.?generateName.orValue('') != '' && `+
					`!`+celOldOwners+`.exists(o, `+poolOwner+` || `+controls+` && !(`+boxOwner+`))`), platform.WithoutUID()...),
		},
	}
}

func sandboxes(ops ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	// Every version, so that no request has to pass the conversion webhook
	// first, which may be down.
	return []admissionregistrationv1.RuleWithOperations{platform.On(CoreGroup, "*", Sandboxes.Resource, ops...)}
}

// What the conditions on people's writes are made of.
const (
	isCreate = `request.operation == 'CREATE'`
	isKind   = `request.kind.kind == `

	celAnnotations    = `object.metadata.?annotations.orValue({})`
	celOldAnnotations = `(` + isCreate + ` ? {} : oldObject.metadata)` + `.?annotations.orValue({})`
	// An input that goes away never has to be refused.
	setsAnnotation = celAnnotations + `.exists(k, k.startsWith('` + settings.Prefix + `') &&` +
		` !(k in ` + celOldAnnotations + ` && ` + celOldAnnotations + `[k] == ` + celAnnotations + `[k]))`

	// A strategy of the pool's own can contradict the annotation that it has.
	updateStrategy   = `.spec.?updateStrategy.?type.orValue('')`
	changesOwnPolicy = `!(` + isCreate + `) && '` + settings.StrategyKey + `' in ` + celAnnotations +
		` && object` + updateStrategy + ` != oldObject` + updateStrategy
)

// advised are writes that something can be said on: not those of status, of metadata
// but for our inputs, and of claims that are there.
func advised() platform.Requests {
	return platform.Requests{
		Rules: []admissionregistrationv1.RuleWithOperations{
			platform.On(ExtensionsGroup, "*", Claims.Resource, create),
			platform.On(ExtensionsGroup, "*", Templates.Resource, create, update),
			platform.On(ExtensionsGroup, "*", Pools.Resource, create, update),
		},
		Conditions: platform.When("there-may-be-something-to-say",
			isKind+`'SandboxClaim' ? true`+
				` : `+isKind+`'SandboxWarmPool' ? (`+setsAnnotation+` || `+changesOwnPolicy+`)`+
				` : (`+isCreate+` || object.spec != oldObject.spec || `+setsAnnotation+`)`),
	}
}
