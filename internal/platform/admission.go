package platform

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// Admission says in the API server's language what a platform's writes are. The
// platform says the same in Go when it classifies them.
type Admission struct {
	// Suffix ends the names of its configurations and policies, and PathPrefix begins the
	// paths of its webhooks, so that several platforms can be known to one API server;
	// both empty for the one that has the plain names.
	Suffix, PathPrefix string
	// Members are what policies hold for, and Pools what Freshbind says on how rollouts go;
	// the latter is empty where it says nothing.
	Members, Pools schema.GroupResource
	// Requests are those that each hook is about. A hook that a platform has no use
	// for is not among them, and is not installed.
	Requests map[Requested]Requests
	// MadeForPool is the condition that a member is made for a pool, and not for a
	// claim.
	MadeForPool string
	// Rules are those that the API server keeps members to by itself, wherever binds are
	// enforced.
	Rules []MemberRule
	// Own are Freshbind's own writes.
	Own OwnWrites
	// Controllers are the users that make pools' members, unless Freshbind is told of
	// others.
	Controllers []string
	// SendsPods: new Pods of members can be sent to another scheduler.
	SendsPods bool
}

// Requested is what a hook is asked about.
type Requested string

// What a hook can be about. A platform that has no such writes has no hook for them.
const (
	Binds              Requested = "binds"
	BarePodBinds       Requested = "binds of bare pods"
	ColdStarts         Requested = "cold starts"
	ForeignControllers Requested = "foreign controllers"
	Births             Requested = "births"
	BarePodBirths      Requested = "births of bare pods"
	// NewMembers and NewPods are to be stamped.
	NewMembers Requested = "new members"
	NewPods    Requested = "new pods"
	// Deletes are those that take a claim's member, because the pool's controller has
	// not seen the bind.
	Deletes        Requested = "deletes"
	BarePodDeletes Requested = "deletes of bare pods"
	// Evictions are those of Pods, where members keep theirs from being evicted.
	Evictions Requested = "evictions"
	// Advised are the writes of people that there may be something to say on.
	Advised Requested = "advised"
)

// Requests are some of those that the API server gets.
type Requests struct {
	Rules      []admissionregistrationv1.RuleWithOperations
	Conditions []admissionregistrationv1.MatchCondition
}

// MemberRule is a policy for updates of members.
type MemberRule struct {
	Name        string
	Conditions  []admissionregistrationv1.MatchCondition
	Validations []admissionregistrationv1.Validation
}

// OwnWrites say what Freshbind itself writes, so that policies can hold it to that.
type OwnWrites struct {
	// Marked are the updates of what it marks, besides Pods.
	Marked []admissionregistrationv1.RuleWithOperations
	// Labels are those by which members are hidden and shown.
	Labels []string
	// Converted are fields of specs that one version of the API has and another lacks.
	Converted []string
	// Status is the update by which members are offered again, without operations where
	// there is none, StatusKept what stays in it.
	Status     admissionregistrationv1.RuleWithOperations
	StatusKept admissionregistrationv1.Validation
	// Members are the creates and deletes of members.
	Members []admissionregistrationv1.RuleWithOperations
	// Idle is the condition that oldObject, a member, is a pool's and no claim's.
	Idle string
	// IdlePod is the condition that oldObject, a Pod, is or was itself a pool's member,
	// or has never run; "" where it is not for this platform to say.
	IdlePod string
	// Template is the condition on o, an owner, that it is a template; "" where nothing
	// is recorded.
	Template string
}

// When is a list of one condition.
func When(name, expression string) []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{{Name: name, Expression: expression}}
}

// WithoutUID is the condition on a delete that it names no UID: whoever names one means
// this very object.
func WithoutUID() []admissionregistrationv1.MatchCondition {
	return When("without-a-uid", `!request.?options.?preconditions.?uid.hasValue()`)
}

// On is about namespaced objects of one resource.
func On(group, version, resource string, ops ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: ops,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource},
			Scope: ptr.To(admissionregistrationv1.NamespacedScope),
		},
	}
}
