package kruise

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/freshbind/freshbind/internal/platform"
)

// What writes are, in the API server's language; Classify says the same in Go.
const (
	celOwners    = `object.metadata.?ownerReferences.orValue([])`
	celOldOwners = `oldObject.metadata.?ownerReferences.orValue([])`

	// Of an owner o.
	setOwner = `o.kind == '` + kindSet + `' && o.apiVersion.startsWith('` + Group + `/')`
	boxOwner = `o.kind == '` + kindSandbox + `' && o.apiVersion.startsWith('` + Group + `/')`
	controls = `o.?controller.orValue(false)`

	celClaimed    = `object.metadata.?labels[?'` + claimedLabel + `'].orValue('') == '` + yes + `'`
	celOldClaimed = `oldObject.metadata.?labels[?'` + claimedLabel + `'].orValue('') == '` + yes + `'`
	celOwner      = `object.metadata.?annotations[?'` + ownerAnnotation + `'].orValue('')`
	celOldOwner   = `oldObject.metadata.?annotations[?'` + ownerAnnotation + `'].orValue('')`

	pooled    = celOwners + `.exists(o, ` + setOwner + ` && ` + controls + `)`
	wasPooled = celOldOwners + `.exists(o, ` + setOwner + ` && ` + controls + `)`

	taken = celOldOwners + `.exists(o, ` + setOwner + ` && ` + controls + ` && !` + celOwners +
		`.exists(p, p.kind == o.kind && p.apiVersion.startsWith('` + Group + `/') && p.?controller.orValue(false) && p.uid == o.uid))`
	// gained: somebody has it who had it not before, whoever had it until then. The platform
	// writes that together with taken, or when it creates a Sandbox.
	gained = celOwner + ` != ` + celOldOwner + ` && !(` + celOwner + ` in ['', '` + scaleDown + `'])`
	// templateOwner is the condition on an owner o that its history is kept.
	templateOwner = `o.kind in ['` + kindSet + `', '` + kindTemplate + `'] && o.apiVersion.startsWith('` + Group + `/') && ` + controls
	// notOrphaned: the garbage collector takes owners away that somebody deletes without
	// what they own. It claims nothing.
	notOrphaned = `!(request.userInfo.username in ['system:serviceaccount:kube-system:generic-garbage-collector', 'system:kube-controller-manager'])`

	// had is what somebody has, and the SandboxSet is not about to delete.
	had = `!(` + wasPooled + `) && ` + celOldClaimed + ` && !(` + celOldOwner + ` in ['', '` + scaleDown + `'])`

	// Labels of a claim's own can empty these two, and not take them away.
	coldStarted = `!(` + pooled + `) && ` + celClaimed + ` && ['` + poolLabel + `', '` + claimNameLabel + `'].exists(k, k in object.metadata.labels)`

	// returns: one gets a SandboxSet that it did not have. Whether somebody had it in the
	// meantime is not asked: whoever gives it back can take the marks of that off first.
	returns = `!` + celOldOwners + `.exists(o, ` + setOwner + `) && ` + celOwners + `.exists(o, ` + setOwner + `) || ` + returned
	// returned is what of that is judged: the SandboxSet controls it then.
	returned     = `!(` + wasPooled + `) && ` + pooled
	isRecycling  = `oldObject.?status.?phase.orValue('') == '` + phaseRecycling + `'`
	wantsCleanup = `oldObject.metadata.?annotations[?'` + cleanupAnnotation + `'].orValue('') == '` + yes + `'`
)

// Admission says which requests each hook is about. There is nothing to advise on yet: that
// hook is not installed.
func Admission() platform.Admission {
	const create, update, remove = admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete
	sandboxes := func(ops ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{platform.On(Group, "*", Sandboxes.Resource, ops...)}
	}
	return platform.Admission{
		Suffix: Suffix, PathPrefix: PathPrefix,
		Members: Sandboxes, Pools: Sets, MadeForPool: pooled, Controllers: []string{ControllerUser},
		Requests: map[platform.Requested]platform.Requests{
			platform.Binds: {
				Rules:      sandboxes(update),
				Conditions: append(platform.When("taken-or-given-back", taken+` || `+gained+` || `+returned), platform.When("not-orphaned", notOrphaned)...),
			},
			platform.ColdStarts: {Rules: sandboxes(create), Conditions: platform.When("made-for-a-claim", coldStarted)},
			platform.Births:     {Rules: sandboxes(create), Conditions: platform.When("made-for-a-pool", pooled)},
			platform.Deletes:    {Rules: sandboxes(remove), Conditions: append(platform.When("of-whoever-has-it", had), platform.WithoutUID()...)},
			platform.Evictions:  {Rules: []admissionregistrationv1.RuleWithOperations{platform.On("", "v1", "pods/eviction", create)}},
			platform.NewPods: {
				Rules:      []admissionregistrationv1.RuleWithOperations{platform.On("", "v1", pods.Resource, create)},
				Conditions: platform.When("made-for-a-sandbox", celOwners+`.exists(o, `+boxOwner+` && `+controls+`)`),
			},
			platform.NewMembers: {Rules: sandboxes(create), Conditions: platform.When("made-for-a-pool-or-claim", pooled+` || `+coldStarted)},
		},
		Rules: []platform.MemberRule{{
			Name: "freshbind-used", Conditions: platform.When("comes-back", returns),
			Validations: []admissionregistrationv1.Validation{{
				Expression: wantsCleanup,
				Message:    "metadata.ownerReferences: this sandbox is not a member, and the pool does not recycle: the sandbox may have been used, so it cannot become a member again",
			}, {
				Expression: isRecycling,
				Message:    "metadata.ownerReferences: this sandbox is still in use: only a sandbox in phase Recycling can go back to its pool",
			}},
		}},
		Own: platform.OwnWrites{
			// It marks members, writes onto SandboxSets how their rollouts go, and deletes members
			// that nobody has, and used ones that are refused to their pools.
			Labels:  []string{templateLabel},
			Marked:  append(sandboxes(update), platform.On(Group, "*", Sets.Resource, update)),
			Members: sandboxes(create, remove), Idle: `(` + wasPooled + ` && !(` + celOldClaimed + `) || !(` + wasPooled + `) && ` + isRecycling + `)`,
			Template: templateOwner,
		},
	}
}
