// Package managed has what all controllers are set up with.
package managed

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// An object is left alone for firstRetry after an error, and for twice as long after each
// further one in a row, up to longestRetry. controller-runtime goes up to 1,000 s
// (v0.25.2, pkg/controller/controller.go): what failed while the API server was overloaded
// for some minutes would be left alone for a quarter of an hour afterwards. The workers
// of a controller bound what all its objects together ask for.
const (
	firstRetry   = 5 * time.Millisecond
	longestRetry = 30 * time.Second
)

// Controller begins a controller of that name, which has to be unique.
func Controller[R comparable](mgr manager.Manager, name string, options controller.TypedOptions[R]) *builder.TypedBuilder[R] {
	options.RateLimiter = retries[R]()
	return builder.TypedControllerManagedBy[R](mgr).Named(name).WithOptions(options)
}

func retries[R comparable]() workqueue.TypedRateLimiter[R] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[R](firstRetry, longestRetry)
}
