// Package advice says what a write by a person leads to, in short lines for
// that person: what an update of a template makes stale, what a new claim will
// get, which inputs cannot be read. It is a pure function of plain values that
// somebody else has read, perhaps from a late cache: advice is no verdict.
package advice

// MaxLine is the length, in characters, that no line exceeds: the API server
// may cut warnings of more than 256 characters (the Kubernetes documentation on
// admission webhooks, "Response").
const MaxLine = 255

// Effect is what is known of the effects of a write.
type Effect interface {
	// Lines are what the writer has to be told; none when nothing is unusual.
	Lines() []string
}
