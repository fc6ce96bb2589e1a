package scenario

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// ParseLag reads a delay: a duration (1.5s) or a number of seconds (1.5).
func ParseLag(text string) (time.Duration, error) {
	lag, err := time.ParseDuration(text)
	if err != nil {
		seconds, numberErr := strconv.ParseFloat(text, 64)
		if numberErr != nil {
			return 0, fmt.Errorf("%q is neither a duration (1.5s) nor a number of seconds (1.5)", text)
		}
		// NaN and infinities have no place among integers.
		if !(math.Abs(seconds) <= maxLag.Seconds()) {
			seconds = -1
		}
		lag = time.Duration(seconds * float64(time.Second))
	}
	if lag < 0 || lag > maxLag {
		return 0, fmt.Errorf("%s is not between 0 and %s", text, maxLag)
	}
	return lag, nil
}

// maxLag keeps a delay below what anybody waits for.
const maxLag = time.Minute

// ParseCount reads a number of rounds, at least 1.
func ParseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a whole number of 1 or more", text)
	}
	return n, nil
}
