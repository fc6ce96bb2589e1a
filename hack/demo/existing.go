package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/recorder"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
	"github.com/freshbind/freshbind/webhooks"
)

const (
	// prefix of the namespaces in a cluster of somebody's.
	prefix = "freshbind-demo-"
	// existingTimeout leaves time to pull images.
	existingTimeout = 5 * time.Minute
	dialWithin      = 10 * time.Second
	// installedName is that of all cluster-scoped objects which fixture makes.
	installedName = webhooks.ConfigurationName
)

// existingStage uses a cluster of the user's, with its own agent-sandbox.
// Freshbind runs on this machine, under the user's own identity.
func existingStage(ctx context.Context, o options, out io.Writer) (*stage, error) {
	s := &stage{timeout: existingTimeout, kubectl: "kubectl --context " + o.context}
	var err error
	s.admin, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(),
		&clientcmd.ConfigOverrides{CurrentContext: o.context}).ClientConfig()
	if err != nil {
		return s, fmt.Errorf("%s: load context %q: %w", envContext, o.context, err)
	}
	version, err := servedVersion(ctx, s.admin)
	if err != nil {
		return s, fmt.Errorf("%s: %w", envContext, err)
	}
	client, err := kubernetes.NewForConfig(s.admin)
	if err != nil {
		return s, fmt.Errorf("make client: %w", err)
	}
	if err := notInstalled(ctx, client); err != nil {
		return s, err
	}
	_, _ = fmt.Fprintf(out, "cluster        context %s, %s; nothing is built but freshbind, and what is created there is removed again\n", o.context, s.admin.Host)
	_, _ = fmt.Fprintf(out, "upstream       %s, as it runs there; how late it sees things cannot be chosen\n", runningRelease(ctx, client))
	host, err := webhookHost(ctx, o, s.admin)
	if err != nil {
		return s, err
	}
	if err := s.startGuard(ctx, client, host); err != nil {
		return s, err
	}
	s.later(s.removeNamespaces)
	err = s.createNamespaces(ctx, version, prefix)
	if errors.Is(err, scenario.ErrUnreachable) {
		err = fmt.Errorf("%w\nfreshbind listens at %s on this machine: set %s to an address of this machine that the cluster can reach "+
			"(kind: the gateway of its Docker network)", err, host, envWebhookHost)
	}
	if err != nil {
		return s, err
	}
	_, _ = fmt.Fprintln(out, s.modes())
	return s, nil
}

// servedVersion is the API version of agent-sandbox that the cluster serves.
func servedVersion(ctx context.Context, admin *rest.Config) (string, error) {
	r, err := recorder.New(ctx, admin, recorder.Options{})
	if err != nil {
		return "", err
	}
	return r.API()[checker.Claims].Version, nil
}

// notInstalled fails where Freshbind is at home already: the demo would take
// its webhooks over, and remove them in the end.
func notInstalled(ctx context.Context, client kubernetes.Interface) error {
	_, webhookErr := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, installedName, metav1.GetOptions{})
	_, roleErr := client.RbacV1().ClusterRoles().Get(ctx, installedName, metav1.GetOptions{})
	for _, err := range []error{webhookErr, roleErr} {
		if err == nil {
			return fmt.Errorf("%s: this cluster has Freshbind installed (an object named %q exists): choose another one", envContext, installedName)
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s: look for an installed Freshbind: %w", envContext, err)
		}
	}
	return nil
}

// runningRelease is the image of agent-sandbox's own Deployment, if that can be
// found where its manifests put it.
func runningRelease(ctx context.Context, client kubernetes.Interface) string {
	_, name, _ := strings.Cut(strings.TrimPrefix(upstream.User, "system:serviceaccount:"), ":")
	deployment, err := client.AppsV1().Deployments(upstream.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || len(deployment.Spec.Template.Spec.Containers) == 0 {
		return "agent-sandbox (release not known)"
	}
	return "agent-sandbox " + deployment.Spec.Template.Spec.Containers[0].Image
}

// webhookHost is the address at which the cluster's API server finds us: by
// default the one from which we reach it.
func webhookHost(ctx context.Context, o options, admin *rest.Config) (string, error) {
	if o.webhookHost != "" {
		listener, err := net.Listen("tcp", net.JoinHostPort(o.webhookHost, "0"))
		if err != nil {
			return "", fmt.Errorf("%s: %w: name an address of this machine", envWebhookHost, err)
		}
		return o.webhookHost, listener.Close()
	}
	address, err := serverAddress(admin.Host)
	if err != nil {
		return "", err
	}
	dialer := net.Dialer{Timeout: dialWithin}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return "", fmt.Errorf("find the address under which the cluster reaches this machine: %w; set %s", err, envWebhookHost)
	}
	defer func() { _ = connection.Close() }()
	host, _, err := net.SplitHostPort(connection.LocalAddr().String())
	return host, err
}

