package settings

import "fmt"

// Mode says what becomes of a verdict.
type Mode string

const (
	// Enforce: a denial is a denial.
	Enforce Mode = "enforce"
	// Audit: everything is judged and counted, nothing is denied or changed.
	Audit Mode = "audit"
)

// ParseMode returns the mode of that name.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Enforce, Audit:
		return m, nil
	}
	return "", fmt.Errorf("%q is not a mode: use %s or %s", s, Enforce, Audit)
}
