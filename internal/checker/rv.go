package checker

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// RV is a well-formed resourceVersion: a positive decimal number of any length. The empty RV is before all others.
type RV string

// ParseRV fails on anything that does not order (KEP-5504: comparable resourceVersions).
func ParseRV(s string) (RV, error) {
	if _, err := resourceversion.CompareResourceVersion(s, s); err != nil {
		return "", fmt.Errorf("parse resourceVersion %q: %w", s, err)
	}
	return RV(s), nil
}

// Before reports whether a was written before b.
func (a RV) Before(b RV) bool { return a.compare(b) < 0 }

func (a RV) compare(b RV) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func maxRV(rvs ...RV) RV {
	var out RV
	for _, rv := range rvs {
		if out.Before(rv) {
			out = rv
		}
	}
	return out
}
