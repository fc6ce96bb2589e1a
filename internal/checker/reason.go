package checker

// Reason says what exactly was wrong, by the names that Freshbind's denials have. The judge keeps its own list: a name that
// it lacks is a rule that it does not know.
type Reason string

// The reasons. Those without a comment say what they mean.
const (
	// ReasonStaleRevision: an older version of the template, or created before the pool's restart.
	ReasonStaleRevision Reason = "StaleRevision"
	// ReasonUnknownRevision: no recorded version of the template.
	ReasonUnknownRevision   Reason = "UnknownRevision"
	ReasonMemberTerminating Reason = "MemberTerminating"
	ReasonPodTerminating    Reason = "PodTerminating"
	ReasonPodFinished       Reason = "PodFinished"
	ReasonPodForeign        Reason = "PodForeign"
	// ReasonPodModified: the Pod has ephemeral containers, so somebody worked in it.
	ReasonPodModified       Reason = "PodModified"
	ReasonPodNotYet         Reason = "PodNotYet"
	ReasonNodeLeaving       Reason = "NodeLeaving"
	ReasonMemberUsed        Reason = "MemberUsed"
	ReasonMemberClaimed     Reason = "MemberClaimed"
	ReasonOwnerMismatch     Reason = "OwnerMismatch"
	ReasonClaimHoldsAnother Reason = "ClaimHoldsAnother"
	ReasonClaimNamesAnother Reason = "ClaimNamesAnother"
	ReasonClaimGone         Reason = "ClaimGone"
	ReasonClaimReplaced     Reason = "ClaimReplaced"
	ReasonPoolGone          Reason = "PoolGone"
	ReasonPoolMismatch      Reason = "PoolMismatch"
	ReasonTemplateGone      Reason = "TemplateGone"
	ReasonTemplateMismatch  Reason = "TemplateMismatch"
	ReasonNotAMember        Reason = "NotAMember"
	ReasonBlueprintChanged  Reason = "BlueprintChanged"
)

// Reasons lists all reasons.
func Reasons() []Reason {
	return []Reason{
		ReasonStaleRevision, ReasonUnknownRevision, ReasonMemberTerminating, ReasonPodTerminating, ReasonPodFinished,
		ReasonPodForeign, ReasonPodModified, ReasonPodNotYet, ReasonNodeLeaving, ReasonMemberUsed, ReasonMemberClaimed,
		ReasonOwnerMismatch, ReasonClaimHoldsAnother, ReasonClaimNamesAnother, ReasonClaimGone, ReasonClaimReplaced,
		ReasonPoolGone, ReasonPoolMismatch, ReasonTemplateGone, ReasonTemplateMismatch, ReasonNotAMember,
		ReasonBlueprintChanged,
	}
}
