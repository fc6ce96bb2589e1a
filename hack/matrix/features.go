package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/test/controlplane"
)

// askWithin bounds a question; nothing here should come near it.
const askWithin = 5 * time.Minute

// features are what differs between API servers, as they answer with their defaults.
type features struct {
	// mutatingPolicies is the version in which they are served; "" for none.
	mutatingPolicies string
	// The others say whether they work.
	matchConditions, watchList, selectableFields bool
}

// ask finds out from a running API server. That a version of the API is in a
// release's notes says nothing of whether it is on.
func ask(ctx context.Context) (f features, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	cluster, err := controlplane.Start(ctx, controlplane.Options{Log: os.Stderr})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	client, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		return f, fmt.Errorf("make client: %w", err)
	}
	crds, err := apiextensions.NewForConfig(cluster.Config())
	if err != nil {
		return f, fmt.Errorf("make client: %w", err)
	}
	if f.mutatingPolicies, err = mutatingPolicies(client); err != nil {
		return f, err
	}
	if f.matchConditions, err = matchConditions(ctx, client); err != nil {
		return f, err
	}
	if f.watchList, err = watchList(ctx, client); err != nil {
		return f, err
	}
	f.selectableFields, err = selectableFields(ctx, crds)
	return f, err
}

func mutatingPolicies(client kubernetes.Interface) (string, error) {
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		list, err := client.Discovery().ServerResourcesForGroupVersion(admissionregistrationv1.GroupName + "/" + version)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("discover what is served in %s: %w", version, err)
		}
		for _, r := range list.APIResources {
			if r.Name == "mutatingadmissionpolicies" {
				return version, nil
			}
		}
	}
	return "", nil
}

// matchConditions stores nothing: API servers drop fields that they do not know.
func matchConditions(ctx context.Context, client kubernetes.Interface) (bool, error) {
	stored, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx,
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "asked"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "asked.freshbind.dev", AdmissionReviewVersions: []string{"v1"},
				ClientConfig:    admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1/")},
				SideEffects:     ptr.To(admissionregistrationv1.SideEffectClassNone),
				MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "never", Expression: "false"}},
			}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return false, fmt.Errorf("ask for matchConditions: %w", err)
	}
	return len(stored.Webhooks[0].MatchConditions) == 1, nil
}

// watchList asks for a watch that begins with everything there is.
func watchList(ctx context.Context, client kubernetes.Interface) (bool, error) {
	w, err := client.CoreV1().ConfigMaps(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{
		SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	})
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask for WatchList: %w", err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return false, fmt.Errorf("ask for WatchList: %w", apierrors.FromObject(event.Object))
		}
		if event.Type != watch.Bookmark {
			continue
		}
		object, err := meta.Accessor(event.Object)
		if err != nil {
			return false, fmt.Errorf("ask for WatchList: %w", err)
		}
		// An API server that does not know the option sends bookmarks, too, without it.
		return object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true", nil
	}
	return false, errors.New("ask for WatchList: the watch ended before it had begun")
}

func selectableFields(ctx context.Context, crds apiextensions.CustomResourceDefinitionsGetter) (bool, error) {
	stored, err := crds.CustomResourceDefinitions().Create(ctx, &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.asked.freshbind.dev"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "asked.freshbind.dev", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"color": {Type: "string"}},
				}},
				SelectableFields: []apiextensionsv1.SelectableField{{JSONPath: ".color"}},
			}},
		},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return false, fmt.Errorf("ask for selectableFields: %w", err)
	}
	return len(stored.Spec.Versions[0].SelectableFields) == 1, nil
}
