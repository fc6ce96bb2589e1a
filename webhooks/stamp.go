package webhooks

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// Revisions finds the revision that something about to be created is built
// from, by its own content.
type Revisions interface {
	NewSandbox(ctx context.Context, sandbox *unstructured.Unstructured) (platform.Stamp, error)
	PodRevision(ctx context.Context, pod *unstructured.Unstructured) (platform.Stamp, error)
}

// Stamp sets the stamp at CREATE, whatever the request carried. A stamp that
// cannot be found is left out and a forged one removed: the webhook's
// failurePolicy is Ignore, and nothing depends on a stamp. A stale cold start, and
// a stale birth whose pool leaves that alone, is rewritten to what it would be
// without a late cache; the outcome is judged like any other, so that a repair that
// went wrong is refused.
type Stamp struct {
	Revisions Revisions
	Modes     *Modes
	Timeout   time.Duration
	// Birth: those that it is asked about were created by a pool's controller.
	Birth bool
	// SchedulerName is the scheduler that members' Pods are sent to; "" leaves them
	// with the cluster's own.
	SchedulerName string
	// KnownRefusals is told of cold starts that are going to be refused; nil for nobody.
	KnownRefusals *RefusalCache
	// Existing knows which sandboxes may be there already; nil for none.
	Existing *ExistingNames
}

var _ admission.Handler = (*Stamp)(nil)

// Handle answers with a patch of our marks, of a member's Pod's scheduler and of
// what has to be repaired, so that no field which this program does not know can
// get lost.
func (s *Stamp) Handle(ctx context.Context, req admission.Request) admission.Response {
	obj, err := decodeObject(req.Object.Raw, req.Namespace)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	find, isPod := s.Revisions.NewSandbox, kindOf(req) == podKind
	if isPod {
		find = s.Revisions.PodRevision
	} else if s.exists(ctx, req, obj.GetName()) {
		logf.FromContext(ctx).V(2).Info("Sandbox exists already", "sandbox", obj.GetName())
		return alreadyExists(req, obj.GetName())
	}
	stamp, err := find(ctx, obj)
	mode, modeErr := s.Modes.in(ctx, req.Namespace, stamp.Namespace, stamp.Enforcement)
	if err = cmp.Or(err, modeErr); err != nil {
		logf.FromContext(ctx).V(2).Info("Left unstamped", "reason", err.Error())
		// What has a stamp counts as seen: whether it needs a repair is known, too.
		stamp.Hash = ""
	}
	if modeErr != nil || mode != settings.Enforce {
		return admission.Allowed("")
	}
	if stamp.Refused != nil {
		s.KnownRefusals.note(stamp.Question, *stamp.Refused)
	}
	wanted := map[string]string{settings.StampKey: stamp.Hash, settings.EnforcementKey: ""}
	if settings.Mode(stamp.Enforcement) == settings.Enforce {
		wanted[settings.EnforcementKey] = string(settings.Enforce)
	}
	patch := marksPatch("labels", obj.GetLabels(), wanted)
	if !isPod {
		patch = append(patch, marksPatch("annotations", obj.GetAnnotations(), map[string]string{
			settings.CreatedByKey: s.createdBy(), settings.RepairedKey: stamp.Repaired, settings.BoundToKey: stamp.BoundTo,
		})...)
		patch = append(patch, repairPatch(stamp.Repair)...)
	}
	if stamp.Sendable {
		patch = append(patch, s.sendPatch(obj)...)
	}
	return admission.Patched("", patch...)
}

// exists reports whether a sandbox that is to be created for a claim is there already.
func (s *Stamp) exists(ctx context.Context, req admission.Request, name string) bool {
	return !s.Birth && s.Modes.lastKnown(ctx, req.Namespace) == settings.Enforce &&
		s.Existing.has(ctx, resourceOf(req), types.NamespacedName{Namespace: req.Namespace, Name: name})
}

// alreadyExists is what the API server itself would say in the end.
func alreadyExists(req admission.Request, name string) admission.Response {
	status := apierrors.NewAlreadyExists(resourceOf(req), name).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

func resourceOf(req admission.Request) schema.GroupResource {
	return schema.GroupResource{Group: req.Resource.Group, Resource: req.Resource.Resource}
}

// repairPatch returns the operations that rewrite a cold start.
func repairPatch(r *platform.Repair) []jsonpatch.JsonPatchOperation {
	if r == nil {
		return nil
	}
	var patch []jsonpatch.JsonPatchOperation
	for _, f := range r.Fields {
		path := ""
		for _, step := range f.Path {
			path += "/" + strings.ReplaceAll(step, "/", "~1")
		}
		if f.Value == nil {
			patch = append(patch, jsonpatch.NewOperation("remove", path, nil))
			continue
		}
		// "add" replaces what is there.
		patch = append(patch, jsonpatch.NewOperation("add", path, f.Value))
	}
	return patch
}

// sendPatch sends a Pod to the second scheduler, unless somebody else chose one.
func (s *Stamp) sendPatch(pod *unstructured.Unstructured) []jsonpatch.JsonPatchOperation {
	name, _, _ := unstructured.NestedString(pod.Object, "spec", "schedulerName")
	if s.SchedulerName == "" || name != "" && name != corev1.DefaultSchedulerName {
		return nil
	}
	return []jsonpatch.JsonPatchOperation{jsonpatch.NewOperation("add", "/spec/schedulerName", s.SchedulerName)}
}

var podKind = schema.GroupKind{Kind: "Pod"}

func (s *Stamp) createdBy() string {
	if s.Birth {
		return settings.CreatedByPool
	}
	return ""
}

// stampPatch returns the operations after which labels carry exactly this stamp.
func stampPatch(labels map[string]string, hash string) []jsonpatch.JsonPatchOperation {
	return marksPatch("labels", labels, map[string]string{settings.StampKey: hash})
}

// marksPatch returns the operations after which a field of metadata has exactly
// these marks, "" for none, and whatever else it has.
func marksPatch(field string, has, wanted map[string]string) []jsonpatch.JsonPatchOperation {
	var patch []jsonpatch.JsonPatchOperation
	first := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		path := "/metadata/" + field + "/" + strings.ReplaceAll(key, "/", "~1")
		carried, there := has[key]
		switch value := wanted[key]; {
		case value == "" && there:
			patch = append(patch, jsonpatch.NewOperation("remove", path, nil))
		case value == carried:
		case has == nil:
			first[key] = value
		default:
			patch = append(patch, jsonpatch.NewOperation("add", path, value))
		}
	}
	if len(first) > 0 {
		patch = append(patch, jsonpatch.NewOperation("add", "/metadata/"+field, first))
	}
	return patch
}
