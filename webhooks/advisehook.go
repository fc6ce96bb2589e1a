package webhooks

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

const namespaceKind = "Namespace"

// What the conditions of AdviseHook are made of.
const (
	byAPerson = `!(request.userInfo.username.startsWith('system:serviceaccount:') ||` +
		` request.userInfo.username.startsWith('system:node:') || request.userInfo.username.startsWith('system:kube-'))`

	isCreate = `request.operation == 'CREATE'`
	isKind   = `request.kind.kind == `

	oldMetadata  = `(` + isCreate + ` ? {} : oldObject.metadata)`
	enforcement  = `.?labels['` + settings.EnforcementKey + `'].orValue('')`
	setsEnforced = `object.metadata` + enforcement + ` != '' &&` +
		` object.metadata` + enforcement + ` != ` + oldMetadata + enforcement
)

// AdviseHook is asked about writes of people only, and not about those that
// nothing can be said on: status, metadata but for our inputs, and anything that
// controllers do.
var AdviseHook = Hook{
	Name: "advise.freshbind.dev", Path: "/advise", FailOpen: true, Timeout: 2 * time.Second,
	about: platform.Advised,
}

// advising is AdviseHook on a platform, asked about namespaces beside what the platform
// knows.
func advising(a platform.Admission) []Hook {
	h := AdviseHook
	h.before = platform.When("by-a-person", byAPerson)
	h.rules = []admissionregistrationv1.RuleWithOperations{clusterWide(platform.On("", "v1", "namespaces", create, update))}
	hooks := on(a, h)
	for i := range hooks {
		condition := &hooks[i].conditions[len(hooks[i].conditions)-1]
		condition.Expression = isKind + `'` + namespaceKind + `' ? (` + setsEnforced + `) : ` + condition.Expression
	}
	return hooks
}

func clusterWide(r admissionregistrationv1.RuleWithOperations) admissionregistrationv1.RuleWithOperations {
	r.Scope = ptr.To(admissionregistrationv1.ClusterScope)
	return r
}
