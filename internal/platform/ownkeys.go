package platform

const (
	// TemplateUIDKey is the label that selects the revisions of one incarnation of a
	// template.
	TemplateUIDKey = Domain + "/template-uid"
	// ClaimNudgeKey is the annotation of a claim that says when it was last woken, RFC
	// 3339.
	ClaimNudgeKey = Domain + "/nudged-at"
	// PodNudgeKey is the annotation of a Pod that changes when schedulers should look at
	// it again.
	PodNudgeKey = Domain + "/scheduling-nudge"
)
