package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/settings"
)

const exitCodes = "Exit codes: 0 done or complete, 1 failed, 2 wrong usage, 3 not complete in time, 4 paused."

// resourceForms are the arguments of rollout commands, for help and errors.
const resourceForms = "pool/NAME or template/NAME"

func newRolloutCommand(r env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Follow and control the rollout of a template to its pools",
		Long: "Rollout commands apply to one pool (pool/NAME), or to all pools of a template (template/NAME).\n\n" +
			exitCodes,
		Args: cobra.ArbitraryArgs,
		RunE: needsSubcommand, FParseErrWhitelist: anyFlags,
	}
	cmd.AddCommand(
		newRolloutStatusCommand(r), newRolloutHistoryCommand(r), newRolloutUndoCommand(r),
		newPauseCommand(r), newResumeCommand(r), newRestartCommand(r),
	)
	return cmd
}

// annotationCommand is a command that writes one annotation onto pools.
type annotationCommand struct {
	*target
	dryRun string
	// done says what was done to a pool, already what is the case without it.
	done, already string
	is            func(p *cli.Pool) bool
	write         func(ctx context.Context, c *cli.Cluster, p *cli.Pool, dry cli.DryRun) error
}

func (s *annotationCommand) command(use, short, long, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " (pool/NAME | template/NAME)", Short: short, Long: long + "\n\n" + exitCodes, Example: example,
		Args: resourceArgs, ValidArgsFunction: s.completeNames(poolKind, templateWord),
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd.Context(), args) },
	}
	s.addFlags(cmd)
	addDryRun(cmd, &s.dryRun)
	return cmd
}

func addDryRun(cmd *cobra.Command, value *string) {
	cmd.Flags().StringVar(value, "dry-run", string(cli.Real), "none, client (send nothing) or server (check it, and store nothing).")
	// As with kubectl, the flag alone asks for the dry run that sends nothing.
	cmd.Flags().Lookup("dry-run").NoOptDefVal = string(cli.ClientSide)
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(
		[]cobra.Completion{string(cli.Real), string(cli.ClientSide), string(cli.ServerSide)}, cobra.ShellCompDirectiveNoFileComp))
}

// resourceArgs accepts kind/name, and kind and name apart.
func resourceArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("%s is required (see %s --help)", resourceForms, cmd.CommandPath())
	}
	return atMost(2, resourceForms)(cmd, args)
}

func newPauseCommand(r env) *cobra.Command {
	s := &annotationCommand{
		target: newTarget(r), done: "paused", already: "already paused", is: isPaused,
		write: func(ctx context.Context, c *cli.Cluster, p *cli.Pool, dry cli.DryRun) error {
			return c.Annotate(ctx, p.Object, settings.PausedKey, "true", dry)
		},
	}
	return s.command("pause", "Stop replacing members",
		"Pause stops Freshbind from replacing members of a pool. Claims are still refused what they may not have, and stale\n"+
			"members stay hidden. It does not stop a warm-pool system that recreates members itself (spec.updateStrategy).",
		"  freshbind rollout pause pool/python")
}

func newResumeCommand(r env) *cobra.Command {
	s := &annotationCommand{
		target: newTarget(r), done: "resumed", already: "not paused", is: func(p *cli.Pool) bool { return !isPaused(p) },
		write: func(ctx context.Context, c *cli.Cluster, p *cli.Pool, dry cli.DryRun) error {
			return c.Annotate(ctx, p.Object, settings.PausedKey, "", dry)
		},
	}
	return s.command("resume", "Replace members again", "Resume ends a pause.", "  freshbind rollout resume template/python")
}

func newRestartCommand(r env) *cobra.Command {
	s := &annotationCommand{
		target: newTarget(r), done: "restarted", is: func(*cli.Pool) bool { return false },
		write: func(ctx context.Context, c *cli.Cluster, p *cli.Pool, dry cli.DryRun) error {
			return c.Restart(ctx, p, dry)
		},
	}
	return s.command("restart", "Replace every existing member",
		"Restart makes every existing member stale, though its template is the same: for a rotated secret, or a rebuilt image\n"+
			"tag. The pool's strategy says how they are replaced.",
		"  freshbind rollout restart pool/python\n  freshbind rollout restart template/python && freshbind rollout status template/python")
}

func isPaused(p *cli.Pool) bool { return p.Object.GetAnnotations()[settings.PausedKey] == "true" }

func (s *annotationCommand) run(ctx context.Context, args []string) error {
	resource, err := parseResourceName(args)
	if err != nil {
		return err
	}
	dry, err := cli.ParseDryRun(s.dryRun)
	if err != nil {
		return usage("%w", err)
	}
	c, namespace, err := s.reachCluster()
	if err != nil {
		return err
	}
	store, err := c.Load(ctx, namespace)
	if err != nil {
		return err
	}
	found, err := resource.find(ctx, c, namespace, store)
	if err != nil {
		return err
	}
	return s.each(ctx, c, found, dry)
}

// each writes onto every pool. That a pool is so already is a failure only when
// all of them are.
func (s *annotationCommand) each(ctx context.Context, c *cli.Cluster, found []cli.Pool, dry cli.DryRun) error {
	var failed, already []error
	written := 0
	for i := range found {
		p := &found[i]
		if s.is(p) {
			already = append(already, fmt.Errorf("pool %q is %s", p.Name, s.already))
			continue
		}
		if err := s.write(ctx, c, p, dry); err != nil {
			failed = append(failed, absent(err, poolKind, p.Name, p.Namespace))
			continue
		}
		written++
		if err := s.report(p, dry); err != nil {
			return err
		}
	}
	if written == 0 {
		failed = append(failed, already...)
	}
	return errors.Join(failed...)
}

func (s *annotationCommand) report(p *cli.Pool, dry cli.DryRun) error {
	if _, err := fmt.Fprintf(s.streams.Out, "%s %s%s\n", cli.PoolName(*p), s.done, dry.Suffix()); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	if p.Mode == settings.Audit {
		return warn(s.streams.ErrOut, fmt.Sprintf("Warning: pool %s is in mode audit, where Freshbind replaces nothing.", p.Name))
	}
	return nil
}

func warn(out io.Writer, text string) error {
	if text == "" {
		return nil
	}
	if _, err := fmt.Fprintln(out, text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
