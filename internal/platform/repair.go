package platform

import "strings"

// Repair is what a cold start, or a member, has to be rewritten to.
type Repair struct {
	// From is the revision that it was rendered from, To the one in force.
	From, To string
	Fields   []Field
}

// Field is one field of an object.
type Field struct {
	Path []string
	// Value is nil where there is to be none.
	Value any
}

// repairArrow stands between the two revisions.
const repairArrow = " -> "

// Note is the value of RepairedKey.
func (r Repair) Note() string { return r.From + repairArrow + r.To }

// IsRepaired reports whether that is a value of RepairedKey.
func IsRepaired(note string) bool {
	_, _, ok := ParseRepaired(note)
	return ok
}

// ParseRepaired reads the value of RepairedKey; false when it is none.
func ParseRepaired(note string) (from, to string, ok bool) {
	from, to, ok = strings.Cut(note, repairArrow)
	return from, to, ok && from != "" && to != "" && from != to
}