// serverAddress is host:port of a configuration's Host, which may be a URL.
func serverAddress(host string) (string, error) {
	parsed, err := url.Parse(host)
	if err != nil || parsed.Host == "" {
		parsed, err = url.Parse("https://" + host)
	}
	if err != nil {
		return "", fmt.Errorf("read the API server's address %q: %w", host, err)
	}
	if parsed.Port() != "" {
		return parsed.Host, nil
	}
	return net.JoinHostPort(parsed.Hostname(), "443"), nil
}

// startGuard runs Freshbind for the demo's namespaces only: all that exist are
// left out of its webhooks.
func (s *stage) startGuard(ctx context.Context, client kubernetes.Interface, host string) error {
	if err := s.makeDir(); err != nil {
		return err
	}
	others, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	exempt := make([]string, len(others.Items))
	for i := range others.Items {
		exempt[i] = others.Items[i].Name
	}
	s.later(func(ctx context.Context) error { return removeRights(ctx, client) })
	earlier, err := revisions(ctx, client)
	if err != nil {
		return err
	}
	s.later(func(ctx context.Context) error { return removeRevisions(ctx, client, earlier) })
	if s.guard, err = scenario.StartGuard(ctx, os.Stderr, fixture.Options{Admin: s.admin, Dir: s.dir, Host: host}); err != nil {
		return err
	}
	s.failed = s.guard.Err
	s.later(func(context.Context) error { return s.guard.Close() })
	s.later(s.guard.Uninstall)
	return s.guard.Install(ctx, exempt...)
}

// removeNamespaces deletes those that the demo created.
func (s *stage) removeNamespaces(ctx context.Context) error {
	var errs []error
	for _, n := range []*scenario.Namespace{s.unguarded, s.guarded, s.rolling} {
		if n != nil {
			errs = append(errs, n.Remove(ctx))
		}
	}
	return errors.Join(errs...)
}

// removeRights removes the role that fixture makes for Freshbind's own identity.
func removeRights(ctx context.Context, client kubernetes.Interface) error {
	var errs []error
	for _, err := range []error{
		client.RbacV1().ClusterRoleBindings().Delete(ctx, installedName, metav1.DeleteOptions{}),
		client.RbacV1().ClusterRoles().Delete(ctx, installedName, metav1.DeleteOptions{}),
	} {
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("remove freshbind's rights: %w", err))
		}
	}
	return errors.Join(errs...)
}

// revisions are what Freshbind records of the cluster's templates, by UID.
func revisions(ctx context.Context, client kubernetes.Interface) (map[types.UID]appsv1.ControllerRevision, error) {
	list, err := client.AppsV1().ControllerRevisions(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{LabelSelector: settings.TemplateUIDLabel})
	if err != nil {
		return nil, fmt.Errorf("list recorded revisions: %w", err)
	}
	found := make(map[types.UID]appsv1.ControllerRevision, len(list.Items))
	for _, revision := range list.Items {
		found[revision.UID] = revision
	}
	return found, nil
}

// removeRevisions removes what was recorded since, of all templates of the
// cluster: history is kept in every mode.
func removeRevisions(ctx context.Context, client kubernetes.Interface, earlier map[types.UID]appsv1.ControllerRevision) error {
	found, err := revisions(ctx, client)
	if err != nil {
		return err
	}
	var errs []error
	for uid, revision := range found {
		if _, ok := earlier[uid]; ok {
			continue
		}
		err := client.AppsV1().ControllerRevisions(revision.Namespace).Delete(ctx, revision.Name,
			metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(uid))})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("remove recorded revision %s/%s: %w", revision.Namespace, revision.Name, err))
		}
	}
	return errors.Join(errs...)
}
