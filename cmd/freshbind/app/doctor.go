package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/internal/doctor"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/webhooks"
)

type doctorOptions struct {
	env
	flags            *genericclioptions.ConfigFlags
	configFile, user string
	output           cli.Output
}

func newDoctorCommand(r env) *cobra.Command {
	o := &doctorOptions{env: r, flags: genericclioptions.NewConfigFlags(true)}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check an installation, and say what to do",
		Long: "Doctor checks webhooks and their CA, replicas, policies, rights, the leader, the self-test, and which pools are\n" +
			"only audited. It also asks the API server, in a dry run, for what Freshbind has to refuse. It writes nothing, and\n" +
			"reports Unknown where you lack read access.\n\n" +
			"Exit codes: 0 nothing failed, 1 a check failed, 2 wrong usage, 5 none failed, but not everything could be found out.",
		Example: "  freshbind doctor\n" +
			"  freshbind doctor -o json | jq '.findings[] | select(.status == \"Failed\")'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.flags.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.configFile, "config", "", "The manager's configuration file; the defaults count without it.")
	cmd.Flags().StringVar(&o.user, "manager-user", "system:serviceaccount:freshbind-system:freshbind", "User that the manager runs as.")
	o.output.AddFlags(cmd)
	return cmd
}

var (
	errSick  = errors.New("a check failed")
	errBlind = errors.New("not everything could be found out")
)

// exitBlind says that no check failed, and that some could not be made.
const exitBlind = 5

func (o *doctorOptions) run(ctx context.Context) error {
	if err := o.output.Validate(); err != nil {
		return usage("%w", err)
	}
	d, err := o.doctor()
	if err != nil {
		return err
	}
	findings := d.Run(ctx)
	if o.output.Structured() {
		if err := o.output.PrintObject(o.streams.Out, "DoctorReport", map[string]any{"findings": findings}); err != nil {
			return err
		}
	} else if err := printFindings(o.streams.Out, findings); err != nil {
		return err
	}
	switch {
	case doctor.Sick(findings):
		return &ExitError{Code: exitFailed, Err: errSick}
	case doctor.Blind(findings):
		return &ExitError{Code: exitBlind, Err: errBlind}
	}
	return nil
}

func (o *doctorOptions) doctor() (*doctor.Doctor, error) {
	c := config.Default()
	if o.configFile != "" {
		f, err := config.Load(o.configFile)
		if err != nil {
			return nil, usage("--config: %w", err)
		}
		c = f.Configuration
	}
	defaults, err := defaultsOf(c.Defaults.Enforcement, c.Defaults.RolloutStrategy, c.Floors)
	if err != nil {
		return nil, err
	}
	cfg, err := o.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	cfg.QPS, cfg.UserAgent = -1, programName+"-doctor"
	logf.SetLogger(logr.Discard())
	api, err := client.New(cfg, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	asks, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating client for discovery: %w", err)
	}
	mutating, validating := webhooks.Configurations(admission(), webhooks.Endpoint{}, webhooks.Scope{})
	scope := scopeOf(c.Defaults.Enforcement, c.Floors)
	scope.Self = o.user
	policies := webhooks.NewPolicies(admission(), scope)
	d := &doctor.Doctor{
		Client: api, Mutating: mutating, Validating: validating, Policies: append(policies.WithoutMutating().Objects(), ownPolicies(admission(), o.user).Objects()...),
		Floors:   webhooks.FloorConfigurations(admission(), webhooks.Endpoint{}, scope),
		Enforced: func(namespace labels.Set) bool { return defaults.ModeOf(namespace, "") == settings.Enforce },
		User:     o.user, Platform: builtIn.Kinds(), Name: platformName, BarePodLabel: barePodLabel,
		Namespaces: c.Namespaces, TestNamespace: c.SelfTest.Namespace,
		Now: time.Now,
	}
	if c.Scheduling.Mode != config.SchedulingSecond {
		d.FormerScheduler = c.Scheduling.SchedulerName
	}
	served := platform.Discovery(asks.ServerResourcesForGroupVersionWithContext)
	d.Kinds = func(ctx context.Context) (platform.Served, bool, error) { return served.Find(ctx, d.Platform) }
	if c.Platforms.Kruise {
		withKruise(d, scope, served)
	}
	return d, nil
}

// withKruise has what is installed for OpenKruise Agents checked as well.
func withKruise(d *doctor.Doctor, scope webhooks.Scope, served platform.Discovery) {
	a := kruiseAdmission()
	mutating, validating := webhooks.Configurations(a, webhooks.Endpoint{}, webhooks.Scope{})
	d.Others = append(d.Others, doctor.Other{
		Name: kruiseName, Mutating: mutating, Validating: validating, Floors: webhooks.FloorConfigurations(a, webhooks.Endpoint{}, scope),
		Rights: kruiseRights(),
		Kinds:  func(ctx context.Context) (platform.Served, bool, error) { return served.Find(ctx, kruiseKinds()) },
	})
	d.Policies = append(d.Policies, webhooks.NewPolicies(a, scope).Objects()...)
	d.Policies = append(d.Policies, ownPolicies(a, scope.Self).Objects()...)
}

func printFindings(w io.Writer, findings []doctor.Finding) error {
	for _, f := range findings {
		if _, err := fmt.Fprintf(w, "%-8s %-12s %s\n", f.Status, f.Check, f.Found); err != nil {
			return err
		}
		if f.Do == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%21s do: %s\n", "", f.Do); err != nil {
			return err
		}
	}
	return nil
}
