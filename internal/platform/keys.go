package platform

const (
	// EnforcementKey is the label of a namespace, and the annotation of a pool,
	// that says its mode. A pool can only tighten what its namespace says.
	EnforcementKey = "freshbind.dev/enforcement"
	// StampKey is the label that names, on a member and on its Pod, the revision
	// of the template that it was built from. It is an index for people and
	// selectors; no verdict reads it.
	StampKey = "freshbind.dev/template-spec-hash"
	// BoundToKey is the annotation of a Sandbox with the UID of the claim that
	// it belongs, or once belonged, to.
	BoundToKey = "freshbind.dev/bound-to"
)
