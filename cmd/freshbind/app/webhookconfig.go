package app

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/webhooks"
)

type webhookConfigOptions struct {
	endpoint webhooks.Endpoint
	caFile   string
	scope    webhooks.Scope
	mutating bool
	// kruise adds what OpenKruise Agents needs, kruiseControllers its pool controllers.
	kruise            bool
	kruiseControllers []string
	// enforced are label selectors, as kubectl writes them.
	enforced []string
}

func (o *webhookConfigOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.endpoint.URL, "url", "", "Base URL of the webhooks, https://host:port, instead of a Service.")
	fs.StringVar(&o.endpoint.ServiceName, "service-name", "", "Name of the Service in front of the manager.")
	fs.StringVar(&o.endpoint.ServiceNamespace, "service-namespace", "freshbind-system", "Namespace of the Service; the webhooks leave it out.")
	fs.Int32Var(&o.endpoint.ServicePort, "service-port", 443, "Port of the Service.")
	fs.StringVar(&o.caFile, "ca-file", "", "PEM file with the CA that signed the serving certificate; empty if something injects it.")
	fs.StringSliceVar(&o.scope.Exempt, "exempt-namespaces", nil, "Further namespaces to leave out, besides kube-system.")
	fs.BoolVar(&o.mutating, "mutating-policies", true,
		"Use a MutatingAdmissionPolicy of admissionregistration.k8s.io/v1 (Kubernetes 1.36 and later); false for a webhook in its place.")
	fs.StringVar(&o.scope.Self, "user", "system:serviceaccount:freshbind-system:freshbind", "User that the manager runs as: it alone may write revision labels.")
	fs.StringSliceVar(&o.scope.PoolControllers, "pool-controller-users", admission().Controllers,
		"Users that create a pool's members, and whose deletes of a claim's sandbox are refused as meant for an idle one.")
	fs.BoolVar(&o.kruise, "platform-kruise", false, "Also print what the API server is told of OpenKruise Agents, as with platforms.kruise in the manager's configuration.")
	fs.StringSliceVar(&o.kruiseControllers, "kruise-controller-users", kruiseAdmission().Controllers, "Users that create the members of OpenKruise Agents' pools.")
	fs.BoolVar(&o.scope.EnforcedByDefault, "enforced-by-default", false,
		"Policies also hold, and webhooks fail closed, where a namespace sets no mode, as with defaults.enforcement=enforce in the manager's configuration.")
	fs.StringArrayVar(&o.enforced, "enforced-namespaces", nil,
		"Label selector of namespaces in which policies hold and webhooks fail closed whatever their mode, as with the manager's floors. Can be given several times.")
}

func (o *webhookConfigOptions) Complete() error {
	o.scope.Exempt = append(o.scope.Exempt, o.endpoint.ServiceNamespace)
	o.scope.Restamp = !o.mutating
	for _, text := range o.enforced {
		selector, err := metav1.ParseToLabelSelector(text)
		if err != nil {
			return usage("--enforced-namespaces: %w", err)
		}
		o.scope.Enforced = append(o.scope.Enforced, *selector)
	}
	if o.caFile == "" {
		return nil
	}
	ca, err := os.ReadFile(o.caFile)
	if err != nil {
		return fmt.Errorf("reading --ca-file: %w", err)
	}
	o.endpoint.CABundle = ca
	return nil
}

func (o *webhookConfigOptions) Validate() error {
	if err := o.endpoint.Validate(); err != nil {
		return &ExitError{Code: exitUsage, Err: fmt.Errorf("--url, --service-name: %w", err)}
	}
	return nil
}

func (o *webhookConfigOptions) objects() []client.Object {
	objects := o.objectsOf(admission(), o.scope)
	if o.kruise {
		scope := o.scope
		scope.PoolControllers = o.kruiseControllers
		objects = append(objects, o.objectsOf(kruiseAdmission(), scope)...)
	}
	return objects
}

// objectsOf are those of one platform.
func (o *webhookConfigOptions) objectsOf(a platform.Admission, scope webhooks.Scope) []client.Object {
	mutating, validating := webhooks.Configurations(a, o.endpoint, scope)
	policies := webhooks.NewPolicies(a, scope)
	if !o.mutating {
		policies = policies.WithoutMutating()
	}
	objects := []client.Object{mutating, validating}
	for _, c := range webhooks.FloorConfigurations(a, o.endpoint, scope) {
		objects = append(objects, c)
	}
	objects = append(objects, policies.Objects()...)
	return append(objects, ownPolicies(a, scope.Self).Objects()...)
}

func newWebhookConfigCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &webhookConfigOptions{}
	cmd := &cobra.Command{
		Use:   "webhook-config",
		Short: "Print webhook configurations and admission policies",
		Example: "  freshbind webhook-config --service-name freshbind --ca-file ca.crt | kubectl apply -f -\n" +
			"  freshbind webhook-config --url https://127.0.0.1:9443 --ca-file ca.crt",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := o.Complete(); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			printer := &printers.YAMLPrinter{}
			for _, obj := range o.objects() {
				if err := printer.PrintObj(obj, streams.Out); err != nil {
					return fmt.Errorf("printing webhook configuration: %w", err)
				}
			}
			return nil
		},
	}
	o.AddFlags(cmd.Flags())
	return cmd
}
