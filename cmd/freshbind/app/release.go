package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/internal/release"
	"github.com/freshbind/freshbind/internal/selftest"
)

// attempts is how often objects are tried that the API server refused to write.
const attempts = 3

type releaseOptions struct {
	*target
	dryRun, stop string
	unattended   bool
	timeout      time.Duration

	dry        cli.DryRun
	deployment types.NamespacedName
	// poll is how often we check whether the Pods are gone, pause how long we
	// wait before we try again what failed.
	poll, pause time.Duration
}

func newRelease(r env) *releaseOptions {
	return &releaseOptions{target: newTarget(r), timeout: 5 * time.Minute, poll: time.Second, pause: 3 * time.Second}
}

func (o *releaseOptions) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Undo what Freshbind has done to pools, for when it is taken out of the cluster",
		Long: "Release shows hidden members to claims again, removes Freshbind's labels and annotations from pools, members, Pods and\n" +
			"claims, and says what stays. Annotations and labels that you set yourself stay. Release looks at\n" +
			"every warm-pool system that Freshbind knows, also at one that it does not guard.\n\n" +
			"While Freshbind runs it hides members again. With --stop the webhook configurations and admission policies are deleted\n" +
			"first, then the Deployment is scaled to 0. `helm uninstall` does all of that by itself. What is released already is\n" +
			"left alone, so it does no harm to run this twice, or to go on after an interruption.\n\n" +
			"Exit codes: 0 done, 1 something could not be released, 2 wrong usage.",
		Example: "  freshbind release -A --dry-run\n" +
			"  freshbind release -A --stop freshbind-system/freshbind\n" +
			"  freshbind release -n prod",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.config.AddFlags(cmd.Flags())
	o.changed = cmd.Flags().Changed
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "Release all namespaces, or those that --config names.")
	cmd.Flags().StringVar(&o.configFile, "config", "", "The manager's configuration file: -A means the namespaces in it.")
	cmd.Flags().StringVar(&o.stop, "stop", "", "Deployment to stop first, as NAMESPACE/NAME; webhooks and policies go before it.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", o.timeout, "How long all of it may take.")
	cmd.Flags().BoolVar(&o.unattended, "unattended", false,
		"For a hook: try again what failed, until --timeout, and end with 0 all the same: nothing is to be held up by this for ever.")
	addDryRun(cmd, &o.dryRun)
	return cmd
}

func (o *releaseOptions) complete() error {
	var err error
	if o.dry, err = cli.ParseDryRun(o.dryRun); err != nil {
		return usage("%w", err)
	}
	if o.timeout <= 0 {
		return usage("--timeout %s: it must be above 0, such as 5m", o.timeout)
	}
	if o.stop != "" {
		namespace, name, ok := strings.Cut(o.stop, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return usage("--stop %q: it must be a Deployment as NAMESPACE/NAME, such as freshbind-system/freshbind", o.stop)
		}
		o.deployment = types.NamespacedName{Namespace: namespace, Name: name}
		if !o.all {
			return usage("--stop takes Freshbind away from all namespaces: release them all, with -A")
		}
	}
	return nil
}

func (o *releaseOptions) run(ctx context.Context) error {
	if err := o.complete(); err != nil {
		return err
	}
	c, namespace, err := o.reachCluster()
	if err != nil {
		return err
	}
	namespaces := []string{namespace}
	if o.all && o.configFile != "" {
		f, err := config.Load(o.configFile)
		if err != nil {
			return usage("--config: %w", err)
		}
		if len(f.Namespaces) > 0 {
			namespaces = f.Namespaces
		}
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	err = o.persist(ctx, c, namespaces)
	if err != nil && o.unattended {
		return warn(o.streams.ErrOut, fmt.Sprintf("Warning: gave up: %v. Run freshbind release -A to see what is left.", err))
	}
	return err
}

// persist tries again what may go well another time.
func (o *releaseOptions) persist(ctx context.Context, c *cli.Cluster, namespaces []string) error {
	err := o.attempt(ctx, c, namespaces)
	for tries := 1; err != nil && ctx.Err() == nil; tries++ {
		again := o.unattended
		if cli.IsPartial(err) {
			// A policy of ours holds for some seconds after it was deleted. Somebody
			// else's goes on to refuse.
			again = tries < attempts
		}
		if !again {
			break
		}
		if err := warn(o.streams.ErrOut, fmt.Sprintf("Warning: %v; trying again", err)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(o.pause):
		}
		err = o.attempt(ctx, c, namespaces)
	}
	return err
}

// attempt does all of it; what is done already takes no time.
func (o *releaseOptions) attempt(ctx context.Context, c *cli.Cluster, namespaces []string) error {
	if o.stop != "" {
		if err := o.takeAway(ctx, c); err != nil {
			return err
		}
	} else if ago := c.Leader(ctx); ago != "" && o.dry == cli.Real {
		if err := warn(o.streams.ErrOut, "Warning: Freshbind runs (its leader was alive "+ago+") and hides members again: stop it with --stop NAMESPACE/DEPLOYMENT."); err != nil {
			return err
		}
	}
	report, err := c.Release(ctx, o.dry, commandedObjects(), namespaces...)
	if err == nil && len(report.Pools)+len(report.Unmarked)+report.Failed == 0 {
		err = warn(o.streams.Out, "nothing to release"+o.dry.Suffix())
	}
	if printed := o.print(report); printed != nil || err != nil {
		return errors.Join(err, printed)
	}
	if report.Failed > 0 {
		return &cli.PartialError{Failed: report.Failed}
	}
	return nil
}

func (o *releaseOptions) takeAway(ctx context.Context, c *cli.Cluster) error {
	var printErr error
	g := &release.Guard{
		Client: c.Client, Silent: o.dry == cli.ClientSide, DryRun: o.dry == cli.ServerSide,
		Printf: func(format string, args ...any) {
			if _, err := fmt.Fprintf(o.streams.Out, format+o.dry.Suffix()+"\n", args...); err != nil {
				printErr = fmt.Errorf("write output: %w", err)
			}
		},
		Leases: []string{programName, selftest.LeaseName}, Suffixes: suffixes(),
		Poll: o.poll, Timeout: o.timeout / 2,
	}
	if err := g.Open(ctx); err != nil {
		return err
	}
	gone, err := g.Stop(ctx, o.deployment)
	if err != nil {
		return err
	}
	if !gone {
		return warn(o.streams.ErrOut, fmt.Sprintf("Warning: after %s there are still Pods of %s, which may hide members again.", g.Timeout, o.deployment))
	}
	return printErr
}

func (o *releaseOptions) print(report release.Report) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, p := range report.Pools {
		line("%s %s/%s: %d members shown, %d offered again%s", p.Kind, p.Namespace, p.Name, p.Shown, p.Offered, o.dry.Suffix())
	}
	for _, kind := range slices.Sorted(maps.Keys(report.Unmarked)) {
		line("marks removed from %d objects of kind %s%s", report.Unmarked[kind], kind, o.dry.Suffix())
	}
	for _, f := range report.Failures {
		line("failed: %s", f)
	}
	if n := report.Failed - len(report.Failures); n > 0 {
		line("failed: %d more", n)
	}
	for _, l := range report.Left {
		line("left: %s", l)
	}
	_, err := fmt.Fprint(o.streams.Out, b.String())
	return err
}
