package revision

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

// leafComparer compares scalars of which either side may be a digest. A digest is made of the value and of the path as the redacted
// side writes it, so the comparer follows that path; where nothing is redacted it does nothing.
type leafComparer struct {
	want, got bool // redacted
	steps     []step
}

func (c *leafComparer) active() bool { return c.want != c.got }

func (c *leafComparer) push(s step) {
	if c.active() {
		c.steps = append(c.steps, s)
	}
}

func (c *leafComparer) pop() {
	if c.active() {
		c.steps = c.steps[:len(c.steps)-1]
	}
}

// equal takes whether the scalars are merge keys, which are never redacted.
func (c *leafComparer) equal(want, got any, mergeKey bool) bool {
	switch {
	case mergeKey || !c.active():
		return want == got
	case c.want:
		return want == any(digest(pathText(c.steps), got))
	default:
		return got == any(digest(pathText(c.steps), want))
	}
}

const digestPrefix = "sha256:"

var digestPattern = regexp.MustCompile(`^` + digestPrefix + `[0-9a-f]{16}$`)

func digest(path string, leaf any) string {
	sum := sha256.Sum256(appendJSON(append([]byte(path), 0), leaf))
	return digestPrefix + hex.EncodeToString(sum[:8])
}

func isDigest(v any) bool {
	s, ok := v.(string)
	return ok && digestPattern.MatchString(s)
}

func canonicalDigest(in any) (any, error) {
	if !isDigest(in) {
		return nil, problemf("must be a digest (%s and 16 hex digits), because the blueprint is redacted; is %s", digestPrefix, typeName(in))
	}
	return in, nil
}
