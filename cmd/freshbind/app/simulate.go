package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
)

type simulateOptions struct {
	streams genericiooptions.IOStreams
	config  *genericclioptions.ConfigFlags
	files   documentFiles
	output  cli.Output
	// enforcement and strategy are the defaults that the manager was started with.
	enforcement, strategy string
}

// NewSimulateCommand returns the command that tells what a write would lead to.
func NewSimulateCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &simulateOptions{
		streams: streams, config: genericclioptions.NewConfigFlags(true),
		enforcement: string(settings.Audit), strategy: string(freshness.OnReplenish),
	}
	cmd := &cobra.Command{
		Use:   "simulate -f FILE",
		Short: "Tell what would happen if you applied templates, pools and claims, without a write",
		Long: "Simulate tells what kubectl apply of the files would do, in the words of Freshbind's webhook: which idle members\n" +
			"a template, or a SandboxSet of OpenKruise Agents, would make stale, pool by pool, and what happens to them; what a claim\n" +
			"would get; which inputs would be refused. It only reads (get, list), compares members by content, and does not need\n" +
			"Freshbind in the cluster.\n\n" +
			"It takes each document as the whole object to be stored, with the defaults of the cluster's CRDs, and compares each\n" +
			"with the cluster on its own: what another document of the same file would create does not count.\n\n" +
			"Exit codes: 0 done, 1 an input would be refused or something could not be read, 2 wrong usage.",
		Example: "  freshbind simulate -f template.yaml -n prod\n" +
			"  kustomize build prod | freshbind simulate -f - -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(args); err != nil {
				return &ExitError{Code: exitUsage, Err: err}
			}
			return o.run(cmd.Context())
		},
	}
	o.config.AddFlags(cmd.Flags())
	o.files.addFlag(cmd.Flags())
	o.output.AddFlags(cmd)
	cmd.Flags().StringVar(&o.enforcement, "default-enforcement", o.enforcement, "The manager's default mode: audit or enforce.")
	cmd.Flags().StringVar(&o.strategy, "default-rollout-strategy", o.strategy,
		"The manager's default strategy: OnReplenish, Recreate or RollingUpdate.")
	return cmd
}

func (o *simulateOptions) validate(args []string) error {
	if err := validateFiles(args, o.files); err != nil {
		return err
	}
	if err := o.output.Validate(); err != nil {
		return err
	}
	if _, err := settings.ParseMode(o.enforcement); err != nil {
		return fmt.Errorf("--default-enforcement: %w", err)
	}
	if _, err := settings.ParseStrategy(o.strategy); err != nil {
		return fmt.Errorf("--default-rollout-strategy: %w", err)
	}
	return nil
}

// run prints nothing unless every document could be told of, so that a script
// never takes a part for the whole.
func (o *simulateOptions) run(ctx context.Context) error {
	documents, err := o.read()
	if err != nil {
		return err
	}
	cluster, err := newSimulation(o)
	if err != nil {
		return err
	}
	var results []simulated
	refused := 0
	for _, d := range documents {
		s, err := cluster.predict(ctx, d.object)
		if err != nil {
			return fmt.Errorf("%s: %w", d.position, err)
		}
		results = append(results, s)
		if len(s.Refused) > 0 {
			refused++
		}
	}
	if err := o.print(results); err != nil {
		return err
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d would be refused", refused, len(results))
	}
	return nil
}

// read returns the documents that there is something to tell of, and names the
// others on the error stream. Positions name the file too.
func (o *simulateOptions) read() ([]document, error) {
	var out []document
	for _, file := range o.files {
		_, documents, err := readDocuments(o.streams.In, file)
		if err != nil {
			return nil, err
		}
		for _, d := range documents {
			if _, known := simulatedResource(d.object); known {
				out = append(out, d)
				continue
			}
			if _, err := fmt.Fprintf(o.streams.ErrOut, "%s: skipped: simulate does not cover kind %q of apiVersion %q\n",
				d.position, d.object.GetKind(), d.object.GetAPIVersion()); err != nil {
				return nil, fmt.Errorf("write output: %w", err)
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("found no document that simulate covers: it accepts SandboxTemplate, SandboxWarmPool and SandboxClaim of " +
			templateKind.Group + ", SandboxSet of " + kruiseKinds().Pool.Group + ", and Namespace")
	}
	return out, nil
}
