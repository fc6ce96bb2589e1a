package webhooks

import (
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

const (
	remove = admissionregistrationv1.Delete

	createsIt = `request.operation == 'CREATE'`
	deletesIt = `request.operation == 'DELETE'`
)

// NewOwnPolicies returns the policies that hold this user, who Freshbind is, to what
// Freshbind does: whoever has stolen its identity gets no further. They hold in
// every namespace and mode. Freshbind may write the other policies, to tie them to
// its namespace, and delete them with it; these it must not be able to write.
//
// A write has to pass all policies. So the platform with the plain names has the one on
// revisions, which lets those of the others through as well.
func NewOwnPolicies(a platform.Admission, self string, others ...platform.Admission) Policies {
	p := Policies{suffix: a.Suffix}
	own := a.Own
	marked := own.Marked
	if restampsPods(a) {
		marked = append(slices.Clone(marked), platform.On("", "v1", "pods", update))
	}
	p.hold(self, "freshbind-own-writes", marked,
		specBesides(own.Converted), unchanged("metadata.?ownerReferences"), unchanged("metadata.?finalizers"),
		keysBesides("labels", append([]string{settings.StampKey, settings.EnforcementKey}, own.Labels...)),
		keysBesides("annotations", writtenAnnotations))
	if len(own.Status.Operations) > 0 {
		p.hold(self, "freshbind-own-status", []admissionregistrationv1.RuleWithOperations{own.Status}, own.StatusKept)
	}
	p.hold(self, "freshbind-own-members", own.Members, admissionregistrationv1.Validation{
		Expression: deletesIt + ` && ` + own.Idle,
		Message:    "Freshbind deletes members that a pool has and no claim, and creates them in dry runs only",
	})
	if own.IdlePod != "" {
		p.hold(self, "freshbind-own-pods", []admissionregistrationv1.RuleWithOperations{platform.On("", "v1", "pods", remove)}, admissionregistrationv1.Validation{
			Expression: own.IdlePod,
			Message:    "Freshbind deletes Pods that are or were a pool's members, and those that no node has",
		})
	}
	var templates []string
	for _, of := range append([]platform.Admission{a}, others...) {
		if of.Own.Template != "" {
			templates = append(templates, `(`+of.Own.Template+`)`)
		}
	}
	if len(templates) == 0 || a.Suffix != "" {
		return p
	}
	isTemplate := strings.Join(templates, ` || `)
	p.hold(self, "freshbind-own-revisions", []admissionregistrationv1.RuleWithOperations{platform.On("apps", "v1", "controllerrevisions", create, update, remove)},
		admissionregistrationv1.Validation{
			Expression: `(` + createsIt + ` || ` + ownersOf("oldObject") + `.exists(o, ` + isTemplate + `) || ` +
				deletesIt + ` && '` + settings.TemplateUIDLabel + `' in oldObject.metadata.?labels.orValue({})) && ` +
				`(` + deletesIt + ` || ` + ownersOf("object") + `.exists(o, ` + isTemplate + `))`,
			Message: "Freshbind writes the revisions of templates, and no others",
		})
	return p
}

// writtenAnnotations are all that Freshbind writes; what it reads is not among them.
var writtenAnnotations = []string{
	settings.BoundToKey, settings.RequeuedAtKey, settings.ShownAsKey, settings.AdmitKey, settings.AttributionKey,
	settings.RolloutStateKey, settings.RolloutReasonKey, settings.RolloutRevisionKey, settings.RolloutStatusKey,
}

func ownersOf(object string) string { return object + `.metadata.?ownerReferences.orValue([])` }

func unchanged(field string) admissionregistrationv1.Validation {
	return admissionregistrationv1.Validation{
		Expression: `object.?` + field + ` == oldObject.?` + field,
		Message:    strings.ReplaceAll(field, "?", "") + ": Freshbind never writes this",
	}
}

// specBesides holds the spec to what it was, but for fields of which one takes the
// other's place: whoever writes an object that was stored in another version of the API
// stores the defaults of this one, and drops what it does not know. oldObject may lack
// the latter already.
func specBesides(converted []string) admissionregistrationv1.Validation {
	after, before := `object.?spec.orValue({})`, `oldObject.?spec.orValue({})`
	ours := func(k string) string { return k + ` in [` + quotedList(converted) + `]` }
	return admissionregistrationv1.Validation{
		Expression: `object.?spec == oldObject.?spec || ` +
			after + `.all(k, k in ` + before + ` ? ` + before + `[k] == ` + after + `[k] : ` + ours("k") + `) && ` +
			before + `.all(k, k in ` + after + ` || ` + ours("k") + ` && ` + after + `.exists(o, ` + ours("o") + ` && !(o in ` + before + `)))`,
		Message: "spec: Freshbind never writes this",
	}
}

func quotedList(keys []string) string {
	quoted := make([]string, len(keys))
	for i, key := range keys {
		quoted[i] = `'` + key + `'`
	}
	return strings.Join(quoted, ", ")
}

// keysBesides holds all other labels, or annotations, to what they were.
func keysBesides(field string, keys []string) admissionregistrationv1.Validation {
	ours := `k in [` + quotedList(keys) + `]`
	after, before := `object.metadata.?`+field+`.orValue({})`, `oldObject.metadata.?`+field+`.orValue({})`
	return admissionregistrationv1.Validation{
		Expression: after + `.all(k, ` + ours + ` || k in ` + before + ` && ` + before + `[k] == ` + after + `[k]) && ` +
			before + `.all(k, ` + ours + ` || k in ` + after + `)`,
		Message: "metadata." + field + ": Freshbind writes those of " + settings.Domain + " and of hiding only",
	}
}

// hold adds a policy for one user's writes, wherever they are. A dry run changes nothing, and the
// self-test makes some of what has to be refused.
func (p *Policies) hold(user, name string, rules []admissionregistrationv1.RuleWithOperations, validations ...admissionregistrationv1.Validation) {
	name += p.suffix
	resources := &admissionregistrationv1.MatchResources{}
	for _, r := range rules {
		resources.ResourceRules = append(resources.ResourceRules, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: r})
	}
	p.Validating = append(p.Validating, &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicy"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: resources,
			MatchConditions: append(platform.When("by-freshbind", `request.userInfo.username == `+strconv.Quote(user)),
				platform.When("not-a-dry-run", `!request.?dryRun.orValue(false)`)...),
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			Validations:   validations,
		},
	})
	p.ValidatingBinding = append(p.ValidatingBinding, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicyBinding"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	})
}
