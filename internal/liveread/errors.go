package liveread

import (
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrUndecided says that a read proved neither what the object is nor that it is absent. Every error of this package but absence wraps it.
var ErrUndecided = errors.New("could not decide")

type absentError struct {
	ref Ref
	err error
}

func (e *absentError) Error() string { return fmt.Sprintf("%s is absent: %v", e.ref, e.err) }
func (e *absentError) Unwrap() error { return e.err }

// IsAbsent says whether err proves that the object was not there when it was read: the API server answered 404 and its status names this
// object. Every other 404, such as that of an API version which is not served, is ErrUndecided.
func IsAbsent(err error) bool {
	var absent *absentError
	return errors.As(err, &absent)
}

type unservedError struct {
	ref Ref
	err error
}

func (e *unservedError) Error() string {
	return fmt.Sprintf("%v: get %s: not found, but the answer does not name the object, so this API version may not be served: %v", ErrUndecided, e.ref, e.err)
}
func (e *unservedError) Unwrap() []error { return []error{ErrUndecided, e.err} }

// classify turns the error of a GET into one of this package.
func classify(ref Ref, err error) error {
	switch {
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return undecided(ref, err)
	case namesObject(ref, err):
		return &absentError{ref, err}
	default:
		return &unservedError{ref, err}
	}
}

func undecided(ref Ref, err error) error {
	return fmt.Errorf("%w: get %s: %w", ErrUndecided, ref, err)
}

// namesObject looks at the details of a status. Those of a CRD's and of a built-in object's 404 carry the resource in the field kind
// (apimachinery's NewNotFound). What a client made out of an answer that was no status says so in a cause.
func namesObject(ref Ref, err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	if details == nil || details.Name != ref.Name || details.Group != ref.GVR.Group || details.Kind != ref.GVR.Resource {
		return false
	}
	return !slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse })
}
