package revision

import (
	"errors"
	"fmt"
	"strconv"
)

// fieldError says what is wrong with one field. The path grows from the inside out as the error is returned.
type fieldError struct {
	path    string
	problem string
}

func (e *fieldError) Error() string {
	if e.path == "" {
		return e.problem
	}
	return e.path + ": " + e.problem
}

func problemf(format string, args ...any) *fieldError {
	return &fieldError{problem: fmt.Sprintf(format, args...)}
}

func atField(name string, err error) error {
	return prefixed(fieldSegment(name), err)
}

func atIndex(i int, err error) error {
	return prefixed("["+strconv.Itoa(i)+"]", err)
}

func prefixed(segment string, err error) error {
	var fe *fieldError
	if !errors.As(err, &fe) {
		return err
	}
	return &fieldError{path: joinPath(segment, fe.path), problem: fe.problem}
}
