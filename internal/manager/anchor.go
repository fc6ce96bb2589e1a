package manager

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/freshbind/freshbind/controllers/anchor"
	"github.com/freshbind/freshbind/internal/platform"
)

// anchor has the admission configuration go with the namespace that this runs
// in. Outside of a cluster there is none.
func (o *process) anchor(mgr manager.Manager, admission platform.Admission) error {
	namespace, err := o.home()
	if err != nil || namespace == "" {
		return err
	}
	return anchor.Setup(mgr, namespace, admission, o.Scope)
}
