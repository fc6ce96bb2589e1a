package scheduler

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

var reducer = platform.NewReducer(agentsandbox.Objects{})

// Members takes in events of whole Sandboxes.
func (p *Placed) Members() toolscache.ResourceEventHandler {
	return reduced(func(u *unstructured.Unstructured) *platform.Member { return reducer.Member(u, nil) }, p.Member)
}

// Pods takes in events of whole Pods.
func (p *Placed) Pods() toolscache.ResourceEventHandler {
	return reduced(func(u *unstructured.Unstructured) *platform.MemberPod { return reducer.Pod(u, nil) }, p.Pod)
}

func reduced[T any](reduce func(*unstructured.Unstructured) *T, notify func(old, now *T)) toolscache.ResourceEventHandler {
	of := func(obj any) *T {
		if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		return reduce(obj.(*unstructured.Unstructured))
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { notify(nil, of(obj)) },
		UpdateFunc: func(old, obj any) { notify(of(old), of(obj)) },
		DeleteFunc: func(obj any) { notify(of(obj), nil) },
	}
}
