package webhooks

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

const namespaceKind = "Namespace"

// What the conditions of AdviseHook are made of.
const (
	byAPerson = `!(request.userInfo.username.startsWith('system:serviceaccount:') ||` +
		` request.userInfo.username.startsWith('system:node:') || request.userInfo.username.startsWith('system:kube-'))`

	isCreate = `request.operation == 'CREATE'`
	isKind   = `request.kind.kind == `

	oldMetadata    = `(` + isCreate + ` ? {} : oldObject.metadata)`
	annotations    = `object.metadata.?annotations.orValue({})`
	oldAnnotations = oldMetadata + `.?annotations.orValue({})`
	// An input that goes away never has to be refused.
	setsAnnotation = annotations + `.exists(k, k.startsWith('` + advice.Prefix + `') &&` +
		` !(k in ` + oldAnnotations + ` && ` + oldAnnotations + `[k] == ` + annotations + `[k]))`

	enforcement  = `.?labels['` + platform.EnforcementKey + `'].orValue('')`
	setsEnforced = `object.metadata` + enforcement + ` != '' &&` +
		` object.metadata` + enforcement + ` != ` + oldMetadata + enforcement

	// A strategy of the pool's own can contradict the annotation that it has.
	updateStrategy   = `.spec.?updateStrategy.?type.orValue('')`
	changesOwnPolicy = `!(` + isCreate + `) && '` + advice.StrategyKey + `' in ` + annotations +
		` && object` + updateStrategy + ` != oldObject` + updateStrategy
)

// AdviseHook is asked about writes of people only, and not about those that
// nothing can be said on: status, metadata but for our inputs, and anything that
// controllers do.
var AdviseHook = Hook{
	Name: "advise.freshbind.dev", Path: "/advise", FailOpen: true, Timeout: 2 * time.Second,
	rules: []admissionregistrationv1.RuleWithOperations{
		rule(agentsandbox.ExtensionsGroup, "*", agentsandbox.Claims.Resource, create),
		both(rule(agentsandbox.ExtensionsGroup, "*", agentsandbox.Templates.Resource, create)),
		both(rule(agentsandbox.ExtensionsGroup, "*", agentsandbox.Pools.Resource, create)),
		clusterWide(both(rule("", "v1", "namespaces", create))),
	},
	conditions: append(when("by-a-person", byAPerson),
		when("there-may-be-something-to-say",
			isKind+`'`+namespaceKind+`' ? (`+setsEnforced+`)`+
				` : `+isKind+`'SandboxClaim' ? true`+
				` : `+isKind+`'SandboxWarmPool' ? (`+setsAnnotation+` || `+changesOwnPolicy+`)`+
				` : (`+isCreate+` || object.spec != oldObject.spec || `+setsAnnotation+`)`)...),
}

func both(r admissionregistrationv1.RuleWithOperations) admissionregistrationv1.RuleWithOperations {
	r.Operations = []admissionregistrationv1.OperationType{create, update}
	return r
}

func clusterWide(r admissionregistrationv1.RuleWithOperations) admissionregistrationv1.RuleWithOperations {
	r.Scope = ptr.To(admissionregistrationv1.ClusterScope)
	return r
}
