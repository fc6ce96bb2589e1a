package controlplane

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/retry"
)

// servedTimeout bounds the time from a CRD's creation until its API is served.
const servedTimeout = 10 * time.Minute

// InstallCRDs creates or replaces CRDs and returns when they are Established
// and every API server that runs serves all their versions.
func (c *Cluster) InstallCRDs(ctx context.Context, crds ...*apiextensionsv1.CustomResourceDefinition) error {
	if len(crds) == 0 {
		return nil
	}
	client, err := apiextensions.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("make CRD client: %w", err)
	}
	for _, crd := range crds {
		if err := applyCRD(ctx, client.CustomResourceDefinitions(), crd); err != nil {
			return fmt.Errorf("install CRD %s: %w", crd.Name, err)
		}
	}
	for _, crd := range crds {
		if err := c.waitServed(ctx, client.CustomResourceDefinitions(), crd); err != nil {
			return fmt.Errorf("install CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

func applyCRD(
	ctx context.Context, client apiextensions.CustomResourceDefinitionInterface, crd *apiextensionsv1.CustomResourceDefinition,
) error {
	wanted := crd.DeepCopy()
	wanted.ResourceVersion = ""
	_, err := client.Create(ctx, wanted, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		existing, err := client.Get(ctx, crd.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		wanted.ResourceVersion = existing.ResourceVersion
		_, err = client.Update(ctx, wanted, metav1.UpdateOptions{})
		return err
	})
}

func (c *Cluster) waitServed(
	ctx context.Context, client apiextensions.CustomResourceDefinitionInterface, crd *apiextensionsv1.CustomResourceDefinition,
) error {
	err := wait.PollUntilContextTimeout(ctx, readyPoll, servedTimeout, true, func(ctx context.Context) (bool, error) {
		live, err := client.Get(ctx, crd.Name, metav1.GetOptions{})
		return err == nil && established(live), err
	})
	if err != nil {
		return fmt.Errorf("wait until it is established: %w", err)
	}
	for i := range c.servers {
		if !c.serverRuns(i) {
			continue
		}
		// No cache: the answer has to be the server's present one.
		served, err := discovery.NewDiscoveryClientForConfig(c.ServerConfig(i))
		if err != nil {
			return fmt.Errorf("make discovery client: %w", err)
		}
		err = wait.PollUntilContextTimeout(ctx, readyPoll, servedTimeout, true, func(context.Context) (bool, error) {
			return serves(served, crd)
		})
		if err != nil {
			return fmt.Errorf("wait until %s serves it: %w", c.servers[i].name, err)
		}
	}
	return nil
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range crd.Status.Conditions {
		if condition.Type == apiextensionsv1.Established {
			return condition.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// serves says whether a server's discovery has the CRD's resource in every
// version that the CRD wants served.
func serves(client discovery.ServerResourcesInterface, crd *apiextensionsv1.CustomResourceDefinition) (bool, error) {
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		list, err := client.ServerResourcesForGroupVersion(crd.Spec.Group + "/" + version.Name)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if !hasResource(list, crd.Spec.Names.Plural) {
			return false, nil
		}
	}
	return true, nil
}

func hasResource(list *metav1.APIResourceList, name string) bool {
	for _, resource := range list.APIResources {
		if resource.Name == name {
			return true
		}
	}
	return false
}
